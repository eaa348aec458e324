"""The objects of a pickle, outlined without making any of them: no class is imported, nothing of the file runs.

Each opcode is followed on a stack of plain values: a class is its name, an object its class with arguments and state.
Files of pickle, joblib (whose arrays lie between the opcodes) and torch.save hold pickles. Source of the opcodes:
CPython Lib/pickletools.py; of joblib's arrays: joblib/numpy_pickle.py (NumpyArrayWrapper.read_array).
"""

from __future__ import annotations

import io
import math
import pickletools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, BinaryIO, cast

MOST_OPCODES = 400_000
"""Opcodes that are followed, a second's worth; what comes behind them is not known."""
MOST_BYTES = 64 << 20
"""Bytes of a pickle that are read."""
_DEEPEST = 8
"""Pickles inside each other: joblib's arrays of objects."""
_LINE = 1 << 16


class PickleError(ValueError):
    """The bytes are no pickle."""


@dataclass(frozen=True)
class GlobalName:
    """A class or function, by its module and name."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(eq=False)
class PickledObject:
    """An object as a pickle describes it: what is called to make it, with what, and the state that it gets."""

    made_by: Any  # mostly a GlobalName
    arguments: Any = ()
    state: Any = None
    items: list[Any] = field(default_factory=list)  # added to a list, or keys and values in turn

    @property
    def name(self) -> str:
        """The full name of its class, of which pickle's own helpers are the makers; empty where it has none."""
        of = self.made_by
        if str(of) in _MAKERS and isinstance(self.arguments, tuple) and self.arguments:
            of = self.arguments[0]
        return str(of) if isinstance(of, GlobalName) else ""

    def attribute(self, name: str) -> Any:
        """A value of its state; None where it has none."""
        states = self.state if isinstance(self.state, tuple) else (self.state,)
        found = (each[name] for each in states if isinstance(each, dict) and name in each)
        return next(found, None)


_MAKERS = frozenset({"copyreg._reconstructor", "copy_reg._reconstructor", "copyreg.__newobj__", "copy_reg.__newobj__"})


@dataclass(frozen=True)
class PickleOutline:
    """The pickled object, and what its pickle names."""

    root: Any
    globals: tuple[GlobalName, ...]  # classes and functions, in the order of the file, each once
    is_whole: bool  # whether the pickle was followed to its end


@dataclass(frozen=True)
class Persistent:
    """An object that is stored elsewhere: a tensor's values, of torch.save."""

    key: Any


class _Mark:
    """Where a list of values begins on the stack."""


class _Bounded(io.RawIOBase):
    """A stream of which no more than ``MOST_BYTES`` are read; raw arrays are passed over uncounted."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream, self.left = stream, MOST_BYTES

    def read(self, size: int = -1) -> bytes:
        """At most ``size`` bytes."""
        taken = self.stream.read(self.left if size < 0 else min(size, self.left))
        self.left -= len(taken)
        return taken

    def readline(self, size: int | None = -1) -> bytes:
        """The next line, of a bounded length."""
        line = self.stream.readline(min(self.left, _LINE if size is None or size < 0 else size))
        self.left -= len(line)
        return line

    def tell(self) -> int:
        """The place in the file."""
        return self.stream.tell()

    def skip(self, length: int) -> None:
        """Pass over bytes: without reading them where the stream is a file."""
        if self.stream.seekable():
            self.stream.seek(length, io.SEEK_CUR)
            return
        while length > 0 and (piece := self.read(min(length, 1 << 20))):
            length -= len(piece)


def read_pickle(stream: BinaryIO) -> PickleOutline:
    """The outline of the pickle that begins here. Raises :class:`PickleError` where none does."""
    reader = _Reader(_Bounded(stream))
    is_whole = reader.read()
    if not reader.followed:
        raise PickleError("no pickle")
    return PickleOutline(root=reader.root(), globals=tuple(reader.globals), is_whole=is_whole)


class _Reader:
    """The stack and the memo of a pickle that is being read."""

    def __init__(self, stream: _Bounded, *, depth: int = 0) -> None:
        self.stream, self.depth = stream, depth
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.globals: dict[GlobalName, None] = {}
        self.followed = 0

    def read(self) -> bool:
        """Follow the opcodes; whether the end was reached."""
        try:
            for code, argument, _ in pickletools.genops(cast("IO[bytes]", self.stream)):
                self.followed += 1
                if code.name == "STOP":
                    return True
                if self.followed > MOST_OPCODES:
                    return False
                self.follow(code.name, argument)
        except (ValueError, IndexError, TypeError, KeyError, OverflowError, RecursionError, OSError, EOFError):
            return False  # cut off, damaged, or behind the bytes that are read
        return False

    def root(self) -> Any:
        """The object; of a pickle that was not followed to its end as far as it is known."""
        while len(self.stack) > 1:
            top = self.stack.pop()
            if isinstance(top, _Mark):
                continue
            below = [index for index, each in enumerate(self.stack) if isinstance(each, _Mark)]
            if below and (rest := [*self.stack[below[-1] + 1 :], top]) and below[-1] > 0:
                del self.stack[below[-1] :]
                _fill(self.stack[-1], rest)
            elif isinstance(top, dict) and isinstance(self.stack[-1], PickledObject):
                self.stack[-1].state = top
        return self.stack[0] if self.stack and not isinstance(self.stack[0], _Mark) else None

    def marked(self) -> list[Any]:
        """What was put onto the stack after the last mark."""
        place = max(index for index, each in enumerate(self.stack) if isinstance(each, _Mark))
        taken = self.stack[place + 1 :]
        del self.stack[place:]
        return taken

    def take(self, count: int) -> list[Any]:
        """The last values of the stack."""
        if count > len(self.stack):
            raise PickleError("a stack with too few values")
        taken = self.stack[len(self.stack) - count :] if count else []
        del self.stack[len(self.stack) - count :]
        return taken

    def named(self, module: Any, name: Any) -> GlobalName:
        found = GlobalName(str(module), str(name))
        self.globals.setdefault(found)
        return found

    def follow(self, name: str, argument: Any) -> None:
        """What one opcode does to the stack."""
        if name in _NOTHING:
            return
        if name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name]())
        elif name in _LITERALS:
            self.stack.append(argument)
        elif name in _STEPS:
            _STEPS[name](self, argument)
        else:
            raise PickleError(f"opcode {name}")

    def build(self, _argument: Any) -> None:
        """An object gets its state; behind the wrapper of an array joblib writes the array."""
        (state,) = self.take(1)
        made = self.stack[-1]
        if isinstance(made, PickledObject):
            made.state = state
            if made.name == "joblib.numpy_pickle.NumpyArrayWrapper":
                self.pass_array(made)

    def pass_array(self, wrapper: PickledObject) -> None:
        """Pass over an array of numbers; one of objects is a pickle of its own, whose object is kept."""
        shape, kind = wrapper.attribute("shape"), _dtype(wrapper.attribute("dtype"))
        if not isinstance(shape, tuple) or not all(isinstance(each, int) and each >= 0 for each in shape):
            raise PickleError("an array without a shape")
        if kind.startswith("O"):
            if self.depth >= _DEEPEST:
                raise PickleError("pickles nested too deeply")
            inner = _Reader(self.stream, depth=self.depth + 1)
            if not inner.read():
                raise PickleError("an array that is cut off")
            wrapper.items = [inner.root()]
            self.globals |= inner.globals
            return
        if wrapper.attribute("numpy_array_alignment_bytes"):
            self.stream.skip(int.from_bytes(self.stream.read(1), "little"))
        self.stream.skip(math.prod(shape) * int(kind[1:] or 0))


def _dtype(made: Any) -> str:
    """Kind and size of a pickled NumPy type: ``f8``, ``O8``, ``U4`` in bytes of a value."""
    if not isinstance(made, PickledObject) or not isinstance(made.arguments, tuple) or not made.arguments:
        raise PickleError("an array without a type")
    text = str(made.arguments[0])
    if text[:1] == "U":  # NumPy's characters have four bytes
        return f"U{4 * int(text[1:])}"
    return text


def _fill(target: Any, values: list[Any]) -> None:
    """Add values behind a mark to what they belong to."""
    pairs = zip(values[::2], values[1::2], strict=False)
    if isinstance(target, dict):
        target.update((key, value) for key, value in pairs if _is_key(key))
    elif isinstance(target, list):
        target.extend(values)
    elif isinstance(target, PickledObject):
        target.items.extend(values)


def _is_key(value: Any) -> bool:
    return isinstance(value, str | int | float | bytes | bool | None | GlobalName)


def _set_items(reader: _Reader, _argument: Any) -> None:
    values = reader.marked()
    _fill(reader.stack[-1], values)


def _set_item(reader: _Reader, _argument: Any) -> None:
    values = reader.take(2)
    _fill(reader.stack[-1], values)


def _append(reader: _Reader, _argument: Any) -> None:
    values = reader.take(1)
    _fill(reader.stack[-1], values)


def _dictionary(reader: _Reader, _argument: Any) -> None:
    values = reader.marked()
    made: dict[Any, Any] = {}
    _fill(made, values)
    reader.stack.append(made)


def _call(reader: _Reader, _argument: Any) -> None:
    made_by, arguments = reader.take(2)
    reader.stack.append(PickledObject(made_by, arguments))


def _call_with_names(reader: _Reader, _argument: Any) -> None:
    made_by, arguments, _names = reader.take(3)
    reader.stack.append(PickledObject(made_by, arguments))


def _object(reader: _Reader, _argument: Any) -> None:
    made_by, *arguments = reader.marked()
    reader.stack.append(PickledObject(made_by, tuple(arguments)))


def _instance(reader: _Reader, argument: Any) -> None:
    module, _, name = str(argument).partition(" ")
    arguments = tuple(reader.marked())
    reader.stack.append(PickledObject(reader.named(module, name), arguments))


def _global(reader: _Reader, argument: Any) -> None:
    module, _, name = str(argument).partition(" ")
    reader.stack.append(reader.named(module, name))


def _stack_global(reader: _Reader, _argument: Any) -> None:
    reader.stack.append(reader.named(*reader.take(2)))


def _memoize(reader: _Reader, argument: Any) -> None:
    reader.memo[len(reader.memo) if argument is None else int(argument)] = reader.stack[-1]


def _remember(reader: _Reader, argument: Any) -> None:
    reader.stack.append(reader.memo[int(argument)])


def _persistent(reader: _Reader, _argument: Any) -> None:
    reader.stack.append(Persistent(reader.take(1)[0]))


_NOTHING = frozenset({"PROTO", "FRAME", "READONLY_BUFFER"})
_CONSTANTS: Mapping[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_TUPLE": tuple,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_SET": list,
    "MARK": _Mark,
    "NEXT_BUFFER": lambda: None,
}
_LITERALS = frozenset({
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "STRING", "BINSTRING", "SHORT_BINSTRING",
    "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8", "UNICODE", "SHORT_BINUNICODE", "BINUNICODE",
    "BINUNICODE8", "FLOAT", "BINFLOAT",
})  # fmt: skip
_STEPS: Mapping[str, Callable[[_Reader, Any], Any]] = {
    "TUPLE": lambda reader, _: reader.stack.append(tuple(reader.marked())),
    "TUPLE1": lambda reader, _: reader.stack.append(tuple(reader.take(1))),
    "TUPLE2": lambda reader, _: reader.stack.append(tuple(reader.take(2))),
    "TUPLE3": lambda reader, _: reader.stack.append(tuple(reader.take(3))),
    "LIST": lambda reader, _: reader.stack.append(reader.marked()),
    "FROZENSET": lambda reader, _: reader.stack.append(reader.marked()),
    "DICT": _dictionary,
    "APPEND": _append,
    "APPENDS": _set_items,
    "ADDITEMS": _set_items,
    "SETITEM": _set_item,
    "SETITEMS": _set_items,
    "POP": lambda reader, _: reader.take(1),
    "POP_MARK": lambda reader, _: reader.marked(),
    "DUP": lambda reader, _: reader.stack.append(reader.stack[-1]),
    "GLOBAL": _global,
    "STACK_GLOBAL": _stack_global,
    "REDUCE": _call,
    "NEWOBJ": _call,
    "NEWOBJ_EX": _call_with_names,
    "OBJ": _object,
    "INST": _instance,
    "BUILD": _Reader.build,
    "PUT": _memoize,
    "BINPUT": _memoize,
    "LONG_BINPUT": _memoize,
    "MEMOIZE": _memoize,
    "GET": _remember,
    "BINGET": _remember,
    "LONG_BINGET": _remember,
    "BINPERSID": _persistent,
    "PERSID": lambda reader, argument: reader.stack.append(Persistent(argument)),
}


def objects_of(root: Any, *, most: int = 20_000) -> Iterator[PickledObject]:
    """The objects below one, each once, the nearest first."""
    seen: set[int] = set()
    waiting = [root]
    while waiting and len(seen) < most:
        following: list[Any] = []
        for each in waiting:
            if isinstance(each, dict):
                following += each.values()
            elif isinstance(each, list | tuple):
                following += each
            elif isinstance(each, PickledObject) and id(each) not in seen:
                seen.add(id(each))
                yield each
                following += [each.arguments, each.state, each.items]
        # Lists may hold themselves: a container is looked into once.
        waiting = [each for each in following if id(each) not in seen]
        seen.update(id(each) for each in waiting if isinstance(each, dict | list | tuple))
