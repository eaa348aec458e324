"""The published systems, tiny and with random weights, deployed to a local AWS of their own by the real CLI.

One environment, shaped as the committed ones: engines built by CodeBuild on the A10G of g5 and by SageMaker Processing
on the T4 of g4dn, both stand-ins. `make systems` runs these tests alone and prints each system's response.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import copytree
from textwrap import indent
from typing import Any

import pytest
import yaml

from tests.e2e.project import PROGRAM, REPOSITORY, Project
from tests.e2e.running import running
from tests.systems.answers import PROPERTY, printed
from tritonstack_local.aws import LocalAws

COPIES = 10
CACHE = 3
"""How many of the copies one endpoint may hold at once."""
STACKS_AT_ONCE = 6
"""Every endpoint of the environment: their deployments wait for builds and for Triton more than they compute."""
ENVIRONMENTS = ("torch", "dali", "tensorflow")
INCEPTIONS = {"inception/inception-ensemble": "onnx", "inception/inception-ensemble-graphdef": "graphdef"}
"""The two variants of environment dev's A/B test: the model as clients call it, and the variant that serves it."""
RESNETS = ("resnet50-torchscript", "resnet50-onnx", "resnet50-tensorrt")
TUNED, ORT_TENSORRT = "resnet50-onnx-tuned", "resnet50-onnx-ort-tensorrt"
"""Overlays of resnet50-onnx, with the walkthrough's options; what is for a GPU is ignored on the CPU, and logged."""

HEAD = """
environment: {name}
account: "123456789012"
region: us-east-1
production: false
artifacts: {{retain: false}}
builds: {{size: {size}, weights: random, on_deploy: true}}
endpoints:
"""
ENDPOINT = """
  - name: {name}
    mode: {mode}
    release: "{release}"
    instance_type: {instance_type}
    initial_instance_count: 1
    container: {container}
    local: {local}
    verification: {{models: 1}}
    models: [{models}]
"""
RELEASE = "25.09"
LAST_WITH_TENSORFLOW = "24.09"
"""The newest release with an image of AWS's and the tensorflow backend."""
FREES_DALI = '{additional_args: ["--backend-config=dali,release_after_unload=true"]}'
# More than the default, as the walkthrough has it; its 16 GB are taken at once, which not every machine has.
SHARED_MEMORY = "{shm_default_bytes: 67108864, shm_growth_bytes: 10485760}"
THREADS = "{thread_count: 16, buffer_manager_thread_count: 4}"


def environment(name: str, *endpoints: str, size: str = "tiny") -> str:
    return HEAD.format(name=name, size=size).lstrip() + "".join(text.lstrip("\n") for text in endpoints)


def endpoint(
    name: str,
    *models: str,
    mode: str = "multi-model",
    release: str = RELEASE,
    instance_type: str = "ml.g4dn.xlarge",
    container: str = "{}",
    local: str = "{}",
) -> str:
    return ENDPOINT.format(
        name=name,
        mode=mode,
        release=release,
        instance_type=instance_type,
        container=container,
        local=local,
        models=", ".join(models),
    )


LOCAL = environment(
    "local",
    endpoint("engines", "bert-tensorrt", instance_type="ml.g5.xlarge", local=f"{{max_loaded_models: {CACHE}}}"),
    endpoint(
        "images", *RESNETS, TUNED, "inception-ensemble-graphdef", release=LAST_WITH_TENSORFLOW, container=FREES_DALI
    ),
    endpoint("ort", ORT_TENSORRT, mode="single-model"),
    endpoint("texts", "roberta-large-onnx", "t5-python", instance_type="ml.g5.2xlarge", container=SHARED_MEMORY),
    endpoint("bert-large", "bert-large", instance_type="ml.g4dn.2xlarge", container=THREADS),
)


def of_dev(name: str) -> str:
    """An endpoint as the committed environment dev has it, as an item of a list in YAML."""
    dev = yaml.safe_load((REPOSITORY / "environments" / "dev.yaml").read_text())
    [found] = [each for each in dev["endpoints"] if each["name"] == name]
    return indent(yaml.safe_dump([found]), "  ")


def system_project(root: Path, *, local: str, needs: Sequence[str] = ENVIRONMENTS) -> Project:
    """A project with the published systems' folders and the environment ``local``, whose exports run in ``needs``."""
    missing = [name for name in needs if not (REPOSITORY / ".envs" / name / "bin" / "python").exists()]
    if missing:
        pytest.fail(f"no environment {' and '.join(missing)}: python3 scripts/setup.py {' '.join(missing)}")
    project = Project(root)
    copytree(REPOSITORY / "model_repos", project.root / "model_repos")
    copytree(REPOSITORY / "requirements", project.root / "requirements")
    project.write("environments/local.yaml", local)
    return project


def deploying(project: Project) -> Iterator[LocalAws]:
    """The project deployed to a running local AWS, with the deployment's steps on standard error as they run."""
    with running(project) as aws:
        command = [str(PROGRAM), "local", "deploy", "-e", "local", "--concurrency", str(STACKS_AT_ONCE)]
        subprocess.run(command, cwd=project.root, env=project.variables, timeout=1500, check=True)
        yield aws


@pytest.fixture(scope="module")
def systems(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with the published systems, BERT in ten copies."""
    project = system_project(tmp_path_factory.mktemp("systems"), local=LOCAL + of_dev("inception"))
    recipe = project.root / "model_repos" / "bert-tensorrt" / "recipe.yaml"
    text, count = re.subn(r"(?m)^copies: \d+", f"copies: {COPIES}", recipe.read_text())
    assert count == 1
    recipe.write_text(text)
    return project


@pytest.fixture(scope="module")
def systems_aws(systems: Project) -> Iterator[LocalAws]:
    """The systems, deployed by the real command line."""
    yield from deploying(systems)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the row of every archive that responded."""
    reports = terminalreporter.stats.get("passed", [])
    rows = [value for report in reports for name, value in report.user_properties if name == PROPERTY]
    if rows:
        terminalreporter.write_line("")
        terminalreporter.write_line(printed(rows))
