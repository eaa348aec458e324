"""A project with the model folder ``tiny-engine``, whose engine the stand-ins build: no torch and no GPU."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.models.folders import places_in, source_of
from tritonstack.archives.programs import Spent
from tritonstack.archives.proof import Proven
from tritonstack.archives.staging import Task
from tritonstack.engines.engine_step import outputs_name
from tritonstack.models.digest import model_digest
from tritonstack.models.manifest import Manifest, Places
from tritonstack.naming import ArchiveName, Platform
from tritonstack.preparation.export_step import EngineJob, EngineWork, prepare_engines
from tritonstack.preparation.pack_step import finish_archive
from tritonstack_local.trtexec.launchers import StandIns, machine_with, make_stand_ins

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).with_name("model_repos") / "tiny-engine"
A10G = Platform(release="24.09", gpu="a10g")
PROVEN = Proven(sample_difference=0.0, tools={}, stand_ins=(), spent=Spent(step="proof", seconds=0, peak_bytes=0))


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
        """A project with the GPU machine of the arguments."""
        machine = machine_with(tensorrt=tensorrt, gpu=gpu, compute_capability=capability)
        return cls(root, write_tiny(root), make_stand_ins(root / "programs", machine))

    def export_step(self, work: Path, task: Task | None = None) -> EngineWork:
        """Export, prove, write the job; ``work`` is made."""
        work.mkdir(parents=True)
        return prepare_engines(task or task_of(self.places), work, self.places, print, timeout_seconds=120)

    def phase_two(self, job: EngineJob) -> tuple[int, str]:
        """Run the step as the image does: exit status and log; its output goes into the job's folder."""
        done = subprocess.run(
            [sys.executable, "engine_step.py", "job.json"], cwd=job.folder, text=True, check=False, timeout=120,
            env={"PATH": os.environ["PATH"], **self.programs.environment()}, capture_output=True,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    def pack_step(self, work: EngineWork, *, archives: Path | None = None) -> Manifest:
        """Compare, put the plans in, pack. ``archives``: where to."""
        places = replace(self.places, archives=archives) if archives else self.places
        return finish_archive(work, {job.model: output_of(job) for job in work.jobs}, places, print)


def output_of(job: EngineJob) -> Path:
    """Where the step leaves its files: in the job's folder."""
    return job.folder / "output"


def write_real_output(job: EngineJob, plan: bytes = b"ptrt, as a plan begins", **changes: Any) -> Path:
    """Write the step's files as with TensorRT's own trtexec; returns the output folder.

    The plan is a placeholder and its output is ONNX Runtime's: there is no GPU. ``changes``: fields of ``result.json``.
    """
    output = output_of(job)
    output.mkdir()
    files = {"model.plan": plan}
    for number, reference in enumerate(job.references):
        outputs = [{"name": n, "shape": list(a.shape), "values": a.ravel().tolist()} for n, a in reference.items()]
        files[outputs_name(number)] = json.dumps(outputs).encode()
    for name, content in files.items():
        (output / name).write_bytes(content)
    result = {
        "outcome": "built",
        "release": "24.09",
        "trtexec": {"program": "trtexec", "tensorrt": "10.4.0", "stand_in": False, "host_data": True},
        "gpu": {"name": "NVIDIA A10G", "compute_capability": "8.6", "driver": "550.127.05"},
        "image": {"CUDA_VERSION": "12.6.1.006"},
        "durations": {"build_seconds": 12.5, "proof_seconds": 2},
        "files": {
            name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in files.items()
        },
    }
    (output / "result.json").write_text(json.dumps({**result, **changes}))
    return output
