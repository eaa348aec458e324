"""``local dev``: files are saved, and the local AWS follows, with the real Triton behind it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.project import PROGRAM, Project, environment_yaml
from tests.e2e.running import running

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]
ENDPOINT = "{{name: numbers, mode: multi-model, release: '24.09', instance_type: ml.g4dn.xlarge, models: [{models}]}}"


class Dev:
    """``tritonstack local dev`` as it runs, and what it has printed."""

    def __init__(self, project: Project) -> None:
        self.text = ""
        self.process = subprocess.Popen(
            [str(PROGRAM), "local", "dev"],
            cwd=project.root,
            env=project.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self.text += line

    def until(self, said: str, *, seconds: float = 400) -> str:
        """What was printed since the last time, once it has ``said``."""
        deadline = time.monotonic() + seconds
        while said not in self.text:
            assert self.process.poll() is None, self.text
            assert time.monotonic() < deadline, f"it never said {said!r}:\n{self.text}"
            time.sleep(0.05)
        time.sleep(0.3)  # the rest of its lines
        printed, self.text = self.text, ""
        return printed

    def end(self) -> str:
        """Ctrl-C; what it says, where it ends well."""
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(timeout=30) == 0
        self._reader.join(timeout=10)
        return self.text


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path)
    made.add_python_model("adds", execute="x + 1", answer_to_3=4.0)
    made.add_python_model("doubles", execute="x * 2", answer_to_3=6.0)
    write_environment(made, "adds")
    with running(made):
        yield made


def write_environment(project: Project, *models: str) -> None:
    endpoint = ENDPOINT.format(models=", ".join(models))
    project.write("environments/local.yaml", environment_yaml(name="local", endpoints=[endpoint]))


def answered(project: Project, model: str) -> Any:
    """What a model's current release answers to its sample request."""
    sample = f"model_repos/{model}/sample/request.json"
    [output] = json.loads(project.run("invoke", model, "--input", sample, "--json").stdout)["outputs"]
    return output["data"]


def test_what_is_saved_is_released_and_a_mistake_leaves_what_serves(project: Project) -> None:
    program = project.root / "model_repos/adds/adds/1/model.py"
    good = program.read_text()
    dev = Dev(project)
    assert "deployed in" in dev.until("watching")

    program.write_text(good.replace("x + 1", "x + 2"))
    said = dev.until("not what")
    assert "y  [4] → [5]" in said
    assert "tritonstack update adds" in said
    assert re.search(r"numbers/adds .* s after the change was seen", said)
    assert answered(project, "adds") == [5.0]

    program.write_text(good.replace("return [self", "return [sel"))
    said = dev.until("what served before serves on")
    assert "NameError" in said or "sel" in said
    assert answered(project, "adds") == [5.0]

    config = project.root / "model_repos/adds/adds/config.pbtxt"
    text = config.read_text()
    config.write_text(text.replace("TYPE_FP32", "TYPE_FLOAT", 1))
    assert "TYPE_FLOAT" in dev.until("what served before serves on")

    config.write_text(text)
    program.write_text(good)
    said = dev.until("as model_repos/adds/sample/answer.json expects")
    assert "y  [5] → [4]" in said

    write_environment(project, "adds", "doubles")
    assert "the settings changed: deploying" in dev.until("deployed in")
    assert answered(project, "doubles") == [6.0]
    assert "the local AWS stays up" in dev.end()
