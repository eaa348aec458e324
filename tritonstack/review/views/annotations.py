"""Lines of a pull request that cause changes, with what they cause: workflow commands of GitHub Actions.

Source: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands (setting a warning or
notice message). A step shows ten of each level, so what matters most comes first and the rest is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonstack.review.change import Effect
from tritonstack.review.document import EnvironmentEntry, ReviewDocument
from tritonstack.review.report import Level
from tritonstack.review.snapshot import PIPELINE
from tritonstack.review.stored import changed_lines

SETTINGS = "environments"
PIPELINE_SETTINGS = "pipeline.yaml"
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
_STACKS = {
    "artifacts": "artifacts",
    "builds": "builds",
    "network": "network",
    "dashboard": "observability",
    "alarms": "observability",
}
"""Section of an environment file → the stack that it makes; any other section is of all of them."""

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
        *(one for each in changing for one in _settings(each, places, project)),
        *_pipeline(changing, places),
        *_models(changing, places, folders or {}),
        *_code(changing, places),
        *_constructs(changing, places),
    ]
    for each in changing:
        # Of a removed file no line can be shown.
        file = PIPELINE_SETTINGS if each.name == PIPELINE else f"{SETTINGS}/{each.name}.yaml"
        if not (project / file).exists():
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


def _settings(environment: EnvironmentEntry, places: Places, project: Path) -> Iterator[Annotation]:
    """Next to the changed lines of an environment file."""
    file = f"{SETTINGS}/{environment.name}.yaml"
    lines: dict[str, int] = {}
    for place in places.get(file, ()):
        stacks = {stack for line in range(place[0], place[1] + 1) for stack in _stacks_of(project / file, line)}
        named = sorted(stacks & {each.name for each in environment.stacks})
        message = _of_stacks(environment, named) if named else _verdict(environment)
        first = lines.setdefault(message, place[0])
        message = message if first == place[0] else f"Part of the message beside line {first}."
        yield _at(file, place, environment.level, environment.name, message)


def _stacks_of(file: Path, line: int) -> Iterator[str]:
    """The stacks that a line of an environment file makes; none where it is of all of them."""
    from tritonstack.config.yaml_loader import read_yaml  # noqa: PLC0415 - only where a file of settings changed

    document = read_yaml(file)
    locations = [location for location, at in document.lines.items() if location and at <= line]
    if not locations:
        return
    # The value that begins last at or before the line; of several on one line the innermost.
    location = max(locations, key=lambda each: (document.lines[each], len(each)))
    if location[0] == "endpoints" and len(location) > 1:
        endpoint = document.value["endpoints"][location[1]]
        if isinstance(endpoint, dict):
            yield f"serving-{endpoint.get('name')}"
    elif location[0] in _STACKS:
        yield _STACKS[str(location[0])]


def _pipeline(changing: Sequence[EnvironmentEntry], places: Places) -> Iterator[Annotation]:
    """Next to the first changed line of the pipeline's settings."""
    moved = [each for each in changing if each.name == PIPELINE or any(one.name == ACCESS for one in each.stacks)]
    if moved and PIPELINE_SETTINGS in places:
        lines = (
            f"{each.name}: {_verdict(each) if each.name == PIPELINE else _of_stacks(each, [ACCESS])}" for each in moved
        )
        yield _at(PIPELINE_SETTINGS, places[PIPELINE_SETTINGS][0], _closest(moved), "pipeline", "\n".join(lines))


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
    message = "\n".join(f"{each.name}: {_verdict(each)}" for each in moved)
    for name, lines in places.items() if moved else ():
        if name.startswith(CONSTRUCTS):
            text = f"This change as a whole:\n{message}"
            yield _at(name, lines[0], _closest(moved), "templates change", text)


def _of_stacks(environment: EnvironmentEntry, stacks: Sequence[str]) -> str:
    """What happens in some stacks of an environment."""
    effects = Counter(each.effect for each in environment.resources if each.stack in stacks)
    counts = ", ".join(f"{effects[effect]} {effect.value}" for effect in Effect if effects[effect])
    sentences = [f"{', '.join(stacks)}: {counts}."] if counts else []
    sentences += [sentence for each in environment.traffic if each.stack in stacks for sentence in each.sentences]
    wider = sum(each.kind == "wider" for each in environment.permissions if each.stack in stacks)
    if wider:
        sentences.append(f"Permissions that widen: {wider}.")
    sentences += [f"{each.name} {each.sentence}." for each in environment.openings if each.stack in stacks]
    if any(each.minimum_before != each.minimum_after for each in environment.costs):
        sentences.append(f"Cost {environment.cost.sentences[0]}.")
    return " ".join(sentences) or _verdict(environment)


def _verdict(environment: EnvironmentEntry) -> str:
    return "; ".join(each.text for each in environment.verdict)


def _closest(environments: Sequence[EnvironmentEntry]) -> Level:
    return max((each.level for each in environments), key=list(Level).index)
