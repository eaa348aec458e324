"""TensorRT engines that a change makes necessary, and the service that builds each."""

from __future__ import annotations

from collections.abc import Mapping

from tritonstack.naming import Platform
from tritonstack.review.document import EngineEntry
from tritonstack.review.model_changes.models import ServedSet, served_sets
from tritonstack.review.snapshot import (
    EnvironmentSnapshot,
    Json,
    StackSnapshot,
)

_GPU_CONTAINER = "LINUX_GPU_CONTAINER"


def engine_builds(
    before: EnvironmentSnapshot, after: EnvironmentSnapshot, *, dependencies: Mapping[str, str] | None = None
) -> tuple[EngineEntry, ...]:
    """The engines that are needed after the change and were not before, by platform, model and digest.

    An archive that is in the bucket already is not built again; no template has that. ``dependencies``: model → what
    its archive depends on (none, python, engine) by its folder, where the template has no build set.
    """
    had = {(each.platform, model, digest) for each in served_sets(before) for model, digest in each.models.items()}
    wanted: dict[tuple[Platform, str, str], list[ServedSet]] = {}
    for each in served_sets(after):
        for model, digest in each.models.items():
            if (each.platform, model, digest) not in had:
                wanted.setdefault((each.platform, model, digest), []).append(each)
    found = []
    for (platform, model, digest), sets in sorted(wanted.items()):
        orders = [order for each in sets if (order := _order(after.stacks[each.stack], each)) is not None]
        rows = (row for order in orders for row in order["archives"])
        ordered = (row.get("dependency") for row in rows if (row["model"], row["digest"]) == (model, digest))
        if (next(ordered, None) or (dependencies or {}).get(model)) != "engine":
            continue
        endpoints = sorted({each.endpoint for each in sets})
        where = _where(sets[0], orders[0] if orders else {}, after)
        sentence = (
            f"{model} ({digest}) for {platform}, which {', '.join(endpoints)} serve{'s'[len(endpoints) > 1 :]}, "
            f"needs an engine: {'the deployment' if orders else 'a build before the deployment'} builds it, {where}, "
            "unless the bucket has it."
        )
        # With ``builds: {on_deploy: false}``.
        beside = "" if orders else " The deployment itself builds nothing, and fails where the archive is missing."
        entry = EngineEntry(
            model=model, digest=digest, platform=str(platform), where=where, sentence=f"{sentence}{beside}"
        )
        found.append(entry)
    return tuple(found)


def _order(stack: StackSnapshot, served: ServedSet) -> Mapping[str, Json] | None:
    """The build set of an endpoint, where its deployment builds what is missing."""
    for _, document in sorted(stack.documents.items()):
        ordered = isinstance(document, dict) and isinstance(document.get("archives"), list)
        if ordered and document.get("endpoint") == served.endpoint:
            found: Mapping[str, Json] = document
            return found
    return None


def _where(served: ServedSet, order: Mapping[str, Json], environment: EnvironmentSnapshot) -> str:
    """The place that the build chooses, on the machine of the template's CodeBuild project: ``CodeBuild on … (A10G)``.

    Where nothing builds the engine, the reason.
    """
    from tritonstack.engines.engine_builds import NoBuilderError, builder_for  # noqa: PLC0415 - most changes build nothing

    region = order.get("region") or environment.stacks[served.stack].region
    if region is None:
        return "nothing builds it: the region is decided when it is deployed"
    try:
        image, kind = str(order.get("image")), order.get("engine_builder")
        builder = builder_for(served.platform, region, image=image, kind=kind)
    except NoBuilderError as error:
        return f"nothing builds it: {error}"
    machine, gpu = builder.machine.name, f" ({builder.machine.gpu})"
    if builder.kind != "codebuild":
        return f"SageMaker Processing on {machine}{gpu}"
    projects = [one for each in environment.stacks.values() for one in each.of_type("AWS::CodeBuild::Project")]
    given = [each.properties.get("Environment", {}) for each in projects]
    machines = sorted({str(each.get("ComputeType")) for each in given if each.get("Type") == _GPU_CONTAINER})
    if machines and machine not in machines:
        machine, gpu = " or ".join(machines), ""
    return f"CodeBuild on {machine}{gpu}"
