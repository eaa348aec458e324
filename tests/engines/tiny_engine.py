"""A project with the model folder ``tiny-engine``, and its engine's way with the stand-ins: no torch and no GPU."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.archives.folders import places_in, source_of
from tritonstack.archives.building import Task
from tritonstack.archives.digest import model_digest
from tritonstack.archives.places import Places
from tritonstack.engines.phase_one import EngineWork, PlannedEngine, prepare_engines
from tritonstack.engines.phase_three import finish_archive
from tritonstack.local.trtexec.launchers import StandIns, machine_with, make_stand_ins
from tritonstack.naming import ArchiveName, Platform

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).with_name("model_repos") / "tiny-engine"
A10G = Platform(release="24.09", gpu="a10g")


def write_tiny(root: Path, name: str = "tiny-engine") -> Places:
    """A project below ``root`` with that folder, and the lock file that its export's environment has here."""
    shutil.copytree(FOLDER, root / "model_repos" / name, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "requirements").mkdir(exist_ok=True)
    shutil.copyfile(REPOSITORY / "requirements/exporters.txt", root / "requirements/exporters.txt")
    return places_in(root)


def task_of(places: Places, name: str = "tiny-engine", platform: Platform = A10G) -> Task:
    """What is built: the folder's only archive for a platform."""
    source = source_of(places.folder(name))
    return Task(source=source, name=ArchiveName(model=name, digest=model_digest(source)), platform=platform)


@dataclass(frozen=True)
class TinyProject:
    """The project, and the programs that the engine step runs with."""

    root: Path
    places: Places
    programs: StandIns

    @classmethod
    def make(cls, root: Path, *, tensorrt: str = "10.4.0", gpu: str = "A10G", capability: str = "8.6") -> TinyProject:
        """A project whose GPU machine is what the arguments say."""
        machine = machine_with(tensorrt=tensorrt, gpu=gpu, compute_capability=capability)
        return cls(root, write_tiny(root), make_stand_ins(root / "programs", machine))

    def phase_one(self, work: Path) -> EngineWork:
        """Export, prove, write the job; ``work`` is made."""
        work.mkdir(parents=True)
        return prepare_engines(task_of(self.places), work, self.places, lambda _text: None, timeout_seconds=120)

    def phase_two(self, job: PlannedEngine) -> tuple[int, str]:
        """Run the step as the image does: exit status and log; its output goes beside the job's folder."""
        done = subprocess.run(
            [sys.executable, "engine_step.py", "job.json"], cwd=job.folder, text=True, check=False, timeout=120,
            env={"PATH": os.environ["PATH"], **self.programs.environment()}, capture_output=True,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    def phase_three(self, work: EngineWork, outputs: Mapping[str, Path] | None = None) -> object:
        """Compare, put the plan in, pack; the outputs are where phase two leaves them."""
        found = {job.model: job.folder.with_name("output") for job in work.jobs}
        return finish_archive(work, outputs or found, self.places, lambda _text: None)
