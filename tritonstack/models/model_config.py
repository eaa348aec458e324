"""``config.pbtxt`` read against Triton's own message definitions, merged with fragments, and as Triton's JSON."""

from __future__ import annotations

import functools
import importlib.resources
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tritonstack.errors import InputError, Problem
from tritonstack.models.pbtxt import EmptyList, Field, Message, PbtxtError, Scalar, parse, quoted, to_text

EXECUTION_ENV_PATH = "EXECUTION_ENV_PATH"
"""The parameter of a Python model that names its own execution environment."""
_RANGES = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
_NO_TYPE = "TYPE_INVALID"
"""The member that a tensor has which names no type: protobuf reads it, and Triton refuses it."""
_TRUTH = {"true": True, "True": True, "t": True, "false": False, "False": False, "f": False}
_OF_ENTRY = {"key", "value"}
"""The fields of a map's entry."""
_PLATFORM_BACKENDS = {
    "onnxruntime_onnx": "onnxruntime",
    "tensorrt_plan": "tensorrt",
    "pytorch_libtorch": "pytorch",
    "tensorflow_graphdef": "tensorflow",
    "tensorflow_savedmodel": "tensorflow",
    "ensemble": "ensemble",
}
"""Platforms that stand for a backend: Triton core, src/constants.h and src/model_config_utils.cc (GetBackendType)."""

MODEL_FILES = {
    "onnxruntime": "model.onnx",
    "python": "model.py",
    "pytorch": "model.pt",
    "tensorrt": "model.plan",
    "dali": "model.dali",
    "openvino": "model.xml",
}
"""Backend → the file it loads by default: Triton, docs/user_guide/model_repository.md (Model Files)."""

PLATFORM_FILES = {"tensorflow_graphdef": "model.graphdef", "tensorflow_savedmodel": "model.savedmodel"}
"""The same by platform, where one backend loads two formats; a SavedModel is a folder."""

FIL_FILES = {
    "xgboost": "xgboost.model",
    "xgboost_json": "xgboost.json",
    "xgboost_ubj": "xgboost.ubj",
    "lightgbm": "model.txt",
    "treelite_checkpoint": "checkpoint.tl",
}
"""The same of FIL by its parameter ``model_type``: fil_backend src/model.h (model_file)."""
FIL_TYPE = "xgboost"
"""What FIL takes where there is no ``model_type``: fil_backend src/shared_state.h (load)."""


@dataclass(frozen=True, kw_only=True)
class Complaint:
    """One thing that Triton would refuse in a configuration."""

    line: int
    column: int = 0
    path: str
    found: str
    allowed: str
    meant: str = ""  # the value that was probably meant, as the text spells it; empty where that does not show


Value = str | int | float | bool


@dataclass(frozen=True)
class Typed:
    value: Value
    line: int


@dataclass
class Node:
    """A checked message: field name → its values, each with its line.

    Of a value that Triton refuses it holds what was probably meant, so that one mistake is not reported again by every
    rule that looks for the field. ``unread``: fields with a value of which that does not show.
    """

    line: int
    scalars: dict[str, list[Typed]] = field(default_factory=dict)
    messages: dict[str, list[Node]] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)

    def text(self, name: str) -> str:
        """The value of a string or enumeration field; empty where it is not set, as in protobuf."""
        return str(self.scalars[name][-1].value) if self.scalars.get(name) else ""

    def integer(self, name: str) -> int:
        """The value of an integer field; 0 where it is not set, as in protobuf."""
        return int(self.scalars[name][-1].value) if self.scalars.get(name) else 0

    def flag(self, name: str) -> bool:
        """The value of a true-or-false field; false where it is not set, as in protobuf."""
        return bool(self.scalars[name][-1].value) if self.scalars.get(name) else False

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(str(typed.value) for typed in self.scalars.get(name, ()))

    def integers(self, name: str) -> tuple[int, ...]:
        return tuple(int(typed.value) for typed in self.scalars.get(name, ()))

    def nodes(self, name: str) -> tuple[Node, ...]:
        return tuple(self.messages.get(name, ()))

    def node(self, name: str) -> Node | None:
        """The message of a field that is not repeated."""
        found = self.messages.get(name)
        return found[-1] if found else None

    def has(self, name: str) -> bool:
        """Whether the text sets the field, be it to its default."""
        return name in self.scalars or name in self.messages

    def line_of(self, name: str) -> int:
        """The line of a field's first occurrence, or the message's own line."""
        if self.scalars.get(name):
            return self.scalars[name][0].line
        return self.messages[name][0].line if self.messages.get(name) else self.line

    def entries(self, name: str) -> dict[str, Node | str]:
        """A map field (``input_map``, ``parameters``): key → its value, a string or a message."""
        found: dict[str, Node | str] = {}
        for entry in self.nodes(name):
            value = entry.node("value")
            found[entry.text("key")] = entry.text("value") if value is None else value
        return found

    def plain(self) -> dict[str, object]:
        """The message as JSON values, every field as a list."""
        scalars: dict[str, object] = {name: [typed.value for typed in values] for name, values in self.scalars.items()}
        return scalars | {name: [node.plain() for node in nodes] for name, nodes in self.messages.items()}


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """An input or output of a model.

    ``dims`` are without the batch dimension, -1 where variable. ``data_type`` is KServe's name of the type: ``FP32``,
    and ``BYTES`` for ``TYPE_STRING``. ``reshape`` is the shape that the backend sees, where it differs.
    """

    name: str
    data_type: str
    dims: tuple[int, ...]
    reshape: tuple[int, ...] | None = None
    optional: bool = False
    line: int = 0

    def shape(self, max_batch_size: int) -> tuple[int, ...]:
        """The shape that a request has, the batch dimension included where the model batches."""
        return (-1, *self.dims) if max_batch_size > 0 else self.dims

    def backend_shape(self, max_batch_size: int) -> tuple[int, ...]:
        """The same as the backend sees it: of ``reshape`` where there is one."""
        dims = self.dims if self.reshape is None else self.reshape
        return (-1, *dims) if max_batch_size > 0 else dims


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """A configuration: the fields that tritonstack works with, and ``node`` for the rest."""

    node: Node
    complaints: tuple[Complaint, ...]

    @property
    def name(self) -> str:
        """``name``, empty where Triton takes the directory's."""
        return self.node.text("name")

    @property
    def max_batch_size(self) -> int:
        """0: the model does not batch, and shapes are complete."""
        return self.node.integer("max_batch_size")

    @property
    def platform_backend(self) -> str:
        """The backend that ``platform`` means; empty where Triton has no such platform."""
        return _PLATFORM_BACKENDS.get(self.node.text("platform"), "")

    @property
    def is_ensemble(self) -> bool:
        """Whether SageMaker's front end sees an ensemble: only by ``platform: "ensemble"``."""
        return self.node.text("platform") == "ensemble"

    @property
    def backend(self) -> str:
        """The backend that serves the model (``ensemble`` for an ensemble); empty where nothing names one."""
        platform = self.node.text("platform")
        return self.node.text("backend") or _PLATFORM_BACKENDS.get(platform, platform)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return tuple(_tensor(node) for node in self.node.nodes("input"))

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return tuple(_tensor(node) for node in self.node.nodes("output"))

    @property
    def model_file(self) -> str:
        """The file in a version folder that the backend loads; empty where that is the backend's affair."""
        default = PLATFORM_FILES.get(self.node.text("platform")) or MODEL_FILES.get(self.backend, "")
        if self.backend == "fil":
            default = FIL_FILES.get(self.forest_type, "")
        return self.node.text("default_model_filename") or default

    @property
    def forest_type(self) -> str:
        """The format that backend FIL reads: ``model_type``, of which it reads the first word, or its default."""
        entry = self.node.entries("parameters").get("model_type")
        words = entry.text("string_value").split() if isinstance(entry, Node) else []
        return words[0] if words else FIL_TYPE

    @property
    def decoupled(self) -> bool:
        policy = self.node.node("model_transaction_policy")
        return policy is not None and policy.flag("decoupled")

    @property
    def steps(self) -> tuple[Node, ...]:
        scheduling = self.node.node("ensemble_scheduling")
        return scheduling.nodes("step") if scheduling else ()


def read_config(text: str) -> ModelConfig:
    """A configuration and everything about it that contradicts Triton's message definitions.

    Text that is no text format at all gives an empty configuration with one complaint.
    """
    try:
        message = parse(text)
    except PbtxtError as error:
        complaint = Complaint(line=error.line, path="", found=error.message, allowed="protobuf's text format")
        return ModelConfig(node=Node(1), complaints=(complaint,))
    complaints: list[Complaint] = []
    node = _check(message, type_name="ModelConfig", path="", complaints=complaints)
    return ModelConfig(node=node, complaints=tuple(complaints))


def _tensor(node: Node) -> Tensor:
    reshape = node.node("reshape")
    kind = node.text("data_type").removeprefix("TYPE_")
    return Tensor(
        name=node.text("name"),
        data_type="BYTES" if kind == "STRING" else kind,
        dims=node.integers("dims"),
        reshape=reshape.integers("shape") if reshape else None,
        optional=node.flag("optional"),
        line=node.line,
    )


@dataclass(frozen=True)
class FieldSpec:
    """A field's definition.

    ``type`` is a scalar's, an enumeration's or a message's name; ``group`` the oneof that it belongs to, if any.
    """

    type: str
    repeated: bool
    group: str


@functools.cache
def _definitions() -> tuple[Mapping[str, Mapping[str, FieldSpec]], Mapping[str, tuple[str, ...]]]:
    """Messages (field name → definition) and enumerations of ``model_config_fields.json``."""
    content = json.loads(importlib.resources.files(__package__).joinpath("model_config_fields.json").read_text())
    messages = {name: {f: _spec(text) for f, text in fields.items()} for name, fields in content["messages"].items()}
    return messages, {name: tuple(values) for name, values in content["enums"].items()}


@functools.cache
def first_releases() -> Mapping[str, str]:
    """``message.field`` → the first Triton release that has it, of the fields that not every release has."""
    content = json.loads(importlib.resources.files(__package__).joinpath("model_config_fields.json").read_text())
    first: Mapping[str, str] = content["since"]["fields"]
    return first


def dated_fields(node: Node, kind: str = "ModelConfig", path: str = "") -> Iterator[tuple[str, int, str]]:
    """Path, line and first release of each field of a configuration that not every release has.

    Of a message that is new itself no field is named. ``kind``: the message's name.
    """
    for name in (*node.scalars, *node.messages):
        where = f"{path}.{name}" if path else name
        since = first_releases().get(f"{kind}.{name}")
        if since is not None:
            yield where, node.line_of(name), since
            continue
        for child in node.nodes(name):
            yield from dated_fields(child, message_fields(kind)[name].type, where)


def message_fields(message: str) -> Mapping[str, FieldSpec]:
    """The fields of one of Triton's messages (``ModelConfig``): name → definition."""
    return _definitions()[0][message]


def is_message(kind: str) -> bool:
    """Whether a field's type is a message, not a scalar's or an enumeration's."""
    return kind in _definitions()[0]


def enum_members(kind: str) -> tuple[str, ...]:
    """The members of an enumeration by their numbers; none where ``kind`` is no enumeration."""
    return _definitions()[1].get(kind, ())


@functools.cache
def map_fields() -> frozenset[str]:
    """The fields of a configuration that are maps: their entries are messages with ``key`` and ``value``."""
    messages = _definitions()[0]
    specs = messages["ModelConfig"].items()
    return frozenset(name for name, spec in specs if set(messages.get(spec.type, ())) == _OF_ENTRY)


def rivals(name: str) -> frozenset[str]:
    """The fields of a configuration that may not be set together with ``name``."""
    specs = _definitions()[0]["ModelConfig"]
    group = specs[name].group if name in specs else ""
    return frozenset(other for other, spec in specs.items() if group and spec.group == group and other != name)


def _spec(text: str) -> FieldSpec:
    kind, _, group = text.partition("|")
    return FieldSpec(kind.removesuffix("*"), kind.endswith("*"), group)


def _check(message: Message, *, type_name: str, path: str, complaints: list[Complaint]) -> Node:
    specs = _definitions()[0][type_name]
    node = Node(message.line)
    groups: dict[str, str] = {}
    items: tuple[Field | EmptyList, ...] = (*message.fields, *message.empty_lists)
    for item in items:
        where = f"{path}.{item.name}" if path else item.name
        spec, meant = specs.get(item.name), ""
        if spec is None:
            wrong: tuple[str, str] | None = (f"an unknown field {item.name}", ", ".join(specs) or "no field")
        elif isinstance(item, EmptyList):
            wrong = _wrong_empty_list(item, spec)
        else:
            wrong = _misplaced(item, specs, node, groups) or _add(item, spec, node, where, complaints)
            meant = _add_meant(item.value, spec.type, node, item.name) if wrong else ""
        if wrong:
            found, allowed = wrong
            complaints.append(
                Complaint(line=item.line, column=item.column, path=where, found=found, allowed=allowed, meant=meant)
            )
    return node


def _add_meant(value: Scalar | Message, kind: str, node: Node, name: str) -> str:
    """Replace a refused value by the one that was meant; returns it in the text's spelling, or an empty text."""
    meant = None if isinstance(value, Message) or is_message(kind) or node.has(name) else _meant(value, kind)
    if meant is None:
        node.unread.add(name)
        return ""
    node.scalars[name] = [Typed(meant, value.line)]
    return quoted(str(meant)) if kind == "string" else str(meant).lower() if isinstance(meant, bool) else str(meant)


def _misplaced(
    item: Field, specs: Mapping[str, FieldSpec], node: Node, groups: dict[str, str]
) -> tuple[str, str] | None:
    """Why a field is not allowed here at all: (found, allowed). ``specs``: the fields of its message."""
    spec = specs[item.name]
    if not spec.repeated and item.listed:
        return "a list", "one value"
    if not spec.repeated and _is_set(item.name, specs, node):
        return "the field a second time", "one value"
    if spec.group and groups.setdefault(spec.group, item.name) != item.name:
        return f"{item.name} beside {groups[spec.group]}", "one of the two"
    return None


def _is_set(name: str, specs: Mapping[str, FieldSpec], node: Node) -> bool:
    """Whether protobuf's reader takes a field as given: not where one without presence has its default value.

    Presence have messages, members of a oneof, and the fields of a map's entry. Source: protobuf
    src/google/protobuf/text_format.cc ("Non-repeated field … is specified multiple times"), docs/field_presence.md.
    """
    spec = specs[name]
    if spec.group or set(specs) == _OF_ENTRY or not node.scalars.get(name):
        return node.has(name)
    first = next(iter(enum_members(spec.type)), None)
    values = [each.value for each in node.scalars[name] if each.value != first]
    return any(value or str(value) == "-0.0" for value in values)


def _wrong_empty_list(item: EmptyList, spec: FieldSpec) -> tuple[str, str] | None:
    """Why a list without elements is not allowed here: (found, allowed)."""
    messages, enums = _definitions()
    if not spec.repeated:
        return "an empty list", "a message: { … }" if spec.type in messages else _expected(spec.type, enums)
    if spec.type not in messages and not item.has_colon:
        return "an empty list without a colon before it", f"{item.name}: [ ]"
    return None


def _add(item: Field, spec: FieldSpec, node: Node, where: str, complaints: list[Complaint]) -> tuple[str, str] | None:
    """Add a field's value to its message; (found, allowed) where it is not of the field's type."""
    messages, enums = _definitions()
    if spec.type in messages:
        if not isinstance(item.value, Message):
            return "a value", "a message: { … }"
        child = _check(item.value, type_name=spec.type, path=where, complaints=complaints)
        child.line = item.line
        node.messages.setdefault(item.name, []).append(child)
        return None
    if isinstance(item.value, Message):
        return "a message", _expected(spec.type, enums)
    value = _value(item.value, spec.type, enums)
    if value is None:
        found = f'"{item.value.value}"' if item.value.kind == "string" else str(item.value.value)
        return found, _expected(spec.type, enums)
    node.scalars.setdefault(item.name, []).append(Typed(value, item.value.line))
    return None


def _value(scalar: Scalar, kind: str, enums: Mapping[str, tuple[str, ...]]) -> Value | None:
    """The value as the field's type, or None where it is none: what protobuf's text reader accepts."""
    if kind in enums:
        return _member(scalar, enums[kind])
    if kind == "string":
        return scalar.value if scalar.kind == "string" else None
    if kind == "bool":
        if scalar.kind == "word":
            return _TRUTH.get(str(scalar.value))
        return bool(scalar.value) if scalar.kind == "integer" and scalar.value in (0, 1) else None
    if kind in ("float", "double"):
        return _floating(scalar)
    low, high = _RANGES[kind]
    return scalar.value if isinstance(scalar.value, int) and low <= scalar.value <= high else None


_TYPES = {
    "BYTES": "TYPE_STRING", "STR": "TYPE_STRING", "TEXT": "TYPE_STRING", "BOOLEAN": "TYPE_BOOL", "HALF": "TYPE_FP16",
    "FLOAT16": "TYPE_FP16", "FLOAT": "TYPE_FP32", "FLOAT32": "TYPE_FP32", "DOUBLE": "TYPE_FP64", "FLOAT64": "TYPE_FP64",
    "BFLOAT16": "TYPE_BF16", "INT": "TYPE_INT32", "LONG": "TYPE_INT64",
}  # fmt: skip
"""Types by their names elsewhere: KServe's, NumPy's and PyTorch's."""
_MEMBER_PREFIXES = ("", "TYPE_", "KIND_", "MODE_")
_MEANT_TRUTH = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def _meant(scalar: Scalar, kind: str) -> Value | None:
    """The value of the field's type that another scalar probably means; None where that is unclear."""
    text, enums = str(scalar.value), _definitions()[1]
    if kind in enums:
        name = text.upper()
        elsewhere = _TYPES.get(name.removeprefix("TYPE_"), "")
        members = (text, elsewhere, *(f"{prefix}{name}" for prefix in _MEMBER_PREFIXES))
        return next((member for member in members if member in enums[kind]), None)
    if kind == "string":
        return text
    if kind == "bool":
        return _MEANT_TRUTH.get(text.lower())
    try:
        number = float(text)
    except ValueError:
        return None
    if kind in ("float", "double"):
        return number
    low, high = _RANGES[kind]
    return int(number) if number.is_integer() and low <= number <= high else None


def _member(scalar: Scalar, members: tuple[str, ...]) -> str | None:
    """An enumeration's member, by its name or by its number (none of Triton's enumerations has gaps).

    A number that no member has stays one: protobuf keeps it, and so does Triton.
    """
    if scalar.kind == "word" and scalar.value in members:
        return str(scalar.value)
    low, high = _RANGES["int32"]
    if isinstance(scalar.value, int) and low <= scalar.value <= high:
        return members[scalar.value] if 0 <= scalar.value < len(members) else str(scalar.value)
    return None


def _floating(scalar: Scalar) -> float | None:
    if scalar.kind == "word":
        text = str(scalar.value).lower()
        return float(text) if text in ("inf", "infinity", "nan") else None
    if scalar.kind == "string" or scalar.base != 10:
        return None
    try:
        return float(scalar.value)
    except OverflowError:  # an integer of more than 309 digits: infinite, as a fraction of so many is
        return math.copysign(math.inf, int(scalar.value) > 0 or -1)


def _expected(kind: str, enums: Mapping[str, tuple[str, ...]]) -> str:
    if kind in enums:
        return "one of " + ", ".join(member for member in enums[kind] if member != _NO_TYPE)
    words = {"string": "text in quotes", "bool": "true or false", "float": "a number", "double": "a number"}
    if kind in words:
        return words[kind]
    low, high = _RANGES[kind]
    return f"a whole number from {low} to {high}"


@dataclass(frozen=True, kw_only=True)
class ConfigFile:
    """The text of a configuration, whole or a fragment, and the file that it is in."""

    file: str
    text: str

    def parsed(self) -> Message:
        """The text as a message. Raises :class:`InputError` naming file and line where it is no text format."""
        try:
            return parse(self.text)
        except PbtxtError as error:
            problem = Problem(file=f"{self.file}:{error.line}", found=error.message, allowed="protobuf's text format")
            raise InputError([problem]) from error


def merge_configs(base: ConfigFile, fragments: Sequence[ConfigFile]) -> str:
    """``base`` with each fragment merged over it, in their order; the same text for the same inputs.

    A scalar replaces; a message or a repeated field that a fragment names replaces the whole field; entries of a map
    (``parameters``) replace those of the same key and leave the others. A member of a choice (``dynamic_batching``,
    ``sequence_batching``) drops the others. Without fragments the base's text is returned as it is.

    Raises :class:`InputError` as :meth:`ConfigFile.parsed`.
    """
    if not fragments:
        return base.text
    merged = base.parsed()
    for fragment in fragments:
        merged = _merged(merged, fragment.parsed())
    return to_text(merged)


def with_name(config: ConfigFile, name: str) -> str:
    """The configuration's text with another ``name``; as it is where it names none: Triton then takes the folder's."""
    message = config.parsed()
    if not message.all("name"):
        return config.text
    fields = [
        Field("name", Scalar("string", name, each.line), each.line) if each.name == "name" else each
        for each in message.fields
    ]
    return to_text(Message(tuple(fields), message.line))


def _merged(base: Message, over: Message) -> Message:
    """Put new fields where the field that they replace began, else at the end."""
    new = {name: over.all(name) for name in dict.fromkeys(each.name for each in over.fields)}
    dropped = {other for name in new for other in rivals(name)}
    for name in new.keys() & map_fields():
        new[name] = tuple({_key(entry): entry for entry in (*base.all(name), *new[name])}.values())
    fields: list[Field] = []
    for each in base.fields:
        if each.name in new:
            fields += new.pop(each.name)
            dropped.add(each.name)  # its other occurrences are replaced too
        elif each.name not in dropped:
            fields.append(each)
    return Message((*fields, *(each for left in new.values() for each in left)), base.line)


def _key(entry: Field) -> str:
    key = entry.value.last("key") if isinstance(entry.value, Message) else None
    return str(key.value) if isinstance(key, Scalar) else ""


def config_json(node: Node, kind: str = "ModelConfig") -> dict[str, Any]:
    """A configuration as Triton's HTTP front end returns it: JSON with the fields' own names and their defaults.

    As protobuf's JSON with ``preserve_proto_field_names`` and ``always_print_primitive_fields``, 64-bit numbers as
    numbers (core src/model_config_utils.cc, ModelConfigToJson): scalars that belong to no oneof, lists and maps always
    are there, messages only where they are set. ``kind``: the message's name.
    """
    found: dict[str, Any] = {}
    for name, spec in message_fields(kind).items():
        values = [_json_scalar(typed.value, spec) for typed in node.scalars.get(name, ())]
        values += [config_json(child, spec.type) for child in node.nodes(name)]
        entry = message_fields(spec.type) if is_message(spec.type) else {}
        if set(entry) == {"key", "value"}:
            unset = config_json(Node(node.line), entry["value"].type) if is_message(entry["value"].type) else None
            found[name] = {str(each["key"]): each.get("value", unset) for each in values}
        elif spec.repeated:
            found[name] = values
        elif values:
            found[name] = values[-1]
        elif not spec.group and not is_message(spec.type):
            defaults = {"bool": False, "string": "", "float": 0.0, "double": 0.0}
            found[name] = next(iter(enum_members(spec.type)), defaults.get(spec.type, 0))
    return found


def _json_scalar(value: Value, spec: FieldSpec) -> Any:
    if enum_members(spec.type) and value not in enum_members(spec.type):
        return int(value)  # a number that no member has
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
