"""Run something in the environments ``torch`` and ``tensorflow``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
PYTHON = ROOT / ".envs/torch/bin/python"
TENSORFLOW = ROOT / ".envs/tensorflow/bin/python"


def run(*arguments: str | Path, python: str | Path = PYTHON, **variables: str) -> subprocess.CompletedProcess[str]:
    """``python ARGUMENTS`` there, with further environment variables."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "model_repos"), "OMP_NUM_THREADS": "2", **variables}
    return subprocess.run(
        [python, *arguments], env=environment, capture_output=True, text=True, timeout=300, check=False
    )


@dataclass(frozen=True)
class Tasks:
    """What tasks of a program gave, all run by one process: importing a framework takes longer than each of them."""

    folder: Path
    results: dict[str, dict[str, Any]]

    def given(self, task: str) -> Any:
        assert "given" in self.results[task], self.results[task]
        return self.results[task]["given"]

    def refused(self, task: str) -> str:
        """The sentence that a task was refused with."""
        assert "refused" in self.results[task], self.results[task]
        sentence: str = self.results[task]["refused"]
        return sentence

    def files(self, task: str) -> list[str]:
        return sorted(path.name for path in (self.folder / task).iterdir())


def main(tasks: Mapping[str, Any]) -> None:
    """Run the tasks that the command line names, each in a folder of its own, and print what they give as JSON."""
    from _exporters.script import ExportError

    folder, results = Path(sys.argv[1]), {}
    for name in sys.argv[2:]:
        (folder / name).mkdir()
        try:
            results[name] = {"given": tasks[name](folder / name)}
        except ExportError as error:
            results[name] = {"refused": str(error)}
    print(json.dumps(results))


def run_tasks(
    folder: Path, *tasks: str, program: str = "in_torch.py", python: Path = PYTHON, **variables: str
) -> Tasks:
    """Run tasks of a program beside this, by default those for PyTorch."""
    done = run(Path(__file__).with_name(program), folder, *tasks, python=python, **variables)
    assert done.returncode == 0, done.stderr
    return Tasks(folder, json.loads(done.stdout.splitlines()[-1]))
