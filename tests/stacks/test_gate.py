"""The gate: CDK's own validator, its findings as errors, and cdk-nag, on every committed environment."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import cdk_nag
import pytest
from aws_cdk import aws_sns as sns
from constructs import IConstruct

from constructs_lib import acknowledgement
from constructs_lib.acknowledgement import acknowledge
from stacks import app
from tests.constructs_lib.templates import new_app
from tests.stacks.app_process import GATE, committed_assembly, run_app
from tests.stacks.everything import everything, everything_served


def test_the_committed_environments_pass_cdks_validator_and_nag(tmp_path_factory: pytest.TempPathFactory) -> None:
    assert violations(committed_assembly(tmp_path_factory)) == []


@pytest.mark.long
def test_an_environment_with_everything_on_passes_them_too(tmp_path: Path) -> None:
    served = everything_served(tmp_path)
    ran = run_app(
        tmp_path / "out",
        context={**GATE, "environments-folder": str(tmp_path), "model-repositories": str(tmp_path / "model_repos")},
        variables={"CDK_VALIDATION": "true"},
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert violations(tmp_path / "out") == []
    assembly = tmp_path / "out" / f"assembly-{served.environment.environment}"
    text = "".join(path.read_text() for path in assembly.glob("*.template.json"))
    kinds = ("NatGateway", "CompositeAlarm", "Custom::EndpointLogGroup", "DataCapture", "LINUX_GPU_CONTAINER")
    assert [kind for kind in kinds if kind not in text] == []


def violations(assembly: Path) -> list[Any]:
    """Findings of validators that are not acknowledged."""
    report = json.loads((assembly / "validation-report.json").read_text())
    return [each["violations"] for each in report["pluginReports"] if each["violations"]]


class Acknowledgements:
    """Whether what NIST's table accepts is passed on to cdk-nag, and what of it was."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, heeded: bool) -> None:
        self.accepted: set[tuple[str, str]] = set()
        self._heeded = heeded
        self._pass_on = acknowledge
        monkeypatch.setattr(acknowledgement, "acknowledge", self._acknowledge)

    def _acknowledge(self, construct: IConstruct, *, finding: str, reason: str) -> None:
        is_nist = finding.startswith("NIST")
        if is_nist:
            self.accepted.add((construct.node.path, finding))
        if self._heeded or not is_nist:
            self._pass_on(construct, finding=finding, reason=reason)


def test_every_finding_of_nist_that_is_accepted_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Construct by construct: so no acknowledgement is stale, and none covers what has no finding."""
    monkeypatch.setenv("CDK_VALIDATION", "true")
    acknowledged = Acknowledgements(monkeypatch, heeded=False)
    whole = new_app()
    everything(tmp_path, scope=whole)
    cdk.Validations.of(whole).add_plugins(cdk_nag.NIST80053R5Checks(whole))
    for stage in whole.node.children:
        if isinstance(stage, cdk.Stage):
            acknowledgement.acknowledge_nist(stage)
    with pytest.raises(RuntimeError, match="NIST"):
        whole.synth()
    report = json.loads((Path(whole.outdir) / "validation-report.json").read_text())
    found = {
        (construct["constructPath"], violation["ruleName"])
        for each in report["pluginReports"]
        for violation in each["violations"]
        for construct in violation["violatingConstructs"]
        if violation["ruleName"].startswith("NIST")
    }
    assert acknowledged.accepted == found


def test_every_finding_of_aws_solutions_that_is_accepted_is_one_and_has_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no acknowledgement heeded the synthesis fails, and cdk-nag finds each."""
    accepted: dict[str, str] = {}
    acknowledgment = cdk.Acknowledgment

    def note(*, id: str, reason: str) -> cdk.Acknowledgment:  # noqa: A002 - as the CDK spells it
        if id.startswith("AwsSolutions-"):  # others are of CDK's validator and of NIST
            accepted[id] = reason
        return acknowledgment(id="AwsSolutions-NONE", reason=reason)

    monkeypatch.setattr(cdk, "Acknowledgment", note)
    whole = new_app()
    cdk.Validations.of(whole).add_plugins(cdk_nag.AwsSolutionsChecks(whole))
    everything(tmp_path, scope=whole)
    with pytest.raises(RuntimeError) as caught:
        whole.synth()
    assert set(re.findall(r"Acknowledge with 'AwsSolutions::(.+)'", str(caught.value))) == set(accepted)
    assert [finding for finding, why in accepted.items() if not why.endswith(".") or len(why.split()) <= 12] == []


def careless_app() -> cdk.App:
    """An app with a topic that takes messages in the clear."""
    careless = new_app()
    sns.Topic(cdk.Stack(careless, "careless"), "Topic")
    return careless


UNREADABLE = """
import json, sys
import aws_cdk as cdk
app = cdk.App(context=json.loads(sys.argv[1]), outdir=sys.argv[2])
cdk.CfnResource(cdk.Stack(app, "careless"), "Topic", type="AWS::SNS::Topic", properties={"TopicNam": "one"})
app.synth()
"""


@pytest.mark.long
def test_cdks_validator_does_look_with_the_context_of_the_gate(tmp_path: Path) -> None:
    """Else the gate would be passed by a validator that is off. In a process of its own: Node reads the switch once."""
    ran = subprocess.run(
        [sys.executable, "-c", UNREADABLE, json.dumps(GATE), str(tmp_path)],
        env={**os.environ, "CDK_VALIDATION": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert "'TopicNam' was unexpected" in ran.stderr


def test_the_app_has_nag_look_at_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDK_VALIDATION", "true")
    careless = careless_app()
    app.check_with_nag(careless)
    with pytest.raises(RuntimeError, match="AwsSolutions-SNS3"):
        careless.synth()


def test_nist_checks_production_environments_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDK_VALIDATION", "true")
    whole = new_app()
    for name in ("local", "prod"):
        sns.Topic(cdk.Stack(cdk.Stage(whole, name), "careless"), "Topic")
    app.check_with_nag(whole, exempt={"local"})
    with pytest.raises(RuntimeError, match="NIST"):
        whole.synth()
    report = json.loads((Path(whole.outdir) / "validation-report.json").read_text())
    found = {
        (violation["ruleName"].partition("-")[0], construct["constructPath"].partition("/")[0])
        for each in report["pluginReports"]
        for violation in each["violations"]
        for construct in violation["violatingConstructs"]
    }
    assert found == {("AwsSolutions", "local"), ("AwsSolutions", "prod"), ("NIST.800.53.R5", "prod")}


def test_without_validation_nag_is_left_out_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDK_VALIDATION", "false")
    careless = careless_app()
    app.check_with_nag(careless)
    assert careless.synth().stacks
