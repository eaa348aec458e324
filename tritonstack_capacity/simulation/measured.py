"""What was measured of a scenario's models: sizes by their manifests, cold starts by ``tritonstack capacity bench``."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonstack.errors import InputError
from tritonstack.settings.findings import Finding
from tritonstack_capacity.simulation.archive_facts import read_archive_facts
from tritonstack_capacity.simulation.filled import Filled

if TYPE_CHECKING:
    from tritonstack_capacity.bench.document import BenchDocument, ResultPart


@dataclass(frozen=True, kw_only=True)
class ColdStarts:
    """The cold starts of one model in one file: seconds beyond a warm call, and where they were measured, in words."""

    seconds: list[float]
    where: str


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
            filled.findings.append(Finding(location=("models", place, "manifest"), found=found, allowed=allowed))
        else:
            fill_facts(filled, place, facts, origin=f"measured: {manifest}")


def fill_facts(filled: Filled, place: int, facts: dict[str, float], *, origin: str) -> None:
    """What a manifest tells of a group. Who sets the batches sets their delay, too."""
    if "max_batch" in filled.get("models", place):
        facts = {name: value for name, value in facts.items() if name != "max_queue_delay_ms"}
    filled.fill(("models", place), facts, origin=origin)


def fill_from_results(filled: Filled, folder: Path) -> None:
    """``cold_seconds`` of the groups that name results of ``capacity bench``: the median of their cold starts."""
    for place, group in filled.groups():
        files = group.get("cold_results")
        if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
            continue
        read = [_read(filled, folder, place, number) for number in range(len(files))]
        found = [each for each in read if each is not None]
        seconds = [each for one in found for each in one.seconds]
        if seconds:
            span = f"median of {len(seconds)}, {min(seconds):.2f} to {max(seconds):.2f} s, beyond a warm call"
            origin = f"measured: {'; '.join(one.where for one in found)}: {span}"
            filled.fill(("models", place), {"cold_seconds": statistics.median(seconds)}, origin=origin)


def _read(filled: Filled, folder: Path, place: int, number: int) -> ColdStarts | None:
    """Of one file; None where it has none, which is noted."""
    # Only here: most scenarios have no results, and these bring the load generator's modules.
    from tritonstack_capacity.bench.results_folder import read_results  # noqa: PLC0415

    group: dict[str, Any] = filled.get("models", place)
    file = group["cold_results"][number]
    try:
        document = read_results(folder / file)
    except InputError as error:
        filled.problems += error.problems
        return None
    name = str(group.get("measured_as") or group.get("name"))
    results = [each for each in document.results if _name(each) == name and each.cold is not None]
    seconds = [each for result in results for each in _beyond_warm(result)]
    if seconds:
        return ColdStarts(seconds=seconds, where=f"{file} of {document.started[:10]}, {_machine(document, results)}")
    names = sorted({_name(each) for each in document.results if each.cold is not None and each.cold.milliseconds})
    filled.findings.append(
        Finding(
            location=("models", place, "cold_results", number),
            found=f"{file}, without a cold start of {name}",
            allowed=f"results of `tritonstack capacity bench {name} --cold-starts 3`",
            advice=f"It has those of {', '.join(names)}: measured_as names one." if names else "",
        )
    )
    return None


def _name(result: ResultPart) -> str:
    """The model's name without its endpoint."""
    return result.name.rpartition("/")[2]


def _beyond_warm(result: ResultPart) -> Iterator[float]:
    """Seconds that each first call took longer than a call of the loaded model under the lightest load."""
    means = [point.all.mean_ms for point in result.points if point.all.mean_ms is not None]
    warm = min(means, default=0.0)
    for cold in result.cold.milliseconds if result.cold is not None else []:
        yield max(0.0, cold - warm) / 1000


def _machine(document: BenchDocument, results: list[ResultPart]) -> str:
    """Where it was measured; a laptop's processor is no GPU of SageMaker's."""
    if document.local:
        return "on the local AWS, whose processor is no GPU"
    return f"on {', '.join(sorted({each.instance_type for each in results}))}"
