"""The app with a pipeline, synthesised once a run, and what its templates are read by."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.stacks.app_process import ROOT, made_once, run_app

Template = dict[str, Any]
ALONE = """
  - name: alone
    mode: single-model
    release: "24.09"
    instance_type: ml.g4dn.xlarge
    initial_instance_count: 1
    models: [digits-onnx]
    image: {directory: images/triton}
"""
LOAD_TEST = "load_test: {gate: {p95_ms: 100}}\n"
HUB = {"token_parameter": "/team/hub-token", "endpoint": "https://hub.example.com"}


class Synthesised:
    """The app with a pipeline."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pipeline = self.template("pipeline.template.json")
        [self.definition] = [each["Properties"] for each in of_type(self.pipeline, "AWS::CodePipeline::Pipeline")]
        self.stages: dict[str, Template] = {stage["Name"]: stage for stage in self.definition["Stages"]}

    def template(self, name: str) -> Template:
        """A template of the assembly."""
        template: Template = json.loads((self.folder / name).read_text())
        return template

    def actions(self, stage: str) -> list[str]:
        """Names of a stage's actions in the order of their run; those that run side by side by their names."""
        ordered = sorted(self.stages[stage]["Actions"], key=lambda action: (int(action["RunOrder"]), action["Name"]))
        return [action["Name"] for action in ordered]

    def access(self, environment: str) -> Template:
        """The stack that lets the pipeline into an environment."""
        [found] = (self.folder / f"assembly-{environment}").glob("*pipelineaccess*.template.json")
        template: Template = json.loads(found.read_text())
        return template


def of_type(template: Template, kind: str) -> list[Template]:
    return [each for each in template["Resources"].values() if each["Type"] == kind]


def synthesised(folder: Path, *, pipeline: Template | None = None) -> None:
    """Into ``out``: the committed pipeline, or another over the environments that :func:`write_environments` makes."""
    folder.mkdir()
    context = {"pipeline": "true"}
    if pipeline is not None:
        (folder / "pipeline.yaml").write_text(yaml.safe_dump(pipeline))
        write_environments(folder / "environments")
        context = context_of(folder)
    ran = run_app(folder / "out", context=context, variables={"PYTHONHASHSEED": "2", "TZ": "Asia/Tokyo"})
    assert ran.returncode == 0, ran.stderr


def context_of(folder: Path) -> dict[str, str]:
    """What the app is called with for the pipeline that was written into a folder."""
    return {"pipeline": str(folder / "pipeline.yaml"), "environments-folder": str(folder / "environments")}


def write_environments(folder: Path) -> None:
    """The committed environments; dev has load tests, a token for the hub, and an endpoint whose image is built.

    Without staging, so that the committed pipeline is none of theirs: two pipelines may not deploy one environment.
    """
    shutil.copytree(ROOT / "environments", folder, ignore=shutil.ignore_patterns("staging.yaml"))
    image = folder.parent / "images/triton"
    image.mkdir(parents=True, exist_ok=True)
    (image / "Dockerfile").write_text("FROM scratch\n")
    dev = folder / "dev.yaml"
    content = yaml.safe_load(dev.read_text() + ALONE + LOAD_TEST)
    content["builds"]["hub"] = HUB
    dev.write_text(yaml.safe_dump(content, sort_keys=False))


def settings(**more: Any) -> Template:
    """A pipeline over dev and prod."""
    return {
        "name": "other",
        "account": "444444444444",
        "region": "us-east-1",
        "source": {
            "connection": "arn:aws:codeconnections:us-east-1:444444444444:connection/"
            "11111111-2222-3333-4444-555555555555",
            "repository": "a/b",
        },
        "permissions_boundary": "arn:aws:iam::444444444444:policy/boundary",
        "role_path": "/team/",
        "email": ["team@example.com"],
        "stages": [
            {
                "environment": "dev",
                "gates": [
                    {"name": "sound", "commands": ["scripts/sound.sh"], "timeout_minutes": 30},
                    {"name": "load-test", "load_test": {}},
                ],
            },
            {"environment": "prod"},
        ],
        **more,
    }


def committed_pipeline(factory: pytest.TempPathFactory) -> Synthesised:
    """The repository's own pipeline, synthesised without credentials and network."""
    return Synthesised(made_once(factory, "committed-pipeline", synthesised) / "out")


def other_pipeline(factory: pytest.TempPathFactory) -> Synthesised:
    """A pipeline with everything else on: a path of roles, a boundary, gates of each kind."""
    made = made_once(factory, "other-pipeline", lambda folder: synthesised(folder, pipeline=settings()))
    return Synthesised(made / "out")


def statements(template: Template) -> Iterator[Template]:
    for policy in of_type(template, "AWS::IAM::Policy"):
        yield from policy["Properties"]["PolicyDocument"]["Statement"]
