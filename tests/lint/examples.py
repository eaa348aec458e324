"""The examples on the rules' pages, read and laid out as the folders that they show."""

from __future__ import annotations

import os
import re
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.lint.onnx_files import part, write_graph
from tritonstack.config import EndpointSettings
from tritonstack.lint.registry import base_page, front_and_page
from tritonstack.lint.view import ServingTarget

# A page names each file in a line of its own, its content in a fenced block below:
#
#     `path`:                    the whole file
#     `path`, added:             text at the end of the base's file
#     `path`, instead of `old`:  text in place of another in the base's file
#     Without `path`.            the base's file is not there
#     Folder `path`.             an empty folder
#
# A block's language is the kind of content: ``onnx-graph`` (YAML, from which a test makes an ONNX file), ``size``
# (bytes of a sparse file, and what it begins with), ``tar.gz`` (names of empty files in an archive), ``link`` (the
# target of a symbolic link), ``pipe`` (a named one), ``torchscript`` (version and expression), ``dali-pipeline``
# (operators), anything else: the text itself.


_HEAD = re.compile(r"^`(?P<path>[^`]+)`(?P<how>|, added|, instead of `(?P<old>[^`]+)`):$")
_WITHOUT = re.compile(r"^Without `(?P<path>[^`]+)`\.$")
_FOLDER_LINE = re.compile(r"^Folder `(?P<path>[^`]+?)/?`\.$")


@dataclass(frozen=True)
class ExampleFile:
    """One file of an example: its text, and the language of the block that shows it."""

    text: str
    language: str = ""


@dataclass(frozen=True)
class Example:
    """A small repository: files by their path, and empty folders."""

    files: Mapping[str, ExampleFile]
    folders: frozenset[str]


def read_example(markdown: str, base: Example) -> Example:
    """The repository that a section shows, as a change of ``base``. Raises ValueError where it cannot be read."""
    files, folders = dict(base.files), set(base.folders)
    lines = iter(markdown.splitlines())
    for line in lines:
        if match := _WITHOUT.match(line):
            if match["path"] not in files:
                raise ValueError(f"no file {match['path']} to leave out")
            del files[match["path"]]
        elif match := _FOLDER_LINE.match(line):
            folders.add(match["path"])
        elif match := _HEAD.match(line):
            content = _block(lines, match["path"])
            files[match["path"]] = _changed(files.get(match["path"]), content, how=match["how"], old=match["old"])
        elif line.startswith("```"):
            raise ValueError("a block without a line that names its file")
    return Example(files, frozenset(folders))


def _block(lines: Iterator[str], path: str) -> ExampleFile:
    opening = next((line for line in lines if line.strip()), "")
    if not opening.startswith("```"):
        raise ValueError(f"no block for {path}")
    content: list[str] = []
    for line in lines:
        if line == "```":
            return ExampleFile("".join(f"{each}\n" for each in content), opening.removeprefix("```").strip())
        content.append(line)
    raise ValueError(f"the block of {path} does not end")


def _changed(before: ExampleFile | None, content: ExampleFile, *, how: str, old: str | None) -> ExampleFile:
    if not how:
        return content
    if before is None:
        raise ValueError("the base has no such file to change")
    if old is None:
        return ExampleFile(before.text + content.text, before.language)
    if old not in before.text:
        raise ValueError(f"the base's file has no {old!r}")
    return ExampleFile(before.text.replace(old, content.text.rstrip("\n"), 1), before.language)


@dataclass(frozen=True, kw_only=True)
class Examples:
    """A rule's examples, each with the fields of the endpoint that it is linted for.

    ``also``: other rules that nothing can break this one without breaking.
    """

    bad: Example
    good: Example
    endpoint: Mapping[str, Any]
    good_endpoint: Mapping[str, Any]
    also: frozenset[str]


FIELDS = {"level", "category", "title", "allowed", "advice", "source", "base", "endpoint", "good_endpoint", "also"}


def examples_of(rule_id: str) -> Examples:
    """The examples on a rule's page: an explanation, then ``## Bad``, then ``## Good``."""
    front, page = front_and_page(rule_id)
    assert {"level", "category", "title"} <= front.keys() <= FIELDS
    text, bad, good = re.split(r"\n## (?:Bad|Good)\n", page)
    assert text.strip()
    base = Example({}, frozenset())
    if "base" in front:
        base = read_example(base_page(front["base"]), base)
    endpoint = front.get("endpoint", {})
    return Examples(
        bad=read_example(bad, base),
        good=read_example(good, base),
        endpoint=endpoint,
        good_endpoint=endpoint | front.get("good_endpoint", {}),
        also=frozenset(front.get("also", ())),
    )


FOLDER = "double"
"""The name of the folder that an example is laid out in: the one that the examples with a recipe expect."""


def lay_out(example: Example, project: Path) -> Path:
    """Write an example below ``project/model_repos`` and return its folder."""
    folder = project / "model_repos" / FOLDER
    folder.mkdir(parents=True)
    for name in example.folders:
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name, file in example.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, file)
    return folder


def target_of(fields: Mapping[str, Any]) -> ServingTarget | None:
    """The endpoint that an example is linted for, or None."""
    if not fields:
        return None
    endpoint = EndpointSettings.model_validate({"name": "example", "models": [FOLDER], **fields})
    return ServingTarget.of_endpoint(endpoint, "examples")


def _write(path: Path, file: ExampleFile) -> None:
    if file.language == "size":
        size, *begins = file.text.split()
        with path.open("wb") as stream:
            stream.write(" ".join(begins).encode())
            stream.truncate(int(size.replace("_", "")))
    elif file.language == "tar.gz":
        with tarfile.open(path, "w:gz") as archive:
            for name in file.text.split():
                archive.addfile(tarfile.TarInfo(name))
    elif file.language == "pipe":
        os.mkfifo(path)
    elif file.language == "link":
        path.symlink_to(file.text.strip())
    elif file.language == "onnx-graph":
        write_graph(path, yaml.safe_load(file.text))
    elif file.language == "torchscript":
        write_torchscript(path, **yaml.safe_load(file.text))
    elif file.language == "dali-pipeline":
        path.write_bytes(pipeline(yaml.safe_load(file.text)))
    else:
        path.write_text(file.text, encoding="utf-8")


def write_torchscript(path: Path, *, version: int, code: str) -> None:
    """A TorchScript file whose ``forward`` gives an expression of ``x``; without weights, which no rule reads."""
    head = "class Net(Module):\n  def forward(self: __torch__.Net,\n    x: Tensor) -> Tensor:\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/code/__torch__.py", f"{head}    return {code}\n")
        archive.writestr("model/version", f"{version}\n")


def pipeline(operators: Sequence[Mapping[str, Any]]) -> bytes:
    """A serialised DALI pipeline of operators: the names of each and of its arguments, without values."""
    bodies = (
        part(1, each["name"].encode()) + b"".join(part(4, part(1, one.encode())) for one in each["arguments"])
        for each in operators
    )
    return b"".join(part(5, body) for body in bodies)
