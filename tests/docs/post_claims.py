"""What the five published posts state or do, and the place in this repository that shows each.

``post_claims.yaml`` has a verdict for each claim, with its places:

- ``shown``: a committed file or page shows it, with the claim's own value, or its name beside ours;
- ``setting``: nothing committed has it, and a setting or a field gives it;
- ``declined``: it is not here, and docs/not-here.md has the reason;
- ``open``: what is missing, in words.

A place is one of

- ``<file>: <text>``: the text stands in the file, whatever line breaks and blanks are in it;
- ``<page>.md#<anchor>: <text>``: the same within the section of that heading;
- ``<file>#<field>: <value>``: the field of a YAML or JSON file has the value, or is a list that contains it. A field is
  ``endpoints[images].models``: ``[…]`` picks the item with that ``name`` (or position) of a list, and of a mapping the
  one value with that ``Type``.

``python -m tests.docs.post_claims`` prints how many claims have which verdict, before and now.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, model_validator

from tests.docs.pages import tokens
from tests.e2e.project import REPOSITORY
from tritonstack.cli.docs import heading_anchor

DATA = Path(__file__).with_name("post_claims.yaml")
POSTS = ("onnx", "tensorrt", "ensemble", "python", "load-test")
VERDICTS = ("shown", "setting", "weak", "missing", "open", "declined")
DECLINED = "docs/not-here.md"
_STEP = re.compile(r"(?P<key>[^.\[\]]+)|\[(?P<item>[^\]]+)\]")

Places = tuple[dict[str, Any], ...]


class Claim(BaseModel):
    """One claim of a post; exactly one verdict, each but ``open`` with its places."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    claim: str
    before: Literal["shown", "setting", "weak", "missing"]
    shown: Places = ()
    setting: Places = ()
    declined: Places = ()
    open: str = ""

    @model_validator(mode="after")
    def _one_verdict(self) -> Claim:
        if sum(map(bool, (self.shown, self.setting, self.declined, self.open))) != 1:
            raise ValueError(f"{self.claim}: exactly one of shown, setting, declined and open")
        if any(len(place) != 1 for place in self.places):
            raise ValueError(f"{self.claim}: a place is one file with what stands there")
        return self

    @property
    def verdict(self) -> str:
        """Shown, setting, declined or open."""
        return next(name for name in ("shown", "setting", "declined", "open") if getattr(self, name))

    @property
    def places(self) -> Places:
        """Where to look."""
        return self.shown or self.setting or self.declined


@functools.cache
def claims() -> dict[str, tuple[Claim, ...]]:
    """Post → its claims."""
    read = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    return {post: tuple(Claim.model_validate(each) for each in listed) for post, listed in read.items()}


def wrong(place: str, expected: Any) -> str | None:
    """What is wrong with a place; None where it shows what is expected."""
    file, _, inside = place.partition("#")
    path = REPOSITORY / file
    if not path.is_file():
        return f"{file} is not there"
    if not inside:
        there = _plain(str(expected)) in _plain(_text(file))
        return None if there else f"{file} has no «{expected}»"
    if path.suffix == ".md":
        section = sections(file).get(inside)
        if section is None:
            return f"{file} has no heading #{inside}"
        return None if _plain(str(expected)) in _plain(section) else f"{place} has no «{expected}»"
    try:
        found = field(_document(file), inside)
    except LookupError as error:
        return f"{place}: {error}"
    same = found == expected or (isinstance(found, list) and expected in found)
    return None if same else f"{place} is {found!r}, not {expected!r}"


@functools.cache
def sections(page: str) -> dict[str, str]:
    """Anchor → the text below its heading, up to the next heading."""
    lines = _text(page).splitlines()
    listed = tokens(page)
    starts = [
        (token.map[1], heading_anchor(listed[number + 1].content))
        for number, token in enumerate(listed)
        if token.type == "heading_open" and token.map
    ]
    ends = [start - 1 for start, _ in starts[1:]] + [len(lines)]
    return {anchor: "\n".join(lines[start:end]) for (start, anchor), end in zip(starts, ends, strict=True)}


def field(document: Any, path: str) -> Any:
    """The value of ``endpoints[images].scaling.minimum`` in a document.

    Raises LookupError: a step leads to nothing, or to several values.
    """
    value = document
    for step in _STEP.finditer(path):
        key, item = step["key"], step["item"]
        if key is not None:
            if not isinstance(value, dict) or key not in value:
                raise LookupError(f"no field {key} of {path}")
            value = value[key]
            continue
        if isinstance(value, list):
            matching = [each for each in value if isinstance(each, dict) and each.get("name") == item]
            if item.isdigit():
                matching = value[int(item) : int(item) + 1]
        else:
            matching = [each for each in value.values() if isinstance(each, dict) and each.get("Type") == item]
        if len(matching) != 1:
            raise LookupError(f"{len(matching)} items [{item}] of {path}")
        [value] = matching
    return value


@functools.cache
def _text(file: str) -> str:
    return (REPOSITORY / file).read_text(encoding="utf-8")


@functools.cache
def _document(file: str) -> Any:
    return yaml.safe_load(_text(file))  # JSON is YAML


def _plain(text: str) -> str:
    return " ".join(text.split())


def summary() -> str:
    """How many claims have which verdict, before and now."""
    every = [claim for listed in claims().values() for claim in listed]
    verdicts: dict[str, list[str]] = {
        "before": [claim.before for claim in every],
        "now": [claim.verdict for claim in every],
    }
    rows = [["", *VERDICTS]]
    rows += [[name, *(str(listed.count(each)) for each in VERDICTS)] for name, listed in verdicts.items()]
    return "\n".join("".join(f"{cell:>10}" for cell in row) for row in rows)


if __name__ == "__main__":
    print(f"{summary()}\n")
    for post, listed in claims().items():
        for each in listed:
            if each.open:
                print(f"open: {post}: {each.claim}: {each.open}")
