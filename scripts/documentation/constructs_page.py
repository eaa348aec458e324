"""``docs/reference/constructs.md``: what ``constructs_lib`` offers to other CDK apps, from its docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import UnionType

import constructs_lib
from scripts.documentation.markdown import code, head, link, table

TEXT = (
    "[The wheel](../getting-started.md#the-wheel) with its extra `cdk`, `import constructs_lib`. Properties are "
    "keyword-only, after scope and id. "
    "[`MultiModelEndpoint`](#multimodelendpoint) is the one to begin with; "
    "[an example](../../examples/bring-your-own/README.md) is under fifty lines.\n"
)
SECTION = re.compile(r"^(Args|Attributes|Raises|Returns):\n((?:^(?:[ ]+.*)?\n?)*)", re.MULTILINE)
ENTRY = re.compile(r"^    (\*{0,2}\w+): ((?:.*)(?:\n {5,}.*)*)", re.MULTILINE)


def constructs_page() -> str:
    """The whole page."""
    names = sorted(constructs_lib.__all__)
    classes = {name: getattr(constructs_lib, name) for name in names}
    parts = [
        head("Constructs", source="`constructs_lib`'s signatures and docstrings"),
        TEXT,
        table(["name", "what it is"], [(link(code(name), name), _first(each)) for name, each in classes.items()]),
    ]
    for name, each in classes.items():
        parts += _class(name, each)
    return "\n".join(parts)


def _class(name: str, each: type | UnionType) -> Iterator[str]:
    yield f"## {name}\n"
    if isinstance(each, UnionType):
        yield f"{_first(each)}\n"
        return
    text = inspect.getdoc(each) or ""
    yield f"{_prose(text)}\n"
    rows = list(_parameters(each))
    if rows:
        yield table(["property", "type", "meaning"], rows)
    properties = {row[0] for row in rows}
    attributes = {
        key: documentation for key, documentation in _entries(text, "Attributes").items() if code(key) not in properties
    }
    if attributes:
        yield table(["attribute", "meaning"], [(code(key), documentation) for key, documentation in attributes.items()])
    methods = [
        (code(f"{key}{_signature(member)}"), _first(member)) for key, member in _members(each) if inspect.getdoc(member)
    ]
    if methods:
        yield table(["method", "what it does"], methods)


def _parameters(each: type) -> Iterator[tuple[str, str, str]]:
    maker = each.__init__  # type: ignore[misc]  # the class's own, to be read and not called
    documentation = _entries(inspect.getdoc(maker) or "", "Args") | _entries(inspect.getdoc(each) or "", "Attributes")
    for parameter in inspect.signature(maker).parameters.values():
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:  # scope and id of a construct
            continue
        meaning = documentation.get(parameter.name, "")
        if parameter.default is not inspect.Parameter.empty and "efault" not in meaning:
            meaning = f"{meaning} Default: {parameter.default!r}.".strip()
        yield code(parameter.name), code(str(parameter.annotation)), meaning


def _members(each: type) -> Iterator[tuple[str, object]]:
    """Public methods, its own and those of our base classes; the first that is found counts."""
    seen = set()
    for owner in each.__mro__:
        if owner.__module__.partition(".")[0] in ("constructs_lib", "tritonstack"):
            for name, member in vars(owner).items():
                is_method = isinstance(member, staticmethod | classmethod | type(_first))
                if is_method and name[0] != "_" and name not in seen:
                    seen.add(name)
                    yield name, getattr(each, name)


def _signature(member: object) -> str:
    if not callable(member):
        return ""
    names = [each.name for each in inspect.signature(member).parameters.values() if each.name not in ("self", "cls")]
    return f"({', '.join(names)})"


def _first(each: object) -> str:
    """The first sentence or sentences: the docstring's first paragraph; of a union, its members."""
    if isinstance(each, UnionType):
        return " or ".join(code(member.__name__) for member in each.__args__)
    return " ".join((inspect.getdoc(each) or "").partition("\n\n")[0].replace("``", "`").split())


def _prose(text: str) -> str:
    """A docstring without its lists of arguments and attributes."""
    return re.sub(r"``", "`", SECTION.sub("", text)).strip()


def _entries(text: str, section: str) -> dict[str, str]:
    """Name → meaning, of the ``Args:`` or ``Attributes:`` of a docstring."""
    for found in SECTION.finditer(text):
        if found[1] == section:
            return {
                name: " ".join(documentation.replace("``", "`").split())
                for name, documentation in ENTRY.findall(found[2])
            }
    return {}
