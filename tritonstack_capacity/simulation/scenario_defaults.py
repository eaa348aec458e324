"""Defaults of a scenario from other files: environment, manifests, load tests, prices."""

from __future__ import annotations

import copy
import json
import statistics
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonstack.config import EndpointSettings, Environment, load_environment
from tritonstack.errors import InputError, Location, Problem, collecting
from tritonstack.models.model_config import ModelConfig, read_config
from tritonstack.paths import LocalPaths, environment_file, find_project, project_folder
from tritonstack_capacity.simulation.scenario import MIB, Instance, Routing
from tritonstack_capacity.sizing.measurements import listed_price

if TYPE_CHECKING:
    from tritonstack.models.manifest import Manifest
    from tritonstack.naming import Platform


# The scenario's own values win; other files fill in what it leaves out.
@dataclass(kw_only=True)
class Filled:
    """A scenario's values, not checked yet."""

    value: Any  # as YAML gives it; the rest does nothing where it is no mapping
    findings: list[Problem] = field(default_factory=list)  # problems with the scenario's statements about other files
    problems: list[Problem] = field(default_factory=list)  # what is wrong with those files

    @classmethod
    def of(cls, value: Any) -> Filled:
        """A copy of a file's content, to be filled in."""
        return cls(value=copy.deepcopy(value))

    def get(self, *location: str | int) -> Any:
        """The value at a place; None without one."""
        found = self.value
        for part in location:
            if isinstance(found, dict):
                found = found.get(part)
            elif isinstance(found, list) and isinstance(part, int):
                found = found[part]
            else:
                return None
        return found

    def fill(self, location: Location, values: Mapping[str, Any]) -> None:
        """Fields of the mapping at ``location`` that are not there yet; None is nothing to fill in."""
        mapping = self.value
        for part in location:
            if isinstance(mapping, dict):
                mapping = mapping.setdefault(part, {})
            elif isinstance(mapping, list) and isinstance(part, int):
                mapping = mapping[part]
        if not isinstance(mapping, dict):
            return
        for name, value in values.items():
            if name not in mapping and value is not None:
                mapping[name] = value

    def groups(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The mappings among the models, each with its place."""
        models = self.get("models")
        for place, group in enumerate(models if isinstance(models, list) else []):
            if isinstance(group, dict):
                yield place, group


MICROSECONDS = 1000
"""Of a millisecond."""


def read_archive_facts(manifest: Path) -> dict[str, float] | str:
    """The facts in a manifest that ``tritonstack build`` wrote (see ``archive_facts``), or why there are none."""
    try:
        return archive_facts(json.loads(manifest.read_text(encoding="utf-8")))
    except OSError as error:
        return error.strerror or "unreadable"
    except (ValueError, KeyError, TypeError, AttributeError):
        return "no manifest of an archive"


def archive_facts(manifest: Mapping[str, Any]) -> dict[str, float]:
    """Fields of a scenario's group: ``disk_mib``, ``download_mib``, dynamic batching and instances.

    Raises ValueError, KeyError, TypeError, AttributeError: it is no manifest.
    """
    archive = manifest["archive"]
    sizes = {"download_mib": archive["bytes"], "disk_mib": archive["tar_bytes"]}
    if not all(isinstance(size, int) and size > 0 for size in sizes.values()):
        raise ValueError("an archive without a size")
    facts = {name: size / MIB for name, size in sizes.items()}
    config = manifest.get("configs", {}).get(manifest.get("model", {}).get("name"))
    return facts if config is None else facts | _of_config(read_config(config))


def _of_config(config: ModelConfig) -> dict[str, float]:
    """Dynamic batching and instances. Of an ensemble nothing: its steps have their own."""
    if config.is_ensemble:
        return {}
    groups = config.node.nodes("instance_group")
    found: dict[str, float] = {"instances": max(1, sum(max(1, group.integer("count")) for group in groups))}
    batching = config.node.node("dynamic_batching")
    if batching is not None and config.max_batch_size > 1:
        found["max_batch"] = config.max_batch_size
        found["max_queue_delay_ms"] = batching.integer("max_queue_delay_microseconds") / MICROSECONDS
    return found


def fill_from_manifests(filled: Filled, folder: Path) -> None:
    """Sizes, batching and instances of the groups that name a manifest."""
    for place, group in filled.groups():
        manifest = group.get("manifest")
        if not isinstance(manifest, str):
            continue
        facts = read_archive_facts(folder / manifest)
        if isinstance(facts, str):
            allowed = "the manifest of an archive that `tritonstack build` made"
            found = f"{manifest}: {facts}"
            filled.findings.append(Problem(location=("models", place, "manifest"), found=found, allowed=allowed))
        else:
            fill_facts(filled, place, facts)


def fill_facts(filled: Filled, place: int, facts: dict[str, float]) -> None:
    """Fill in facts of a manifest. A group with its own ``max_batch`` keeps its own delay."""
    if "max_batch" in filled.get("models", place):
        facts = {name: value for name, value in facts.items() if name != "max_queue_delay_ms"}
    filled.fill(("models", place), facts)


def fill_from_results(filled: Filled, folder: Path) -> None:
    """``cold_seconds`` of the groups that name results of ``capacity bench``: the median of their cold starts."""
    for place, group in filled.groups():
        files = group.get("cold_results")
        if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
            continue
        seconds = [each for number in range(len(files)) for each in _cold_seconds(filled, folder, place, number)]
        if seconds:
            filled.fill(("models", place), {"cold_seconds": statistics.median(seconds)})


def _cold_seconds(filled: Filled, folder: Path, place: int, number: int) -> list[float]:
    """Seconds by which first requests of one file took longer than those of the loaded model under the least load.

    A file without any is noted.
    """
    # Only here: most scenarios have no results, and these bring the load generator's modules.
    from tritonstack_capacity.bench.results_folder import read_results  # noqa: PLC0415

    group: dict[str, Any] = filled.get("models", place)
    file = group["cold_results"][number]
    try:
        document = read_results(folder / file)
    except InputError as error:
        filled.problems += error.problems
        return []
    name = str(group.get("measured_as") or group.get("name"))
    results = [each for each in document.results if each.model == name and each.cold is not None]
    seconds = []
    for result in results:
        warm = min((point.all.mean_ms for point in result.points if point.all.mean_ms is not None), default=0.0)
        seconds += [max(0.0, cold - warm) / 1000 for cold in (result.cold.milliseconds if result.cold else [])]
    if seconds:
        return seconds
    names = sorted({each.model for each in document.results if each.cold is not None and each.cold.milliseconds})
    location, found = ("models", place, "cold_results", number), f"{file}, without a cold start of {name}"
    allowed = f"results of `tritonstack capacity bench {name} --cold-starts 3`"
    advice = f"It has those of {', '.join(names)}: measured_as names one." if names else ""
    filled.findings.append(Problem(location=location, found=found, allowed=allowed, advice=advice))
    return []


ROUTINGS: dict[str, Routing] = {"LEAST_OUTSTANDING_REQUESTS": "least_outstanding", "RANDOM": "random"}
"""``RoutingStrategy`` → what is simulated for it."""


def fill_from_environment(filled: Filled) -> None:
    """Fill in the settings of a scenario's ``environment`` and ``endpoint``."""
    name = filled.get("environment")
    if not isinstance(name, str):
        if isinstance(filled.get("endpoint"), str):
            found = f"{filled.get('endpoint')} without an environment"
            filled.findings.append(Problem(location=("endpoint",), found=found, allowed="the environment that has it"))
        return
    try:
        environment = load_environment(environment_file(name))
    except InputError as error:
        filled.problems += error.problems
        return
    endpoint = _endpoint(filled, environment)
    if endpoint is None:
        return
    _fill_instance(filled, environment, endpoint)
    with collecting(filled.problems):
        _fill_models(filled, environment, endpoint)


def _endpoint(filled: Filled, environment: Environment) -> EndpointSettings | None:
    name = filled.get("endpoint")
    names = ", ".join(each.name for each in environment.endpoints)
    if name is None and len(environment.endpoints) != 1:
        found = f"nothing, and {environment.environment} has {'several' if environment.endpoints else 'no endpoint'}"
        filled.findings.append(Problem(location=("endpoint",), found=found, allowed=names or "an environment with one"))
        return None
    endpoint = environment.endpoints[0] if name is None else environment.endpoint(name)
    if endpoint is None:
        finding = Problem(location=("endpoint",), found=str(name), allowed=f"of {environment.environment}: {names}")
        filled.findings.append(finding)
    elif not endpoint.multi_model:
        found, allowed = f"{endpoint.name}, in single-model mode", "a multi-model endpoint"
        advice = "One model on its own instances has no cold starts: use tritonstack capacity size."
        filled.findings.append(Problem(location=("endpoint",), found=found, allowed=allowed, advice=advice))
        return None
    return endpoint


def _fill_instance(filled: Filled, environment: Environment, endpoint: EndpointSettings) -> None:
    filled.fill(
        ("instance",),
        {
            "type": endpoint.instance_type,
            "region": environment.region,
            "count": endpoint.initial_instance_count,
        },
    )
    filled.fill(("instance",), {"usd_per_hour": environment.prices.get(str(filled.get("instance", "type")))})
    scaling = None if endpoint.scaling is None else endpoint.scaling.model_dump(exclude_unset=True)
    parts = {"scaling": scaling, "routing": ROUTINGS.get(endpoint.routing or ""), "model_cache": endpoint.model_cache}
    filled.fill((), parts)


def _fill_models(filled: Filled, environment: Environment, endpoint: EndpointSettings) -> None:
    """Each group is a model of the endpoint: how many archives it has, their sizes and their configuration.

    Raises InputError: a model's folder is not there, or wrong.
    """
    # Only here: who simulates what is in no environment needs no model folders.
    from tritonstack.models.digest import digests_of  # noqa: PLC0415
    from tritonstack.models.selection import choice_of, sources_of  # noqa: PLC0415

    repositories = project_folder() / "model_repos"
    served = _served(environment, endpoint)
    choice = choice_of(environment)
    digests = digests_of(each for entry in endpoint.models for each in sources_of(entry, repositories, choice))
    built = LocalPaths.from_environment().archives
    groups = {str(group.get("name")): place for place, group in filled.groups()}
    filled.findings += _strangers(groups, served, endpoint)
    for name, archives in served.items():
        if name not in groups:
            continue
        filled.fill(("models", groups[name]), {"count": len(archives)})
        digest = digests[archives[0]]
        manifest = _built_manifest(built, archives[0], digest, platform=endpoint.platform)
        if manifest is not None:
            fill_facts(filled, groups[name], archive_facts(manifest.model_dump(mode="json")))


def _built_manifest(folder: Path, model: str, digest: str, *, platform: Platform) -> Manifest | None:
    """The manifest of an archive that was built here (``.local/archives``) and that a platform serves, or None.

    It may be that of the archive that only the local Triton serves. One of another version is left out.
    """
    from tritonstack.models.build_target import LOCAL  # noqa: PLC0415
    from tritonstack.models.manifest import python_target, read_manifest  # noqa: PLC0415

    for target in ("", str(platform), python_target(platform), LOCAL):
        if target is not None:
            with suppress(OSError, ValueError):
                return read_manifest(folder / target / f"{model}.{digest}.json")
    return None


def _served(environment: Environment, endpoint: EndpointSettings) -> dict[str, list[str]]:
    """Group → its archives. Copies of a folder's model are one group; overlays are models of their own."""
    from tritonstack.models.selection import choice_of, sources_of  # noqa: PLC0415

    served: dict[str, list[str]] = {}
    for entry in endpoint.models:
        for source in sources_of(entry, project_folder() / "model_repos", choice_of(environment)):
            copied = source.copy is not None and source.name != entry
            served.setdefault(entry if copied else source.name, []).append(source.name)
    return served


def _strangers(groups: Mapping[str, int], served: Mapping[str, list[str]], endpoint: EndpointSettings) -> list[Problem]:
    """Groups that the endpoint does not serve, and models that no group is of."""
    found = [
        Problem(
            location=("models", place, "name"), found=name, allowed=f"a model of {endpoint.name}: {', '.join(served)}"
        )
        for name, place in groups.items()
        if name not in served
    ]
    missing = [name for name in served if name not in groups]
    if missing:
        allowed = f"a group of each model that {endpoint.name} serves, with gpu_memory_mib and service"
        found.append(Problem(location=("models",), found=f"nothing of {', '.join(missing)}", allowed=allowed))
    return found


Price = tuple[float | None, str]
"""USD an hour of one instance, and its source; None and the reason where there is none."""


def instance_price(instance: Instance) -> Price:
    """Price of one instance.

    Raises InputError: the project's own prices cannot be read.
    """
    if instance.usd_per_hour is not None:
        return instance.usd_per_hour, "the scenario, or its environment's file"
    listed = listed_price(instance.type, region=instance.region, project=find_project())
    if listed is None:
        return None, (
            f"no source gives a price of {instance.type} in {instance.region}; "
            "`tritonstack capacity prices update` asks AWS, instance.usd_per_hour sets it"
        )
    return float(listed.usd_per_hour), listed.source
