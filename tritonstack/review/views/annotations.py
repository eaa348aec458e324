"""Lines of a pull request that cause changes, with what they cause: workflow commands of GitHub Actions.

A step shows ten of each level, so what matters most comes first and the rest is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonstack.errors import workflow_command
from tritonstack.review.change import Level
from tritonstack.review.document import EnvironmentEntry, ReviewDocument
from tritonstack.review.snapshot import ENVIRONMENTS, PIPELINE, PIPELINE_FILE, settings_file
from tritonstack.review.stored import changed_lines

ACCESS = "pipeline-access"
"""The stack that a pipeline adds to each environment."""
MODELS = "model_repos"
MOST = 10
"""Annotations of one level that a step shows."""


@dataclass(frozen=True, kw_only=True)
class Annotation:
    """A message next to lines of a file."""

    level: Level  # how closely to look
    title: str  # what it is about
    message: str  # what the line causes
    file: str = ""  # from the project's folder; empty where no line of a file that exists causes the change
    line: int = 0  # the first; 0 without a file
    end_line: int = 0  # the last; 0 without a file

    @property
    def command(self) -> str:
        """The workflow command."""
        kind = "warning" if self.level in {Level.LOOK, Level.CLOSE} else "notice"
        place = {"file": self.file, "line": self.line, "endLine": self.end_line, "title": self.title}
        return workflow_command(kind, self.message, place)


def annotations_of(
    document: ReviewDocument, *, project: Path, folders: Mapping[str, str] | None = None
) -> tuple[Annotation, ...]:
    """Annotations on the lines of settings and models that changed since the base, what matters most first.

    ``folders``: model → its folder in ``model_repos``, where the two names differ.
    """
    places = changed_lines(document.base.commit, repository=project)
    changing = [each for each in document.environments if each.effect is not None]
    # A file or the start of its name, and a title → levels and messages.
    causes: dict[tuple[str, str], list[tuple[Level, str]]] = {}
    for each in changing:
        for start, title, level, message in _causes(each, folders or {}):
            causes.setdefault((start, title), []).append((level, message))
    order = list(Level)
    found = []
    for (start, title), given in causes.items():
        file = next((name for name in places if name.startswith(start)), "")
        level = max((level for level, _ in given), key=order.index)
        message = "\n".join(dict.fromkeys(message for _, message in given))
        # Of settings every place is shown, of other files the first.
        for first, last in places.get(file, ())[: None if file.startswith(f"{ENVIRONMENTS}/") else 1]:
            found.append(
                Annotation(level=level, title=f"review: {title}", message=message, file=file, line=first, end_line=last)
            )
    # Of a removed file no line can be shown.
    gone = [each for each in changing if not (project / settings_file(each.name)).exists()]
    for each in gone if found else changing:
        found.append(Annotation(level=each.level, title=f"review: {each.name}", message=_message(each)))
    return tuple(sorted(found, key=lambda each: -order.index(each.level)))


def _causes(environment: EnvironmentEntry, folders: Mapping[str, str]) -> Iterator[tuple[str, str, Level, str]]:
    """File or start of its name, title, level and message: of all that may have caused what changes."""
    name, level, message = environment.name, environment.level, _message(environment)
    if name != PIPELINE:
        yield settings_file(name), name, level, message
    if name == PIPELINE or any(each.name == ACCESS for each in environment.stacks):
        yield PIPELINE_FILE, "pipeline", level, message
    for model in environment.models:
        folder = folders.get(model.model, model.model)
        yield f"{MODELS}/{folder}/", f"model {folder}", Level.PLAIN, f"{name}: {model.sentence}"


def _message(environment: EnvironmentEntry) -> str:
    return f"{environment.name}: {environment.sentence}"


def commands_of(annotations: Sequence[Annotation]) -> Iterator[str]:
    """The workflow commands; where there are more of a level than are shown, the last one counts the rest."""
    commands = [each.command for each in annotations]
    for kind in ("::warning ", "::notice "):
        mine = [each for each in commands if each.startswith(kind)]
        if len(mine) <= MOST:
            yield from mine
        else:
            yield from mine[: MOST - 1]
            yield f"{kind}title=review::{len(mine) - MOST + 1} more lines cause changes; the report has all of them"
