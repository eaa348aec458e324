"""The gate: CDK's own validator, its findings as errors, and cdk-nag, on every committed environment."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_sns as sns

import app
from tests.constructs_lib.templates import new_app
from tests.engines.engine_environments import A10G, T4
from tests.settings.environment_file import environment_text
from tests.stacks.app_process import ROOT, run_app


def test_the_committed_environments_and_one_with_engines_pass_cdks_validator_and_nag(tmp_path: Path) -> None:
    folder = tmp_path / "environments"
    shutil.copytree(ROOT / "environments", folder)
    endpoints = [f"name: e{number}\nmodels: [resnet50-tensorrt]\n{each}" for number, each in enumerate((T4, A10G))]
    text = [environment_text(header="environment: engines", endpoint=each) for each in endpoints]
    (folder / "engines.yaml").write_text(text[0] + text[1].partition("endpoints:\n")[2])
    context = {"@aws-cdk/core:validateAgainstDefaultRules": True, "environments-folder": str(folder)}
    ran = run_app(tmp_path / "out", context=context, variables={"CDK_VALIDATION": "true"})
    assert (ran.returncode, ran.stderr) == (0, "")
    report = json.loads((tmp_path / "out" / "validation-report.json").read_text())
    assert report["pluginReports"] == []
    [builds] = (tmp_path / "out" / "assembly-engines").glob("*builds*.template.json")
    assert "LINUX_GPU_CONTAINER" in builds.read_text()


def careless_app() -> cdk.App:
    """An app with a topic that takes messages in the clear."""
    careless = new_app()
    sns.Topic(cdk.Stack(careless, "careless"), "Topic")
    return careless


def test_the_app_has_nag_look_at_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDK_VALIDATION", "true")
    careless = careless_app()
    app.check_with_nag(careless)
    with pytest.raises(RuntimeError, match="AwsSolutions-SNS3"):
        careless.synth()


def test_without_validation_nag_is_left_out_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDK_VALIDATION", "false")
    careless = careless_app()
    app.check_with_nag(careless)
    assert careless.synth().stacks
