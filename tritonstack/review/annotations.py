"""Lines of a pull request that caused changes, with what they cause: workflow commands of GitHub Actions.

Source: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands (setting a warning or
notice message). A step shows ten of each level, so what matters most comes first and the rest is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonstack.review.document import ReviewDocument
from tritonstack.review.entries import EnvironmentEntry
from tritonstack.review.pipeline_side import PIPELINE
from tritonstack.review.report import BY_WEIGHT, Level
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
"""What makes templates, beside the settings themselves."""
MOST = 10
"""Annotations of one level that a step shows."""
# Which stack a section of an environment's settings makes; any other is of all of them.
_STACKS = {
    "artifacts": "artifacts",
    "builds": "builds",
    "network": "network",
    "dashboard": "observability",
    "alarms": "observability",
}

Places = Mapping[str, tuple[tuple[int, int], ...]]


@dataclass(frozen=True, kw_only=True)
class Annotation:
    """What is said beside a line.

    Attributes:
        level: how closely to look.
        file: from the project's folder; empty where no line that is left causes it.
        line: the first; 0 without a file.
        end_line: the last; 0 without a file.
        title: what it is about.
        message: what the line causes.
    """

    level: Level
    file: str
    line: int
    end_line: int
    title: str
    message: str

    @property
    def command(self) -> str:
        """The workflow command."""
        kind = "warning" if self.level in {Level.LOOK, Level.CLOSE} else "notice"
        places: dict[str, object] = {"title": self.title}
        if self.file:
            places = {"file": self.file, "line": self.line, "endLine": self.end_line, **places}
        given = ",".join(f"{name}={_property(str(value))}" for name, value in places.items())
        return f"::{kind} {given}::{_escaped(self.message)}"


def annotations_of(
    document: ReviewDocument, *, project: Path, folders: Mapping[str, str] | None = None
) -> tuple[Annotation, ...]:
    """What to say beside the lines that changed since the base.

    Args:
        document: the report.
        project: the project's folder.
        folders: model → its folder in ``model_repos``; None: each has its own.
    """
    places = changed_lines(document.base.commit, repository=project)
    changing = [each for each in document.environments if each.effect is not None]
    found = [
        *(one for each in changing for one in _settings(each, places, project)),
        *_pipeline(changing, places),
        *_models(changing, places, folders or {}),
        *_code(changing, places),
        *_constructs(changing, places),
        *_lost(changing, project),
    ]
    if not found:
        found = [_without_place(each) for each in changing]
    order = list(reversed(Level))
    return tuple(sorted(found, key=lambda each: order.index(each.level)))


def commands_of(annotations: Sequence[Annotation]) -> Iterator[str]:
    """The workflow commands; where there are more of a level than are shown, the last one counts the rest."""
    commands = [each.command for each in annotations]
    for kind in ("::warning ", "::notice "):
        mine = [each for each in commands if each.startswith(kind)]
        if len(mine) <= MOST:
            yield from mine
            continue
        yield from mine[: MOST - 1]
        rest = len(mine) - MOST + 1
        yield f"{kind}title=review::{rest} more lines cause changes; the report tells all of them"


def _settings(environment: EnvironmentEntry, places: Places, project: Path) -> Iterator[Annotation]:
    """Beside the changed lines of an environment's settings."""
    file = f"{SETTINGS}/{environment.name}.yaml"
    said: dict[str, int] = {}
    for first, last in places.get(file, ()):
        stacks = {stack for line in range(first, last + 1) for stack in _stacks_of(project / file, line)}
        named = sorted(stacks & {each.name for each in environment.stacks})
        message = _told(environment, named) if named else _verdict(environment)
        where = said.setdefault(message, first)
        yield Annotation(
            level=environment.level,
            file=file,
            line=first,
            end_line=last,
            title=f"review: {environment.name}",
            message=message if where == first else f"Part of what is said beside line {where}.",
        )


def _pipeline(changing: Sequence[EnvironmentEntry], places: Places) -> Iterator[Annotation]:
    """Beside the first changed line of the pipeline's settings: what they do to it, and to each environment."""
    moved = [each for each in changing if each.name == PIPELINE or any(one.name == ACCESS for one in each.stacks)]
    if moved and PIPELINE_SETTINGS in places:
        first, last = places[PIPELINE_SETTINGS][0]
        told = (f"{each.name}: {_verdict(each) if each.name == PIPELINE else _told(each, [ACCESS])}" for each in moved)
        yield Annotation(
            level=max((each.level for each in moved), key=list(Level).index),
            file=PIPELINE_SETTINGS,
            line=first,
            end_line=last,
            title="review: pipeline",
            message="\n".join(told),
        )


def _lost(changing: Sequence[EnvironmentEntry], project: Path) -> Iterator[Annotation]:
    """Of environments whose file is gone: a line of it cannot be shown."""
    for each in changing:
        file = PIPELINE_SETTINGS if each.name == PIPELINE else f"{SETTINGS}/{each.name}.yaml"
        if not (project / file).exists():
            yield _without_place(each)


def _without_place(environment: EnvironmentEntry) -> Annotation:
    title = f"review: {environment.name}"
    return Annotation(level=environment.level, file="", line=0, end_line=0, title=title, message=_verdict(environment))


def _stacks_of(file: Path, line: int) -> Iterator[str]:
    """The stacks that a line of an environment's settings makes; none where it is of all of them."""
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


def _models(changing: Sequence[EnvironmentEntry], places: Places, folders: Mapping[str, str]) -> Iterator[Annotation]:
    """Beside the first changed line of each model's folder."""
    told: dict[str, dict[str, Level]] = {}
    for environment in changing:
        for each in environment.models:
            sentences = told.setdefault(folders.get(each.model, each.model), {})
            sentences[f"{environment.name}: {each.sentence}"] = environment.level
    for folder, sentences in sorted(told.items()):
        mine = [(file, lines[0]) for file, lines in places.items() if file.startswith(f"{MODELS}/{folder}/")]
        for file, (first, last) in mine[:1]:
            yield Annotation(
                level=Level.PLAIN,
                file=file,
                line=first,
                end_line=last,
                title=f"review: model {folder}",
                message="\n".join(sentences),
            )


def _code(changing: Sequence[EnvironmentEntry], places: Places) -> Iterator[Annotation]:
    """Beside the first changed line of a file that functions run."""
    users: dict[str, list[str]] = {}
    for environment in changing:
        for stack in environment.stacks:
            for asset in stack.files:
                for name in (*asset.new, *asset.changed):
                    users.setdefault(name, []).append(f"{environment.name}/{stack.name}/{asset.path}")
    for name, assets in sorted(users.items()):
        for first, last in places.get(name, ())[:1]:
            message = f"Other code of {', '.join(assets)}."
            title = "review: code of functions"
            yield Annotation(level=Level.PLAIN, file=name, line=first, end_line=last, title=title, message=message)


def _constructs(changing: Sequence[EnvironmentEntry], places: Places) -> Iterator[Annotation]:
    """Beside the first changed line of each file that makes templates: what all of them together lead to."""
    moved = [each for each in changing if each.resources]
    if not moved:
        return
    level = max((each.level for each in moved), key=list(Level).index)
    message = "\n".join(f"{each.name}: {_verdict(each)}" for each in moved)
    for name, lines in places.items():
        if name.startswith(CONSTRUCTS):
            first, last = lines[0]
            yield Annotation(
                level=level,
                file=name,
                line=first,
                end_line=last,
                title="review: templates change",
                message=f"This change as a whole:\n{message}",
            )


def _told(environment: EnvironmentEntry, stacks: Sequence[str]) -> str:
    """What happens in some stacks of an environment."""
    effects = Counter(each.effect for each in environment.resources if each.stack in stacks)
    counts = ", ".join(f"{effects[effect]} {effect.value}" for effect in BY_WEIGHT if effects[effect])
    said = [f"{', '.join(stacks)}: {counts}."] if counts else []
    said += [sentence for each in environment.traffic if each.stack in stacks for sentence in each.sentences]
    wider = sum(each.kind == "wider" for each in environment.permissions if each.stack in stacks)
    if wider:
        said.append(f"Permissions that widen: {wider}.")
    said += [f"{each.name} {each.sentence}." for each in environment.openings if each.stack in stacks]
    if any(each.minimum_before != each.minimum_after for each in environment.costs):
        said.append(f"Cost {environment.cost.sentences[0]}.")
    return " ".join(said) or _verdict(environment)


def _verdict(environment: EnvironmentEntry) -> str:
    return "; ".join(each.text for each in environment.verdict)


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
