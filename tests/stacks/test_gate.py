"""The gate: CDK's own validator, its findings as errors, and cdk-nag, on every committed environment."""

from __future__ import annotations

import json
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_sns as sns

import app
from tests.constructs_lib.templates import new_app
from tests.stacks.app_process import run_app


def test_the_committed_environments_pass_cdks_validator_and_nag(tmp_path: Path) -> None:
    strict = {"@aws-cdk/core:validateAgainstDefaultRules": True}
    ran = run_app(tmp_path / "out", context=strict, variables={"CDK_VALIDATION": "true"})
    assert (ran.returncode, ran.stderr) == (0, "")
    report = json.loads((tmp_path / "out" / "validation-report.json").read_text())
    assert report["pluginReports"] == []


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
