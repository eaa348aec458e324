"""A project of one's own, from the built wheel in an empty folder: docs/getting-started.md as it stands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.docs.pages import code_blocks
from tests.e2e.guard import guarded
from tests.e2e.project import REPOSITORY, Project
from tests.examples.installing import Installed, from_the_indexes

PAGE, HEADING = "docs/getting-started.md", "A project of your own"
ENDPOINT = """endpoints:
  - name: models
    mode: multi-model
    release: "25.09"
    instance_type: ml.g4dn.xlarge
    models: [doubles]
"""
SHARED = (".envs/backends", ".envs/emulator", ".envs/exporters", ".envs/triton", "node_modules")
"""What `tritonstack setup` would install once more, 2 GB: links to the checkout's stand for it."""
LINKED = "\n".join(
    ["mkdir my-serving/.envs", *(f"ln -s '{REPOSITORY}/{name}' 'my-serving/{name}'" for name in SHARED),
     'ln -s "$VIRTUAL_ENV" my-serving/.envs/main'],
)  # fmt: skip
OF_THE_MACHINE = ("Install",)
"""Steps of the workflow that the page's first block has done."""
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
        "pip install 'tritonstack[cdk,local]'": from_the_indexes(installed.wheel, with_pytest=True),
        "tritonstack init my-serving": f"tritonstack init my-serving --no-setup\n{LINKED}",
    }
    assert instead.keys() <= set(start)
    with guarded(project):
        said = shell.run(*(instead.get(line, line) for line in start))
        assert "no endpoint yet" in said
        project.add_python_model("doubles", execute="x * 2", answer_to_3=6.0)
        settings = project.root / "environments" / "local.yaml"
        settings.write_text(settings.read_text().replace("endpoints: []\n", ENDPOINT))
        enter = (". .venv/bin/activate", "cd my-serving")
        request = "model_repos/doubles/sample/request.json"
        assert "6" in shell.run(*enter, "tritonstack local deploy", f"tritonstack invoke doubles --input {request}")
        said = shell.run(*enter, "git init -q -b main", *change)
        assert "1 passed" in said
        assert "nothing changes" in said
        steps = yaml.safe_load((project.root / ".github/workflows/pull-request.yml").read_text())["jobs"]["check"][
            "steps"
        ]
        checks = [each["run"] for each in steps if "run" in each and each["name"] not in OF_THE_MACHINE]
        path = f"export PATH={project.root}/node_modules/.bin:$PATH"
        shell.run(*enter, path, *checks, BASE="main", GITHUB_STEP_SUMMARY=str(tmp_path / "summary"))
        assert "local" in (tmp_path / "summary").read_text()
