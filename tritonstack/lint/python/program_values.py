"""Values in a Python program as far as reading shows them: of names, attributes, arguments; nothing is run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tritonstack.errors import InputError
from tritonstack.lint.python.program_bindings import (
    EVERYWHERE,
    Binding,
    Function,
    Position,
    bindings_of,
    latest,
    own_nodes,
    parameters_of,
    self_name,
)
from tritonstack.models.python_calls import imported_names
from tritonstack.untrusted.folder_files import is_fit_file, read_inside
from tritonstack.untrusted.foreign_text import parse_program

UNKNOWN = "\0"
"""Stands in a text for the part that reading does not show."""

_DEEPEST = 25
"""Steps from a name to its value: more are taken for unknown."""
_LONGEST_TEXT = 4_000
_MOST_STEPS = 30_000
"""Steps for one program, after which its values are taken for unknown: a program of a stranger may be built to last."""

_EXISTENCE = frozenset({"exists", "lexists", "isfile", "isdir", "is_file", "is_dir", "listdir", "glob", "iterdir"})
_OF_ARCHIVE = frozenset({"model_repository", "model_version", "__file__", "get_model_dir"})
"""What a program finds the files of its archive by: arguments of ``initialize``, ``__file__``, a function of Triton."""


@dataclass(frozen=True, eq=False)
class Module:
    """One Python file."""

    path: Path
    tree: ast.Module
    imports: Mapping[str, str]  # name → full name of what was imported under it
    stars: tuple[str, ...]  # modules whose every name was imported


@dataclass(frozen=True, eq=False)
class Scope:
    """The place of an expression, and the arguments that its function was called with."""

    module: Module
    function: Function | None = None  # None: at module level, or in the body of ``owner``
    owner: ast.ClassDef | None = None  # the class whose method or body it is
    arguments: Mapping[str, Placed] = field(default_factory=dict)
    outer: Scope | None = None  # of a function in a function: the other one's
    made_by: Placed | None = None  # the call that made the object whose method it is


@dataclass(frozen=True, eq=False)
class OwnClass:
    """A class of the program, and the module that it is in."""

    node: ast.ClassDef
    module: Module


@dataclass(frozen=True, eq=False)
class Placed:
    """A node of a syntax tree and the scope that its names are looked up in."""

    node: ast.AST
    scope: Scope
    is_fallback: bool = False  # whether it is taken only where a file of the archive is missing


@dataclass(frozen=True)
class Text:
    """A text; :data:`UNKNOWN` marks parts that reading does not show."""

    value: str
    is_fallback: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether all of it is known."""
        return UNKNOWN not in self.value


class Program:
    """A model's program with its own modules, and the values of their names."""

    def __init__(self, path: Path, *, folders: Sequence[Path], root: Path, parameters: Mapping[str, str]) -> None:
        """``folders``: where its imports are looked for; ``root``: nothing outside of it is read.

        ``parameters``: those of config.pbtxt, which a program reads from ``args["model_config"]``.
        """
        self._folders, self._root, self._parameters = tuple(folders), root, parameters
        self._modules: dict[Path, Module | None] = {}
        self._bound: dict[ast.AST, Mapping[str, Sequence[Binding]]] = {}
        self._steps = 0
        self.main = self.read(path)

    def read(self, path: Path) -> Module | None:
        """A file as a module; None for one that cannot be read or is no program."""
        if path not in self._modules:
            try:
                tree = parse_program(read_inside(path, self._root))
            except (OSError, SyntaxError, InputError):
                self._modules[path] = None  # other rules' matter
            else:
                star = [each for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)]
                stars = tuple(each.module for each in star if each.module and each.names[0].name == "*")
                self._modules[path] = Module(path, tree, imported_names(tree), stars)
        return self._modules[path]

    def beside(self, name: str, module: Module) -> Module | None:
        """The program's own module that ``module`` imports as ``name``; None for an installed one."""
        place = name.replace(".", "/")
        for folder in (module.path.parent, *self._folders):
            for path in (folder / f"{place}.py", folder / place / "__init__.py"):
                if name and path != module.path and is_fit_file(path, self._root):
                    return self.read(path)
        return None

    def has_beside(self, name: str) -> bool:
        """Whether the archive has a file or folder of this name where the program's modules are looked for."""
        return bool(name) and any((folder / name).exists() for folder in self._folders)

    def follow(self, node: ast.AST, scope: Scope, depth: int = 0) -> tuple[Placed, ...]:
        """Possible values of an expression: the expressions, functions, classes or modules that its names were given.

        Branches are not decided, so there may be several. An unknown expression is its own value.
        """
        self._steps += 1
        found: Iterable[Placed] = ()
        if depth < _DEEPEST and self._steps < _MOST_STEPS:
            match node:
                case ast.Name():
                    found = self._name(node, scope, depth + 1)
                case ast.Attribute():
                    found = self._attribute(node, scope, depth + 1)
                case ast.Subscript():
                    found = self._item(node, scope, depth + 1)
                case ast.IfExp():
                    is_fallback = self.asks_for_files_of_archive(node.test, scope)
                    values = [each for part in (node.body, node.orelse) for each in self.follow(part, scope, depth + 1)]
                    found = [replace(each, is_fallback=each.is_fallback or is_fallback) for each in values]
                case ast.BoolOp(op=ast.Or()):
                    found = [each for part in node.values for each in self.follow(part, scope, depth + 1)]
                case ast.NamedExpr() | ast.Await():
                    found = self.follow(node.value, scope, depth + 1)
                case ast.Call():
                    found = self._returned(node, scope, depth + 1)
        return tuple(found) or (Placed(node, scope),)

    def texts(self, node: ast.AST, scope: Scope, depth: int = 0) -> tuple[Text, ...]:
        """The texts that an expression may be: constants, f-strings, sums and formats of them."""
        return tuple(
            Text(self._text(each, depth + 1), each.is_fallback) for each in self.follow(node, scope, depth + 1)
        )

    def _text(self, placed: Placed, depth: int) -> str:
        node, scope = placed.node, placed.scope

        def first(part: ast.AST) -> str:
            return self.texts(part, scope, depth)[0].value if depth < _DEEPEST else UNKNOWN

        text = UNKNOWN
        match node:
            case ast.Constant(value=str(value)):
                text = value
            case ast.JoinedStr():
                text = "".join(first(each) for each in node.values)
            case ast.FormattedValue():
                text = first(node.value)
            case ast.BinOp(op=ast.Add()):
                text = first(node.left) + first(node.right)
            case ast.BinOp(op=ast.Mod()):
                text = re.sub(r"%\(?\w+\)?\w?", UNKNOWN, first(node.left))
            case ast.Call(func=ast.Attribute(attr="format", value=template)):
                text = first(template)
                for each in node.args:
                    text = text.replace("{}", first(each), 1)
                text = re.sub(r"\{\w*\}", UNKNOWN, text)
        return text[:_LONGEST_TEXT]

    def names(self, node: ast.AST, scope: Scope, depth: int = 0) -> tuple[str, ...]:
        """Full names that an expression may have: ``boto3.client().download_file`` for a method of a call's result."""
        if depth > _DEEPEST:
            return ()
        found: list[str] = []
        for each in self.follow(node, scope, depth + 1):
            at, inner = each.node, each.scope
            if isinstance(at, ast.Name):
                star = next(iter(inner.module.stars), "")
                known = inner.module.imports.get(at.id)
                found.append(known or (f"{star}.{at.id}" if star else at.id))
            elif isinstance(at, ast.Attribute):
                found += [f"{base}.{at.attr}" for base in self.names(at.value, inner, depth + 1)]
            elif isinstance(at, ast.Call):
                found += [f"{base}()" for base in self.names(at.func, inner, depth + 1)]
            elif isinstance(at, ast.ClassDef):  # what it does not define, a class of a library has
                found += [name for base in at.bases for name in self.names(base, inner, depth + 1)]
        return tuple(dict.fromkeys(found))

    def asks_for_files_of_archive(self, test: ast.AST, scope: Scope) -> bool:
        """Whether a condition tests that a file of the archive exists."""
        calls = [node for node in ast.walk(test) if isinstance(node, ast.Call)]
        asking = [
            call for call in calls if isinstance(call.func, ast.Attribute | ast.Name) and _last(call.func) in _EXISTENCE
        ]
        return any(self.is_of_archive(call, scope) for call in asking)

    def is_of_archive(self, node: ast.AST, scope: Scope, depth: int = 0) -> bool:
        """Whether an expression is made of a path of the archive."""
        for each in ast.walk(node):
            if (isinstance(each, ast.Name | ast.Attribute) and _last(each) in _OF_ARCHIVE) or (
                isinstance(each, ast.Constant) and each.value in _OF_ARCHIVE
            ):
                return True
            if isinstance(each, ast.Name | ast.Attribute) and depth < _DEEPEST:
                values = self.follow(each, scope)
                if any(self.is_of_archive(v.node, v.scope, depth + 5) for v in values if _is_expression(v.node, each)):
                    return True
        return False

    def _bindings(self, owner: ast.AST) -> Mapping[str, Sequence[Binding]]:
        if owner not in self._bound:
            self._bound[owner] = bindings_of(owner)
        return self._bound[owner]

    def symbol(self, name: str, module: Module, depth: int = 0) -> tuple[Placed, ...]:
        """The value of a name at module level, also through the modules that it is imported from."""
        scope = Scope(module)
        bindings, _ = latest(self._bindings(module.tree).get(name, ()), EVERYWHERE)
        if bindings:
            return tuple(
                each for binding in bindings if binding.value is not None
                for each in self.follow_defined(binding.value, scope, depth)
            )  # fmt: skip
        imported = module.imports.get(name)
        if imported is not None:
            return self._imported(imported, module, depth)
        for star in module.stars:
            other = self.beside(star, module)
            if other is not None and depth < _DEEPEST and (found := self.symbol(name, other, depth + 1)):
                return found
        return ()

    def follow_defined(self, value: ast.AST, scope: Scope, depth: int) -> tuple[Placed, ...]:
        """The value that a name was given: a function or class itself, or the values of its expression."""
        if isinstance(value, Function | ast.ClassDef):
            return (Placed(value, scope),)
        return self.follow(value, scope, depth + 1)

    def _imported(self, full: str, module: Module, depth: int) -> tuple[Placed, ...]:
        """A function, class, value or module of the program's own files; nothing for installed ones."""
        whole = self.beside(full, module)
        if whole is not None:
            return (Placed(whole.tree, Scope(whole)),)
        place, _, name = full.rpartition(".")
        other = self.beside(place, module)
        return self.symbol(name, other, depth + 1) if other is not None and depth < _DEEPEST else ()

    def _name(self, node: ast.Name, scope: Scope, depth: int) -> Iterator[Placed]:
        position: Position = (node.lineno, node.col_offset)
        place: Scope | None = scope
        while place is not None and place.function is not None:
            bindings, is_certain = latest(self._bindings(place.function).get(node.id, ()), position)
            argument = place.arguments.get(node.id)
            for binding in bindings:
                if binding.value is not None:
                    yield from self.follow_defined(binding.value, place, depth)
            if argument is not None and not is_certain:
                yield from self.follow(argument.node, argument.scope, depth)
            if bindings or node.id in parameters_of(place.function):
                return
            position, place = EVERYWHERE, place.outer
        if scope.owner is not None and scope.function is None:
            bindings, _ = latest(self._bindings(scope.owner).get(node.id, ()), position)
            for binding in bindings:
                if binding.value is not None:
                    yield from self.follow_defined(binding.value, scope, depth)
            if bindings:
                return
        yield from self.symbol(node.id, scope.module, depth)

    def _attribute(self, node: ast.Attribute, scope: Scope, depth: int) -> Iterator[Placed]:
        position: Position = (node.lineno, node.col_offset)
        method = _method_around(scope, node.value)
        if method is not None and method.owner is not None:
            own = OwnClass(method.owner, method.module)
            if isinstance(node.value, ast.Name):
                seen_from = (scope, position) if method is scope else None
                yield from self.members(own, node.attr, depth, made_by=method.made_by, seen_from=seen_from)
                return
            for above in self._bases(own, depth):
                yield from self.members(above, node.attr, depth, made_by=method.made_by)
            return
        for base in self.follow(node.value, scope, depth):
            if isinstance(base.node, ast.Module):
                yield from self.symbol(node.attr, base.scope.module, depth)
            elif isinstance(base.node, ast.ClassDef):
                yield from self.members(OwnClass(base.node, base.scope.module), node.attr, depth)
            elif isinstance(base.node, ast.Call):
                for made in self.follow(base.node.func, base.scope, depth):
                    if isinstance(made.node, ast.ClassDef):
                        owner = OwnClass(made.node, made.scope.module)
                        yield from self.members(owner, node.attr, depth, made_by=base)

    def members(
        self,
        owner: OwnClass,
        name: str,
        depth: int = 0,
        *,
        made_by: Placed | None = None,
        seen_from: tuple[Scope, Position] | None = None,
    ) -> Iterator[Placed]:
        """The values of an attribute of a class or of its objects: a method, or what any method has assigned to it.

        ``made_by``: the call that made the object. ``seen_from``: a method of it and a place there, whose own earlier
        values go before those of others.
        """
        if depth > _DEEPEST:
            return
        if seen_from is not None and seen_from[0].function is not None:
            scope, position = seen_from
            bindings, is_certain = latest(self._bindings(seen_from[0].function).get(f"self.{name}", ()), position)
            for binding in bindings:
                if binding.value is not None:
                    yield from self.follow_defined(binding.value, scope, depth)
            if is_certain:
                return
        is_found = False
        for method in (each for each in owner.node.body if isinstance(each, Function)):
            scope = self.method_scope(method, owner, made_by)
            for binding in self._bindings(method).get(f"self.{name}", ()):
                is_found = True
                if binding.value is not None and not (seen_from and seen_from[0].function is method):
                    yield from self.follow_defined(binding.value, scope, depth)
        bindings, _ = latest(self._bindings(owner.node).get(name, ()), EVERYWHERE)
        for binding in bindings:
            if binding.value is not None:
                scope = Scope(owner.module, owner=owner.node, made_by=made_by)
                yield from self.follow_defined(binding.value, scope, depth)
        if not is_found and not bindings:
            for base in self._bases(owner, depth):
                yield from self.members(base, name, depth + 1, made_by=made_by)

    def method_scope(self, method: Function, owner: OwnClass, made_by: Placed | None) -> Scope:
        """A method's scope; the arguments of ``__init__`` are those of the call that made the object."""
        arguments: Mapping[str, Placed] = {}
        if made_by is not None and isinstance(made_by.node, ast.Call) and method.name == "__init__":
            arguments = bind(method, made_by.node, made_by.scope, defined_in=Scope(owner.module), is_method=True)
        return Scope(owner.module, method, owner.node, arguments, made_by=made_by)

    def _bases(self, owner: OwnClass, depth: int) -> Iterator[OwnClass]:
        for base in owner.node.bases:
            for each in self.follow(base, Scope(owner.module), depth + 1):
                if isinstance(each.node, ast.ClassDef) and each.node is not owner.node:
                    yield OwnClass(each.node, each.scope.module)

    def _item(self, node: ast.Subscript, scope: Scope, depth: int) -> Iterator[Placed]:
        """An item of a literal dictionary or list, or of config.pbtxt's ``parameters``."""
        if not isinstance(node.slice, ast.Constant | ast.Name | ast.Attribute):
            return
        keys = [
            each.node.value for each in self.follow(node.slice, scope, depth) if isinstance(each.node, ast.Constant)
        ]
        for base in self.follow(node.value, scope, depth):
            at = base.node
            if isinstance(at, ast.Dict):
                for key, item in zip(at.keys, at.values, strict=True):
                    if isinstance(key, ast.Constant) and key.value in keys:
                        yield from self.follow(item, base.scope, depth)
            elif isinstance(at, ast.List | ast.Tuple):
                for index in keys:
                    if isinstance(index, int) and -len(at.elts) <= index < len(at.elts):
                        yield from self.follow(at.elts[index], base.scope, depth)
            elif keys == ["string_value"] and isinstance(at, ast.Subscript) and isinstance(at.slice, ast.Constant):
                above = self.follow(at.value, base.scope, depth)
                value = self._parameters.get(str(at.slice.value))
                if value is not None and any(_is_item(each.node, "parameters") for each in above):
                    yield Placed(ast.copy_location(ast.Constant(value), node), scope)

    def _returned(self, node: ast.Call, scope: Scope, depth: int) -> Iterator[Placed]:
        """The return value of a function of the program, or the default that a call states."""
        last = _last(node.func)
        if last in ("get", "getenv", "pop") and len(node.args) == 2:
            yield from self.follow(node.args[1], scope, depth)
            return
        if isinstance(node.func, ast.Name) and last in ("str", "Path") and len(node.args) == 1:
            yield from self.follow(node.args[0], scope, depth)
            return
        for each in self.follow(node.func, scope, depth):
            if isinstance(each.node, Function):
                inner = called_scope(each.node, each.scope, node, scope)
                for given in own_nodes(each.node):
                    if isinstance(given, ast.Return) and given.value is not None:
                        yield from self.follow(given.value, inner, depth)


def called_scope(function: Function, defined_in: Scope, call: ast.Call, scope: Scope) -> Scope:
    """The scope of a function or method of the program that a call in ``scope`` runs."""
    is_inner = defined_in.function is not None
    is_method = defined_in.owner is not None and not is_inner
    arguments = bind(function, call, scope, defined_in=defined_in, is_method=is_method)
    outer = defined_in if is_inner else None
    return Scope(defined_in.module, function, defined_in.owner, arguments, outer=outer, made_by=defined_in.made_by)


def bind(function: Function, call: ast.Call, scope: Scope, *, defined_in: Scope, is_method: bool) -> dict[str, Placed]:
    """The arguments of a call by the names of the function's parameters, with its defaults."""
    given_by_place = [*function.args.posonlyargs, *function.args.args]
    with_default = given_by_place[len(given_by_place) - len(function.args.defaults) :]
    defaults = [
        *zip(with_default, function.args.defaults, strict=True),
        *zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True),
    ]
    place = Scope(defined_in.module)
    found = {each.arg: Placed(value, place) for each, value in defaults if value is not None}
    names = [each.arg for each in given_by_place]
    for name, given in zip(names[1 if is_method and self_name(function) else 0 :], call.args, strict=False):
        if isinstance(given, ast.Starred):
            break
        found[name] = Placed(given, scope)
    return found | {each.arg: Placed(each.value, scope) for each in call.keywords if each.arg is not None}


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_expression(node: ast.AST, other: ast.AST) -> bool:
    return node is not other and isinstance(node, ast.expr)


def _is_item(node: ast.AST, key: str) -> bool:
    """Whether an expression is ``….[key]`` or ``….get(key)``."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == key
    if not isinstance(node, ast.Call) or _last(node.func) != "get" or not node.args:
        return False
    return isinstance(node.args[0], ast.Constant) and node.args[0].value == key


def _method_around(scope: Scope, value: ast.AST) -> Scope | None:
    """The method whose object ``self`` or ``super()`` is, from inside of its functions too."""
    place: Scope | None = scope
    while place is not None and place.function is not None:
        is_method = place.owner is not None and place.outer is None
        if isinstance(value, ast.Call):
            if is_method:
                return place if _last(value.func) == "super" else None
        elif not isinstance(value, ast.Name):
            return None
        elif is_method and value.id == self_name(place.function):
            return place
        elif value.id in parameters_of(place.function):
            return None
        place = place.outer
    return None
