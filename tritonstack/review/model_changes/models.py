"""Models that a change adds, removes, rebuilds, rolls back or moves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from tritonstack.models.manifest import python_target
from tritonstack.naming import DIGEST_PATTERN, RECORDS_TYPE, Platform, endpoint_of_records
from tritonstack.review.document import ModelEntry
from tritonstack.review.endpoints import ENDPOINT
from tritonstack.review.intrinsics import assets_in
from tritonstack.review.snapshot import (
    PIPELINE,
    EnvironmentSnapshot,
    Json,
    Resource,
    StackSnapshot,
    settings_file,
)

_DIGEST = re.compile(DIGEST_PATTERN)


@dataclass(frozen=True, kw_only=True)
class ServedSet:
    """The release set of one endpoint."""

    stack: str  # its stack's name in the environment
    # the endpoint's name in its environment (``digits``); the document's construct path where no release record names
    # it
    endpoint: str
    logical_id: str | None  # of the AWS::SageMaker::Endpoint; None where none belongs to the set
    platform: Platform  # of its archives
    models: Mapping[str, str]  # model → digest


def served_sets(environment: EnvironmentSnapshot) -> tuple[ServedSet, ...]:
    """Every release set of an environment, by stack and document."""
    return tuple(each for _, stack in sorted(environment.stacks.items()) for each in sets_of(stack))


def sets_of(stack: StackSnapshot) -> Iterator[ServedSet]:
    """The release sets of one stack; of an endpoint with instance pools one for each of its platforms."""
    for path, document in sorted(stack.documents.items()):
        if not _is_release_set(document):
            continue
        records = [each for each in stack.of_type(RECORDS_TYPE) if path in set(assets_in(each.properties))]
        paths = [each.properties.get("RecordPath") for each in records]
        named = [endpoint_of_records(path) for path in paths if isinstance(path, str)]
        for platform in document.get("platforms") or [document["platform"]]:
            yield ServedSet(
                stack=stack.name,
                endpoint=named[0] if named else path,
                logical_id=_endpoint_of(records, stack),
                platform=Platform.parse(platform),
                models=dict(sorted(document["models"].items())),
            )


def _is_release_set(document: Json) -> bool:
    if not isinstance(document, dict) or not isinstance(document.get("platform"), str):
        return False
    models = document.get("models")
    return isinstance(models, dict) and all(
        isinstance(each, str) and _DIGEST.fullmatch(each) for each in models.values()
    )


def _endpoint_of(records: list[Resource], stack: StackSnapshot) -> str | None:
    """The endpoint that the release records wait for; the only one of the stack where they wait for none."""
    endpoints = [each.logical_id for each in stack.of_type(ENDPOINT)]
    waited = {name for each in records for name in each.attributes.get("DependsOn", [])}
    chosen = [each for each in endpoints if each in waited] or endpoints
    return chosen[0] if len(chosen) == 1 else None


EarlierReleases = Callable[[str, str, str, str], str | None]
"""(stack, endpoint, model, digest) → where the model had the digest before; None where it never had."""


class ModelChangeKind(StrEnum):
    """Change of a model."""

    ADDED = "added"
    ADDED_BESIDE = "added next to another endpoint's of the same name"
    """Clients that name the model alone know no longer which endpoint is meant."""
    REMOVED = "removed"
    REBUILT = "rebuilt"
    """Another digest: other inputs, so another archive."""
    ROLLED_BACK = "rolled back"
    """A digest that the model had before the one that it has."""
    MOVED = "moved to another platform"
    """The same digest under another release or GPU."""


def model_changes(
    before: EnvironmentSnapshot,
    after: EnvironmentSnapshot,
    *,
    earlier: EarlierReleases = lambda *_: None,
    folders: ModelFolders | None = None,
) -> tuple[ModelEntry, ...]:
    """Every model that changes, by stack, endpoint and model.

    ``earlier``: earlier releases; without them a rollback shows as a rebuild. ``folders``: facts from the models'
    folders.
    """
    # Of several platforms of an endpoint the preferred one, which comes first.
    old, new = ({(each.stack, each.endpoint): each for each in reversed(served_sets(side))} for side in (before, after))
    folders = folders or ModelFolders()
    found = []
    for key in sorted(old.keys() | new.keys()):
        was, now = old.get(key), new.get(key)
        for model in sorted({*(was.models if was else ()), *(now.models if now else ())}):
            change = _change(was, now, model, earlier=earlier, dependency=folders.dependencies.get(model))
            if change is not None and change.after is not None and (why := folders.unproven.get(model)):
                change = change.model_copy(update={"sentence": f"{change.sentence} Proof skipped: {why}."})
            if change is not None and change.kind == ModelChangeKind.ADDED:
                change = _beside(change, old.values(), new)
            found += [change] if change is not None else []
    return tuple(found)


def _beside(added: ModelEntry, old: Iterable[ServedSet], new: Mapping[tuple[str, str], ServedSet]) -> ModelEntry:
    """An added model, with what clients must do where exactly one other endpoint had and keeps a model of its name."""
    keeps = {(each.stack, each.endpoint) for each in new.values() if added.model in each.models}
    had = {
        each.endpoint
        for each in old
        if added.model in each.models and (each.stack, each.endpoint) in keeps and each.endpoint != added.endpoint
    }
    if len(had) != 1:  # with more the name alone was refused before
        return added
    [other] = had
    sentence = (
        f"{added.sentence} {other} has a model of that name: clients that call {added.model} alone are refused from "
        f"then on, but for those that run already. First let every caller name {other}/{added.model}."
    )
    return added.model_copy(update={"kind": ModelChangeKind.ADDED_BESIDE, "sentence": sentence})


@dataclass(frozen=True, kw_only=True)
class ModelFolders:
    """Facts of an environment's model folders, by model. Reads settings, recipes and configurations."""

    dependencies: Mapping[str, str] = field(default_factory=dict)  # what its archive depends on
    unproven: Mapping[str, str] = field(default_factory=dict)  # why its archive cannot be proved; not of others

    @classmethod
    def of(cls, environment: str, *, project: Path) -> ModelFolders:
        """The facts of a project's environment; empty without its file.

        Raises:
            InputError: the environment's file, or a recipe that it needs, is wrong.
        """
        from tritonstack.config import load_environment  # noqa: PLC0415 - as below
        from tritonstack.models.contents import contents_of, skipped_proof  # noqa: PLC0415 - likewise
        from tritonstack.models.selection import resolved_models  # noqa: PLC0415 - pydantic's models, rarely needed

        file = project / settings_file(environment)
        if environment == PIPELINE or not file.is_file():
            return cls()
        resolved = resolved_models(load_environment(file), project / "model_repos", file=file)
        sources = [source for found in resolved.values() for source in found]
        return cls(
            dependencies={each.name: each.recipe.dependency for each in sources},
            unproven={each.name: why for each in sources if (why := skipped_proof(contents_of(each).backends))},
        )


def _change(
    old: ServedSet | None,
    new: ServedSet | None,
    model: str,
    *,
    earlier: EarlierReleases,
    dependency: str | None,
) -> ModelEntry | None:
    """The change of one model of an endpoint; None where there is none."""
    before, after = (None if side is None else side.models.get(model) for side in (old, new))
    platforms = None if old is None or new is None or old.platform == new.platform else (old.platform, new.platform)
    if before == after and platforms is None:
        return None
    side = new if new is not None and after is not None else old
    assert side is not None  # noqa: S101 - a model is on one side at least
    of = f"{model} of {side.endpoint}"
    if before is None:
        kind, sentence = ModelChangeKind.ADDED, f"{of} is added ({after})."
    elif after is None:
        kind, sentence = ModelChangeKind.REMOVED, f"{of} is removed ({before}): requests for it fail from then on."
    elif before == after:
        kind, sentence = ModelChangeKind.MOVED, f"{of} keeps its digest ({after})."
    else:
        release = earlier(side.stack, side.endpoint, model, after)
        kind = ModelChangeKind.REBUILT if release is None else ModelChangeKind.ROLLED_BACK
        back = "" if release is None else f" to what {release} had"
        sentence = f"{of} is {kind.value}{back}: {before} → {after}."
    if before is not None and after is not None and platforms is not None:
        sentence += f" It moves from {platforms[0]} to {platforms[1]}: {_MOVES[_rebuilt(dependency, *platforms)]}."
    return ModelEntry(
        kind=kind,
        stack=side.stack,
        endpoint=side.endpoint,
        model=model,
        before=before,
        after=after,
        sentence=sentence,
    )


_MOVES = {
    True: "its archive depends on the platform and is built again",
    False: "its archive does not depend on the platform and is copied to the other prefix",
    None: "whether its archive depends on the platform is not known here",
}


def _rebuilt(dependency: str | None, old: Platform, new: Platform) -> bool | None:
    """Whether the platform alone makes another archive."""
    if dependency in {"none", "engine"}:
        return dependency == "engine"
    targets = [python_target(each) for each in (old, new)]
    return None if dependency is None or None in targets else targets[0] != targets[1]
