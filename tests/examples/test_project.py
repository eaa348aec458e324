"""A project of one's own, from the built wheel in an empty folder: docs/getting-started.md as it stands."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from scripts.documentation.terminal_picture import OWN_MODEL
from tests.docs.pages import code_blocks
from tests.docs.sequence import not_printed, recorded
from tests.e2e.guard import guarded
from tests.e2e.project import REPOSITORY, Project
from tests.examples.installing import Installed, from_the_indexes

PIP = 'pip install "$(ls ../tritonstack/dist/*.whl)[cdk,local]"'
PAGE, HEADING = "docs/getting-started.md", "A project of your own"
SHARED = (".envs/backends", ".envs/emulator", ".envs/exporters", ".envs/torch", ".envs/triton", "node_modules")
"""What `tritonstack setup` would install once more, 2 GB: links to the checkout's stand for it."""
LINKED = "\n".join(
    ["mkdir my-serving/.envs", *(f"ln -s '{REPOSITORY}/{name}' 'my-serving/{name}'" for name in SHARED),
     'ln -s "$VIRTUAL_ENV" my-serving/.envs/main'],
)  # fmt: skip
RECORDED = ("tritonstack add ../iris.onnx", "tritonstack local deploy")
"""Commands of the recording on the page that print the same here, but for figures."""
DONE = ("Install", "Test")
"""Steps of the workflow that the page's blocks have done."""
OTHERS = ("doubles", "halves", "pair")
"""Models of a Triton model folder, an archive of SageMaker's and a TorchScript file."""
ENTER = (". .venv/bin/activate", "cd my-serving")
MODELS = REPOSITORY / "tests" / "adding" / "fixtures"
pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(600)]


class Shell:
    """A person's shell: nothing of the checkout is on PATH, nor of AWS in its variables."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "TRITONSTACK_"))}
        path = [each for each in kept["PATH"].split(os.pathsep) if not Path(each).is_relative_to(REPOSITORY)]
        self.variables = {
            **{name: value for name, value in kept.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")},
            "PATH": os.pathsep.join([str(Path(sys.base_prefix, "bin")), *path]),
            "TRITONSTACK_PORT": "0",
            "TRITONSTACK_RUNTIME_PORT": "0",
            **{f"GIT_{who}_NAME": "reader" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_EMAIL": "reader@example.com" for who in ("AUTHOR", "COMMITTER")},
        }

    def run(self, *lines: str, **variables: str) -> str:
        """What the lines print; the first that fails ends them and the test."""
        ended = subprocess.run(
            ["bash", "-c", "\n".join(["set -eu -o pipefail", *lines])], cwd=self.folder, timeout=400,
            env={**self.variables, **variables}, stdin=subprocess.DEVNULL, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, f"{lines}: exit code {ended.returncode}\n{ended.stdout}"
        return ended.stdout


def test_from_pip_install_to_an_answer_a_test_and_a_review(installed: Installed, tmp_path: Path) -> None:
    start, change = (block.commands.splitlines() for block in code_blocks(PAGE) if block.heading == HEADING)
    shell, project = Shell(tmp_path), Project(tmp_path / "my-serving")
    instead = {
        PIP: from_the_indexes(installed.wheel),
        "tritonstack init my-serving": f"tritonstack init my-serving --no-setup\n{LINKED}",
        "pip install -r requirements.txt    # pytest": "cat requirements.txt",
    }
    assert instead.keys() <= {*start, *change}
    typed = start[start.index(PIP) :]
    assert len(typed) <= 6
    shutil.copy(MODELS / "classifier.onnx", tmp_path / "iris.onnx")
    others = Project(tmp_path / "others")
    others.add_python_model("doubles", execute="x * 2", answer_to_3=6.0)
    others.add_python_model("halves", execute="x / 2", answer_to_3=1.5)
    with guarded(project):
        said = shell.run(*(instead.get(line, line) for line in start))
        assert "│ probabilities │ FP32" in said
        assert [line for each in RECORDED for line in not_printed(recorded(OWN_MODEL, each), said)] == []
        said = shell.run(
            *ENTER,
            "tritonstack add ../others/model_repos/doubles/doubles",
            "tar -C ../others/model_repos/halves -czf ../model.tar.gz halves",
            "tritonstack add ../model.tar.gz --name halves",
            f"tritonstack add '{MODELS}/pair.pt' --input ids:INT64:N,length --input mask:INT64:N,length",
            "tritonstack local deploy",
            *(f"tritonstack invoke {name} --input model_repos/{name}/sample/request.json" for name in OTHERS),
        )
        assert all(f"\n{name}." in said for name in OTHERS)
        said = shell.run(*ENTER, "git init -q -b main", *(instead.get(line, line) for line in change))
        assert "1 passed" in said
        assert "nothing changes" in said
        workflow = yaml.safe_load((project.root / ".github/workflows/pull-request.yml").read_text())
        steps = [each for each in workflow["jobs"]["check"]["steps"] if "run" in each]
        checks = [each["run"] for each in steps if each["name"] not in DONE]
        path = f"export PATH={project.root}/node_modules/.bin:$PATH"
        shell.run(*ENTER, path, *checks, BASE="main", GITHUB_STEP_SUMMARY=str(tmp_path / "summary"))
        assert "local" in (tmp_path / "summary").read_text()
