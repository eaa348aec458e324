"""Lines of a pull request that cause changes, with what they cause: workflow commands of GitHub Actions.

Source: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands (setting a warning or
notice message). A step shows ten of each level, so what matters most comes first and the rest is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonstack.review.document import EnvironmentEntry, ReviewDocument
from tritonstack.review.report import Level
from tritonstack.review.settings import PIPELINE_FILE, settings_file
from tritonstack.review.snapshot import PIPELINE
from tritonstack.review.stored import changed_lines

ACCESS = "pipeline-access"
"""The stack that a pipeline adds to each environment."""
MODELS = "model_repos"
CONSTRUCTS = (
    "constructs_lib/",
    "stacks/",
    "tritonstack/catalogue/",
    "tritonstack/pipeline/",
    "tritonstack/config/",
    "tritonstack/naming.py",
    "tritonstack_stacks.py",
    "requirements/main.txt",
    "requirements.txt",
    "app.py",
    "cdk.json",
)
"""What templates are made from, beside the settings."""
MOST = 10
"""Annotations of one level that a step shows."""
Places = Mapping[str, tuple[tuple[int, int], ...]]
"""File → first and last line of each changed place."""


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
        places: dict[str, object] = {"title": self.title}
        if self.file:
            places = {"file": self.file, "line": self.line, "endLine": self.end_line, **places}
        given = ",".join(
            f"{name}={_escaped(str(value)).replace(':', '%3A').replace(',', '%2C')}" for name, value in places.items()
        )
        return f"::{kind} {given}::{_escaped(self.message)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def annotations_of(
    document: ReviewDocument, *, project: Path, folders: Mapping[str, str] | None = None
) -> tuple[Annotation, ...]:
    """Annotations on the lines that changed since the base, what matters most first.

    Args:
        document: the report.
        project: the project's folder.
        folders: model → its folder in ``model_repos``, where the two names differ.
    """
    places = changed_lines(document.base.commit, repository=project)
    changing = [each for each in document.environments if each.effect is not None]
    found = [
        *(one for each in changing for one in _settings(each, places)),
        *_pipeline(changing, places),
        *_models(changing, places, folders or {}),
        *_code(changing, places),
        *_constructs(changing, places),
    ]
    for each in changing:
        # Of a removed file no line can be shown.
        if not (project / settings_file(each.name)).exists():
            found.append(_without_place(each))
    order = list(reversed(Level))
    return tuple(sorted(found or map(_without_place, changing), key=lambda each: order.index(each.level)))


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


def _without_place(environment: EnvironmentEntry) -> Annotation:
    return Annotation(level=environment.level, title=f"review: {environment.name}", message=_verdict(environment))


def _at(file: str, place: tuple[int, int], level: Level, title: str, message: str) -> Annotation:
    return Annotation(
        level=level, file=file, line=place[0], end_line=place[1], title=f"review: {title}", message=message
    )


def _settings(environment: EnvironmentEntry, places: Places) -> Iterator[Annotation]:
    """Next to the changed lines of an environment file."""
    file = settings_file(environment.name)
    for place in places.get(file, ()) if environment.name != PIPELINE else ():
        yield _at(file, place, environment.level, environment.name, _verdict(environment))


def _pipeline(changing: Sequence[EnvironmentEntry], places: Places) -> Iterator[Annotation]:
    """Next to the first changed line of the pipeline's settings."""
    moved = [each for each in changing if each.name == PIPELINE or any(one.name == ACCESS for one in each.stacks)]
    if moved and PIPELINE_FILE in places:
        yield _at(PIPELINE_FILE, places[PIPELINE_FILE][0], _closest(moved), "pipeline", _verdicts(moved))


def _models(changing: Sequence[EnvironmentEntry], places: Places, folders: Mapping[str, str]) -> Iterator[Annotation]:
    """Next to the first changed line of each model's folder."""
    sentences: dict[str, dict[str, None]] = {}
    for environment in changing:
        for each in environment.models:
            mine = sentences.setdefault(folders.get(each.model, each.model), {})
            mine[f"{environment.name}: {each.sentence}"] = None
    for folder, lines in sorted(sentences.items()):
        file = next((file for file in places if file.startswith(f"{MODELS}/{folder}/")), None)
        if file is not None:
            yield _at(file, places[file][0], Level.PLAIN, f"model {folder}", "\n".join(lines))


def _code(changing: Sequence[EnvironmentEntry], places: Places) -> Iterator[Annotation]:
    """Next to the first changed line of a file that functions run."""
    users: dict[str, list[str]] = {}
    for environment in changing:
        for stack in environment.stacks:
            for asset in stack.files:
                for name in (*asset.new, *asset.changed):
                    users.setdefault(name, []).append(f"{environment.name}/{stack.name}/{asset.path}")
    for name, assets in sorted(users.items()):
        if name in places:
            message = f"Other code of {', '.join(assets)}."
            yield _at(name, places[name][0], Level.PLAIN, "code of functions", message)


def _constructs(changing: Sequence[EnvironmentEntry], places: Places) -> Iterator[Annotation]:
    """Next to the first changed line of each file that templates are made from: the verdict of every environment."""
    moved = [each for each in changing if each.resources]
    for name, lines in places.items() if moved else ():
        if name.startswith(CONSTRUCTS):
            text = f"This change as a whole:\n{_verdicts(moved)}"
            yield _at(name, lines[0], _closest(moved), "templates change", text)


def _verdict(environment: EnvironmentEntry) -> str:
    return "; ".join(each.text for each in environment.verdict)


def _verdicts(environments: Sequence[EnvironmentEntry]) -> str:
    return "\n".join(f"{each.name}: {_verdict(each)}" for each in environments)


def _closest(environments: Sequence[EnvironmentEntry]) -> Level:
    return max((each.level for each in environments), key=list(Level).index)
