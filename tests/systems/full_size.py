"""``make full``: every published system at its real size with random weights, exported, proved and measured.

Not collected with the other tests: it takes minutes and gigabytes. It shows what tiny models cannot: time and memory of
exports and proofs, which the machine of builds (``builds.compute_type``) has to have, and the sizes of archives. Four
models are also deployed and invoked. Archives are built for the local Triton: TensorRT's hold the graph that an engine
is built from, and its reference is made as for an engine; T5's packed Python environment is not made.
"""

from __future__ import annotations

import re
import resource
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from rich.console import Console
from rich.table import Table

from tests.e2e.project import REPOSITORY, Project
from tests.systems.answers import invoked, manifest_of
from tests.systems.conftest import RESNETS, deploying, endpoint, environment, system_project
from tritonstack.archives.build import build_models
from tritonstack.archives.exporting import export_digest
from tritonstack.archives.staging import Task
from tritonstack.catalogue.instances import load_build_machines
from tritonstack.cli.progress import Steps
from tritonstack.client import ModelClient
from tritonstack.config.builds import BuildSettings
from tritonstack.models.digest import model_digest
from tritonstack.models.manifest import Places
from tritonstack.models.source import ArchiveSource, BuildChoice, archives_of
from tritonstack.naming import ArchiveName, Platform
from tritonstack.preparation.export_step import prepare_engines
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(4 * 3600)]

FULL = BuildChoice(size="full", weights="random")
PLATFORM = Platform(release="24.09", gpu="a10g")
DEPLOYED = {**dict.fromkeys(RESNETS, 90), "t5-python": 200}
"""Archive that is deployed → the least size of it, in MB: fp32 weights compress by little."""
LOCAL = environment(
    "local",
    endpoint("images", *RESNETS),
    endpoint("texts", "t5-python", instance_type="ml.g5.xlarge"),
    size="full",
)
HEADROOM = 0.75
"""Share of a machine's memory that the largest step may take; the rest is the system's, the agent's and page cache."""
_SPENT = re.compile(r"(?P<step>.+): (?P<seconds>\d+) s, (?P<gib>[\d.]+) GiB of memory at most")
_GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class Row:
    """One measured step of an archive's build, in the words that the build itself reports."""

    archive: str
    step: str
    seconds: int
    gib: float
    bytes: int


def systems() -> list[ArchiveSource]:
    """One archive for each different export of the published systems: variants and copies that export alike are one."""
    found: dict[str, ArchiveSource] = {}
    for recipe in sorted((REPOSITORY / "model_repos").glob("*/recipe.yaml")):
        if not recipe.parent.name.startswith("digits"):
            for source in archives_of(recipe.parent, FULL):
                found.setdefault(export_digest(source), source)
    return list(found.values())


SYSTEMS = systems()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return system_project(tmp_path_factory.mktemp("full"), local=LOCAL)


@pytest.fixture(scope="module")
def rows(project: Project, tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    """The steps of all builds. What is not deployed afterwards is removed when it is measured: it is gigabytes."""
    found: list[Row] = []
    for source in SYSTEMS:
        local = project.root / ".local" if source.name in DEPLOYED else tmp_path_factory.mktemp(source.name)
        places = Places(repositories=source.folder.parent, archives=local / "archives", exports=local / "exports")
        found += measured(source, places=places)
        if source.name not in DEPLOYED:
            shutil.rmtree(local)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    show(found, own=own)
    return found


def measured(source: ArchiveSource, *, places: Places) -> list[Row]:
    """Build an archive as ``tritonstack build`` does, and prepare its engine as a deployment does."""
    lines: list[str] = []
    with Steps().step(f"build {source.name}") as step:

        def report(text: str) -> None:
            lines.append(text)
            step.say(text)

        (built,) = build_models([source.name], choice=FULL, places=places, report=report).built
        if source.recipe.engine is not None:
            name = ArchiveName(model=source.name, digest=model_digest(source))
            work = places.exports.with_name("engine")
            work.mkdir()
            task = Task(source=source, name=name, platform=PLATFORM)
            prepare_engines(task, work, places, report, timeout_seconds=60.0)
            shutil.rmtree(work)
    assert built.fresh
    found = [match for match in map(_SPENT.fullmatch, lines) if match is not None]
    spent = {match["step"]: match for match in found}  # the way to an engine proves the archive again
    return [
        Row(
            archive=source.name,
            step=match["step"],
            seconds=int(match["seconds"]),
            gib=float(match["gib"]),
            bytes=built.manifest.archive.bytes,
        )
        for match in spent.values()
    ]


def show(rows: Sequence[Row], *, own: int) -> None:
    table = Table("archive", "step", title="Full size, random weights", title_justify="left", box=None)
    for heading in ("seconds", "peak GiB", "archive bytes"):
        table.add_column(heading, justify="right")
    archive = ""
    for row in rows:
        first = row.archive != archive
        archive = row.archive
        size = f"{row.bytes:,}" if first else ""
        table.add_row(archive if first else "", row.step, str(row.seconds), f"{row.gib:.1f}", size)
    table.caption = f"beside each step, the process that packs and compares: {own / _GIB:.1f} GiB at most"
    Console(width=120).print("\n", table)


def test_every_published_system_is_exported_and_proved(rows: list[Row]) -> None:
    folders = {path.parent.name for path in (REPOSITORY / "model_repos").glob("*/recipe.yaml")}
    assert {source.folder.name for source in SYSTEMS} == {name for name in folders if not name.startswith("digits")}
    for source in SYSTEMS:
        steps = [row.step for row in rows if row.archive == source.name]
        assert any(step.startswith("export of") for step in steps), source.name
        assert any(step.startswith("proof of") for step in steps), source.name


def test_the_machine_that_builds_run_on_has_room_for_the_largest_step(rows: list[Row]) -> None:
    largest = max(row.gib for row in rows) + resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / _GIB
    memory = load_build_machines().cpu_memory_gib[BuildSettings().compute_type]
    assert largest <= HEADROOM * memory, f"{largest:.1f} GiB of {memory} GiB"


@pytest.fixture(scope="module")
def deployed(project: Project, rows: list[Row]) -> Iterator[LocalAws]:
    assert {row.archive for row in rows} >= DEPLOYED.keys()
    yield from deploying(project)


@pytest.mark.parametrize(("name", "megabytes"), DEPLOYED.items())
def test_a_model_of_real_size_responds_to_its_sample(deployed: LocalAws, name: str, megabytes: int) -> None:
    client = ModelClient(environment="local", session=deployed.session())
    served = f"{'images' if name in RESNETS else 'texts'}/{name}"
    _, difference = invoked(client, served)
    manifest = manifest_of(client, served)
    figures = ", ".join(f"{key} {value:.3g}" for key, value in manifest.figures.items())
    print(f"\n{name}: {manifest.archive.bytes:,} bytes, answer differs by {difference:.2e}; {figures}")
    assert manifest.archive.bytes > megabytes * 1_000_000
