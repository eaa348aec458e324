"""The published systems, tiny and with random weights, deployed to a local AWS of their own by the real CLI."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import copytree

import pytest

from tests.e2e.project import REPOSITORY, Project
from tests.e2e.running import running
from tritonstack.local.aws import LocalAws

COPIES = 10
CACHE = 3
"""How many of the copies one endpoint may hold at once."""
ENVIRONMENTS = ("torch", "dali", "tensorflow")
INCEPTIONS = ("inception-ensemble", "inception-ensemble-graphdef")
RESNETS = ("resnet50-torchscript", "resnet50-onnx", "resnet50-tensorrt")

HEAD = """
environment: {name}
account: "123456789012"
region: us-east-1
production: false
artifacts: {{retain: false}}
builds: {{size: {size}, weights: random}}
endpoints:
"""
ENDPOINT = """
  - name: {name}
    mode: {mode}
    release: "24.09"
    instance_type: {instance_type}
    initial_instance_count: 1
    container: {container}
    local: {local}
    models: [{models}]
"""
FREES_DALI = '{additional_args: ["--backend-config=dali,release_after_unload=true"]}'


def environment(name: str, *endpoints: str, size: str = "tiny") -> str:
    """An environment file with random weights."""
    return HEAD.format(name=name, size=size).lstrip() + "".join(text.lstrip("\n") for text in endpoints)


def endpoint(
    name: str,
    *models: str,
    mode: str = "multi-model",
    instance_type: str = "ml.g4dn.xlarge",
    container: str = "{}",
    local: str = "{}",
) -> str:
    """One endpoint of an environment file."""
    return ENDPOINT.format(
        name=name,
        mode=mode,
        instance_type=instance_type,
        container=container,
        local=local,
        models=", ".join(models),
    )


LOCAL = environment(
    "local",
    endpoint("images", *RESNETS, *INCEPTIONS, container=FREES_DALI),
    endpoint("texts", "roberta-large-onnx", "bert-large", "t5-python", instance_type="ml.g5.xlarge"),
    endpoint("copies", "bert-tensorrt", instance_type="ml.g5.xlarge", local=f"{{max_loaded_models: {CACHE}}}"),
)
SINGLE = environment("single", endpoint("ensemble", "inception-ensemble", mode="single-model", container=FREES_DALI))


def system_project(root: Path, *, local: str, needs: Sequence[str] = ENVIRONMENTS) -> Project:
    """A project with the published systems' folders and the environment ``local``, whose exports run in ``needs``."""
    missing = [name for name in needs if not (REPOSITORY / ".envs" / name / "bin" / "python").exists()]
    if missing:
        pytest.skip(f"no environment {' and '.join(missing)}: python3 scripts/setup.py {' '.join(missing)}")
    project = Project(root)
    copytree(REPOSITORY / "model_repos", project.root / "model_repos")
    copytree(REPOSITORY / "requirements", project.root / "requirements")
    project.write("environments/local.yaml", local)
    return project


def deploying(project: Project) -> Iterator[LocalAws]:
    """The project deployed to a running local AWS."""
    with running(project) as aws:
        project.run("deploy-local", "local", timeout=1500)
        yield aws


@pytest.fixture(scope="module")
def systems(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with the published systems, tiny and with random weights, BERT in ten copies."""
    project = system_project(tmp_path_factory.mktemp("systems"), local=LOCAL)
    project.write("environments/single.yaml", SINGLE)
    recipe = project.root / "model_repos" / "bert-tensorrt" / "recipe.yaml"
    text, count = re.subn(r"(?m)^copies: \d+", f"copies: {COPIES}", recipe.read_text())
    assert count == 1
    recipe.write_text(text)
    return project


@pytest.fixture(scope="module")
def systems_aws(systems: Project) -> Iterator[LocalAws]:
    """The systems, deployed by the real command line."""
    yield from deploying(systems)


@pytest.fixture(scope="module")
def single_aws(systems: Project, systems_aws: LocalAws) -> LocalAws:
    """The ensemble alone behind a single-model endpoint, in an environment of its own on the same local AWS."""
    systems.run("deploy-local", "single", timeout=300)
    return systems_aws
