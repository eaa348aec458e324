"""What is deployed, or will be, as an environment file says it: instances, scaling, models."""

from __future__ import annotations

from collections.abc import Mapping

from tritonstack.errors import InputError
from tritonstack.paths import LocalPaths, project_folder
from tritonstack.settings import Endpoint, Environment, load_environment
from tritonstack.settings.findings import Finding
from tritonstack_capacity.simulation.archive_facts import archive_facts
from tritonstack_capacity.simulation.filled import Filled
from tritonstack_capacity.simulation.measured import fill_facts
from tritonstack_capacity.simulation.scenario import Routing

MIB_PER_GIB = 1024
ROUTINGS: dict[str, Routing] = {"LEAST_OUTSTANDING_REQUESTS": "least_outstanding", "RANDOM": "random"}
"""``RoutingStrategy`` → what is simulated for it."""


def fill_from_environment(filled: Filled) -> None:
    """What ``environment`` and ``endpoint`` of a scenario name."""
    name = filled.get("environment")
    if not isinstance(name, str):
        if isinstance(filled.get("endpoint"), str):
            found = f"{filled.get('endpoint')} without an environment"
            filled.findings.append(Finding(location=("endpoint",), found=found, allowed="the environment that has it"))
        return
    path = project_folder() / "environments" / f"{name}.yaml"
    try:
        environment = load_environment(path)
    except InputError as error:
        filled.problems += error.problems
        return
    endpoint = _endpoint(filled, environment)
    if endpoint is None:
        return
    origin = f"deployed: environments/{path.name}, endpoint {endpoint.name}"
    _fill_instance(filled, environment, endpoint, origin=origin)
    try:
        _fill_models(filled, environment, endpoint, origin=origin)
    except InputError as error:
        filled.problems += error.problems


def _endpoint(filled: Filled, environment: Environment) -> Endpoint | None:
    name = filled.get("endpoint")
    names = ", ".join(each.name for each in environment.endpoints)
    if name is None and len(environment.endpoints) > 1:
        found = f"nothing, and {environment.environment} has several"
        filled.findings.append(Finding(location=("endpoint",), found=found, allowed=names))
        return None
    endpoint = environment.endpoints[0] if name is None else environment.endpoint(name)
    if endpoint is None:
        finding = Finding(location=("endpoint",), found=str(name), allowed=f"of {environment.environment}: {names}")
        filled.findings.append(finding)
    elif not endpoint.multi_model:
        filled.findings.append(
            Finding(
                location=("endpoint",),
                found=f"{endpoint.name}, in single-model mode",
                allowed="a multi-model endpoint",
                advice="One model on its own instances has no cold starts: use tritonstack capacity size.",
            )
        )
        return None
    return endpoint


def _fill_instance(filled: Filled, environment: Environment, endpoint: Endpoint, *, origin: str) -> None:
    filled.fill(
        ("instance",),
        {
            "type": endpoint.instance_type,
            "region": environment.region,
            "count": endpoint.initial_instance_count,
            "disk_mib": None if endpoint.volume_size_gb is None else endpoint.volume_size_gb * MIB_PER_GIB,
        },
        origin=origin,
    )
    price = environment.prices.get(str(filled.get("instance", "type")))
    filled.fill(("instance",), {"usd_per_hour": price}, origin=f"prices of environments/{environment.environment}.yaml")
    scaling = None if endpoint.scaling is None else endpoint.scaling.model_dump(exclude_unset=True)
    parts = {"scaling": scaling, "routing": ROUTINGS.get(endpoint.routing or ""), "model_cache": endpoint.model_cache}
    filled.fill((), parts, origin=origin)


def _fill_models(filled: Filled, environment: Environment, endpoint: Endpoint, *, origin: str) -> None:
    """Each group is a model of the endpoint: how many archives it has, their sizes and their configuration.

    Raises:
        InputError: a model's folder is not there, or wrong.
    """
    # Only here: who simulates what is in no environment needs no model folders.
    from tritonstack.archives import release_set  # noqa: PLC0415
    from tritonstack.archives.manifest_stores import LOCAL, BuiltHere  # noqa: PLC0415
    from tritonstack.archives.resolving import choice_of  # noqa: PLC0415

    repositories = project_folder() / "model_repos"
    served = _served(environment, endpoint)
    digests = release_set(endpoint, repositories, choice_of(environment))
    built = BuiltHere(folder=LocalPaths.from_environment().archives)
    groups = {str(group.get("name")): place for place, group in filled.groups()}
    filled.findings += _strangers(groups, served, endpoint)
    for name, archives in served.items():
        if name not in groups:
            continue
        filled.fill(("models", groups[name]), {"count": len(archives)}, origin=origin)
        digest = digests[archives[0]]
        manifest = built.manifest(archives[0], digest, endpoint=endpoint.name, platform=endpoint.platform)
        if manifest is not None:
            other = ", built for the local Triton" if manifest.target == LOCAL else ""
            facts = archive_facts(manifest.model_dump(mode="json"))
            said = f"measured: {built.name}, {archives[0]}.{digest}.json{other}"
            fill_facts(filled, groups[name], facts, origin=said)


def _served(environment: Environment, endpoint: Endpoint) -> dict[str, list[str]]:
    """Group → its archives. Copies of a folder's model are one group; overlays are models of their own."""
    from tritonstack.archives.resolving import choice_of, sources_of  # noqa: PLC0415

    served: dict[str, list[str]] = {}
    for entry in endpoint.models:
        for source in sources_of(entry, project_folder() / "model_repos", choice_of(environment)):
            copied = source.copy is not None and source.name != entry
            served.setdefault(entry if copied else source.name, []).append(source.name)
    return served


def _strangers(groups: Mapping[str, int], served: Mapping[str, list[str]], endpoint: Endpoint) -> list[Finding]:
    """Groups that the endpoint does not serve, and models that no group is of."""
    found = [
        Finding(
            location=("models", place, "name"), found=name, allowed=f"a model of {endpoint.name}: {', '.join(served)}"
        )
        for name, place in groups.items()
        if name not in served
    ]
    missing = [name for name in served if name not in groups]
    if missing:
        allowed = f"a group of each model that {endpoint.name} serves, with gpu_memory_mib and service"
        found.append(Finding(location=("models",), found=f"nothing of {', '.join(missing)}", allowed=allowed))
    return found
