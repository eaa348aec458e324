"""Declarations of names of MiniStack, and the differences of the installed one."""

from __future__ import annotations

import ast
import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any


class PrivateName(ABC):
    """A name in a module of MiniStack, looked up at each use: MiniStack, the emulator or a test may replace it."""

    def __init__(self, module: ModuleType, name: str) -> None:
        """``module`` has ``name``."""
        self.module = module
        self.name = name

    def __str__(self) -> str:
        return f"{self.module.__name__}.{self.name}"

    @property
    def current(self) -> Any:
        """The module's current object of the name."""
        return getattr(self.module, self.name)

    def problems(self) -> Iterator[str]:
        """Differences from the declaration, in words that follow the name."""
        if not hasattr(self.module, self.name):
            yield "does not exist"
        else:
            yield from self._differences()

    @abstractmethod
    def _differences(self) -> Iterator[str]:
        """Differences of the existing object from its declaration."""


class Value(PrivateName):
    """A value of a module; ``value()`` is what the module has now."""

    def __init__(self, module: ModuleType, name: str, kind: str, *, keys: str = "") -> None:
        """``kind``: the name of its type. ``keys``: those that are looked up in it, separated by spaces."""
        super().__init__(module, name)
        self._kind = kind
        self._keys = keys.split()

    def __call__(self) -> Any:
        """The module's current object of the name."""
        return self.current

    def replace(self, ours: Any) -> None:
        """Put another value in its place."""
        setattr(self.module, self.name, ours)

    def _differences(self) -> Iterator[str]:
        kind = type(self.current).__name__
        if kind != self._kind:
            yield f"is a {kind}, no {self._kind}"
        yield from (f"has no key {key}" for key in self._keys if key not in self.current)


class ReplacedModule(Value):
    """A module that MiniStack imports, and that the emulator replaces by an object with a few of its functions."""

    def __init__(self, module: ModuleType, name: str, *, functions: str) -> None:
        """``functions``: all that MiniStack's module calls of it, separated by spaces."""
        super().__init__(module, name, "module")
        self._functions = set(functions.split())

    def _differences(self) -> Iterator[str]:
        yield from super()._differences()
        used = {
            each.attr
            for each in ast.walk(ast.parse(inspect.getsource(self.module)))
            if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id == self.name
        }
        yield from (f"is used for {self.name}.{name}, too" for name in sorted(used - self._functions))


class Class(PrivateName):
    """A class; calling it makes an instance."""

    def __init__(self, module: ModuleType, name: str, *, members: str) -> None:
        """``members``: methods and attributes of instances that the emulator uses, separated by spaces."""
        super().__init__(module, name)
        self._members = members.split()

    def __call__(self) -> Any:
        """An instance."""
        return self.current()

    def _differences(self) -> Iterator[str]:
        made = self.current()
        yield from (f"has no {member}" for member in self._members if not hasattr(made, member))


class Function(PrivateName):
    """A function that is called."""

    def __init__(self, module: ModuleType, name: str, parameters: str = "") -> None:
        """``parameters``: the names of those that are given, in order; those behind a ``*`` are given by name.

        ``*args`` is given any number.
        """
        super().__init__(module, name)
        self.parameters = parameters
        positional, _, named = f"{parameters} ".partition("* ")
        self._any_number = "*args" in positional.split()
        self._positional = [each for each in positional.split() if each != "*args"]
        self._named = named.split()

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Call it; TypeError for a parameter that is not declared, since nothing would check that it exists."""
        too_many = len(given) > len(self._positional) and not self._any_number
        if too_many or not named.keys() <= {*self._positional, *self._named}:
            raise TypeError(f"{self} was declared with the parameters ({self.parameters}): declare what else is given")
        return self.current(*given, **named)

    def _differences(self) -> Iterator[str]:
        if not callable(self.current):
            yield "is not callable"
            return
        found = inspect.signature(self.current).parameters.values()
        by_place = [each.name for each in found if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
        by_name = [each.name for each in found if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
        given = {*self._positional, *self._named}
        needed = [each.name for each in found if each.default is each.empty and each.name in {*by_place, *by_name}]
        any_number = any(each.kind is each.VAR_POSITIONAL for each in found)
        if by_place[: len(self._positional)] != self._positional or self._any_number > any_number:
            yield f"takes ({_shown(self.current)}), and is called with ({self.parameters})"
        yield from (f"has no parameter {name}" for name in self._named if name not in by_name)
        yield from (f"needs the parameter {name}, which is not given" for name in needed if name not in given)


class Replaceable(Function):
    """A function that the emulator replaces by one of its own, which mostly calls MiniStack's."""

    def __init__(
        self,
        module: ModuleType,
        name: str,
        parameters: str = "",
        *,
        also: tuple[ModuleType, ...] = (),
        left_in: tuple[ModuleType, ...] = (),
    ) -> None:
        """``parameters`` are all that it has.

        Args:
            module: has it.
            name: there, and in the others.
            parameters: their names, those behind a ``*`` by name alone; ``*args`` takes any number.
            also: modules that imported it by name, where it is replaced, too.
            left_in: modules that have it as well, and go on with MiniStack's.
        """
        super().__init__(module, name, parameters)
        self._also = also
        self._left_in = left_in

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Call the current object; it has all the parameters of its declaration."""
        return self.current(*given, **named)

    def replace(self, ours: Callable[..., Any]) -> None:
        """Put ``ours`` in its place, wherever MiniStack looks it up."""
        for module in (self.module, *self._also):
            setattr(module, self.name, ours)

    def _differences(self) -> Iterator[str]:
        theirs = self.current
        if not callable(theirs):
            yield "is not callable"
            return
        if _shown(theirs) != self.parameters:
            yield f"takes ({_shown(theirs)}), and what replaces it takes ({self.parameters})"
        declared = {module.__name__ for module in (self.module, *self._also, *self._left_in)}
        having = {
            name
            for name, module in list(sys.modules.items())
            if name.startswith("ministack.") and getattr(module, self.name, None) is theirs
        }
        yield from (
            f"is imported by {name}, too, which would go on with MiniStack's" for name in sorted(having - declared)
        )
        yield from (f"is not what {name} has under that name" for name in sorted(declared - having))


def _shown(function: Callable[..., Any]) -> str:
    """The names of a function's parameters, as ``Replaceable`` spells them."""
    shown: list[str] = []
    for each in inspect.signature(function).parameters.values():
        if each.kind is each.KEYWORD_ONLY and not any(name.startswith("*") for name in shown):
            shown.append("*")
        stars = "*" if each.kind is each.VAR_POSITIONAL else "**" if each.kind is each.VAR_KEYWORD else ""
        shown.append(stars + each.name)
    return " ".join(shown)
