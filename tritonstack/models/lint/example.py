"""The small repositories that a rule's page shows, read from its Markdown.

A page names each file in a line of its own, its content in a fenced block below:

    `path`:                    the whole file
    `path`, added:             text at the end of the base's file
    `path`, instead of `old`:  text in place of another in the base's file
    Without `path`.            the base's file is not there
    Folder `path`.             an empty folder

A block's language says what the content is: ``onnx-graph`` (YAML, from which a test makes an ONNX file), ``size``
(a file of so many bytes, sparse), ``tar.gz`` (an archive of empty files, by their names), ``link`` (a symbolic link, by
where it leads), ``torchscript`` (its version and an expression), ``dali-pipeline`` (operators and their arguments),
anything else: the text itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_HEAD = re.compile(r"^`(?P<path>[^`]+)`(?P<how>|, added|, instead of `(?P<old>[^`]+)`):$")
_WITHOUT = re.compile(r"^Without `(?P<path>[^`]+)`\.$")
_FOLDER = re.compile(r"^Folder `(?P<path>[^`]+?)/?`\.$")


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
        elif match := _FOLDER.match(line):
            folders.add(match["path"])
        elif match := _HEAD.match(line):
            content = _block(lines, match["path"])
            files[match["path"]] = _changed(files.get(match["path"]), content, how=match["how"], old=match["old"])
        elif line.startswith("```"):
            raise ValueError("a block without a line that names its file")
    return Example(files, frozenset(folders))


def _block(lines: Iterator[str], path: str) -> ExampleFile:
    """The fenced block that comes next."""
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
