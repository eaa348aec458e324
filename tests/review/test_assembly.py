"""Cloud assemblies: synthesised by the app that cdk.json names, and read as the CDK lays them out.

The normal form of templates is held by the committed snapshots.
"""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.review.small import resource, write_assembly, write_json
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.review.assembly import read_assembly, synthesise
from tritonstack.review.snapshot import AssetKind, Finding, StackSnapshot

CODE, SET, SOURCE = "aa" * 32, "bb" * 32, "cc" * 32
TEMPLATE = {
    "Resources": {
        "Function1": resource("AWS::Lambda::Function", {"Code": {"S3Key": f"{CODE}.zip"}, "Role": "arn"}),
        "Records1": resource("Custom::ReleaseRecords", {"ReleaseSetKey": f"{SET}.release-set"}),
        "Project1": resource("AWS::CodeBuild::Project", {"Source": {"Location": f"bucket/{SOURCE}.zip"}}),
        "Policy1": resource("AWS::IAM::Policy", {"PolicyDocument": f"arn:aws:s3:::bucket/{SOURCE}.zip"}),
    }
}


def logical_id(name: str) -> list[dict[str, Any]]:
    return [{"type": "aws:cdk:logicalId", "data": name}]


METADATA = {
    "/Handler/Function/Resource": logical_id("Function1"),
    "/Records/Resource/Default": logical_id("Records1"),
    "/Handler/Policy": [
        {
            "type": "aws:cdk:acknowledged-rules",
            "data": {
                "Annotation::AwsSolutions-IAM5[Resource::*]": "No resource.",
                "NIST.800.53.R5::NIST.800.53.R5-IAM": "Inline.",
            },
        }
    ],
}


def asset(folder: str, name: str, packaging: str) -> dict[str, Any]:
    return {"displayName": name, "source": {"path": folder, "packaging": packaging}, "destinations": {}}


def write(folder: Path, **given: Any) -> Path:
    """An assembly with a function, a release set and the source of builds."""
    files = {
        CODE: asset("../code", "Handler/Code", "zip"),
        SET: asset("../set.release-set", "Activation/ReleaseSet", "file"),
        SOURCE: asset("../source", "Source/Files", "zip"),
        "dd" * 32: asset("serving1.template.json", "Template", "file"),
    }
    (folder / "code" / "inner").mkdir(parents=True, exist_ok=True)
    (folder / "code" / "handler.py").write_text("one")
    (folder / "code" / "inner" / "work.py").write_text("two")
    (folder / "source").mkdir(exist_ok=True)
    (folder / "source" / "file").write_text("any")
    write_json(folder / "set.release-set", {"models": {"b": "2", "a": "1"}, "commits": {"a": "4b97eb8"}})
    return write_assembly(folder, template=TEMPLATE, metadata=METADATA, files=files, **given)


def serving(folder: Path) -> StackSnapshot:
    return read_assembly(folder).environments["dev"].stacks["serving"]


def test_a_stage_is_an_environment_and_a_stack_has_its_account_and_region(tmp_path: Path) -> None:
    stack = serving(write(tmp_path))
    paths = {name: each.path for name, each in stack.resources.items()}
    named = {"Function1": "Handler/Function", "Records1": "Records"}
    assert paths == {**named, "Policy1": "Policy1", "Project1": "Project1"}, "resources are called by their constructs"
    assert (stack.name, stack.stack_name) == ("serving", "dev-serving")
    assert (stack.account, stack.region, stack.tags) == ("111111111111", "us-east-1", {"team": "platform"})


def test_stages_inside_other_constructs_have_names_of_their_own(tmp_path: Path) -> None:
    folder = write_assembly(tmp_path, template=TEMPLATE, metadata=METADATA)
    for path in (folder / "manifest.json", folder / "assembly-dev" / "manifest.json"):
        path.write_text(path.read_text().replace('"dev', '"Pipeline/dev').replace('"/dev/', '"/Pipeline/dev/'))
    inner = folder / "assembly-dev" / "manifest.json"
    inner.write_text(inner.read_text().replace("dev/serving", "dev/Group/serving"))
    [(name, environment)] = read_assembly(folder).environments.items()
    assert name == "Pipeline-dev"
    assert list(environment.stacks) == ["Group-serving"]
    assert environment.stacks["Group-serving"].resources["Function1"].path == "Handler/Function"


def test_nothing_is_kept_of_what_builds_start_from(tmp_path: Path) -> None:
    before = serving(write(tmp_path))
    (tmp_path / "source" / "file").write_text("another")
    assert serving(tmp_path) == before
    assert before.assets["Source/Files"].kind is AssetKind.SOURCE


def test_without_a_validation_report_findings_are_unknown(tmp_path: Path) -> None:
    assert read_assembly(write(tmp_path)).environments["dev"].findings is None


def test_findings_are_those_of_the_report_and_those_accepted(tmp_path: Path) -> None:
    violation = {
        "ruleName": "AwsSolutions-SNS3",
        "severity": "error",
        "description": "No SSL.",
        "violatingConstructs": [
            {"constructPath": "dev/serving/Topic/Resource"},
            {"constructPath": "prod/serving/Topic/Resource"},
        ],
    }
    folder = write(tmp_path, report={"pluginReports": [{"violations": [violation]}]})
    findings = read_assembly(folder).environments["dev"].findings
    assert findings is not None
    topic = Finding(stack="serving", path="Topic", rule="AwsSolutions-SNS3", severity="error", description="No SSL.")
    assert [each for each in findings if not each.accepted] == [topic]
    accepted = [each for each in findings if each.accepted]
    assert {each.rule: each.accepted for each in accepted} == {
        "AwsSolutions-IAM5[Resource::*]": "No resource.",
        "NIST.800.53.R5-IAM": "Inline.",
    }
    assert {each.path for each in accepted} == {"Handler/Policy"}


def test_a_folder_that_is_no_assembly_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"manifest\.json"):
        read_assembly(tmp_path)


# The app that cdk.json names, run as the CDK's command line runs it.
WRITE_CONTEXT = """
import json, os, pathlib
out = pathlib.Path(os.environ["CDK_OUTDIR"])
names = ("CDK_CONTEXT_JSON", "CDK_VALIDATION", "AWS_PROFILE", "CDK_DEFAULT_ACCOUNT")
told = {name: os.environ.get(name) for name in names}
(out / "told.json").write_text(json.dumps({**told, "cwd": os.getcwd()}))
"""


def project(folder: Path, app: str, **settings: object) -> Path:
    """A project whose app is a Python program."""
    folder.mkdir(exist_ok=True)
    (folder / "its app.py").write_text(app)
    command = f"{shlex.quote(sys.executable)} 'its app.py'"
    (folder / "cdk.json").write_text(json.dumps({"app": command, **settings}))
    return folder


def test_the_app_gets_the_context_and_no_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "mine")
    monkeypatch.setenv("CDK_DEFAULT_ACCOUNT", "999999999999")
    folder = project(tmp_path / "project", WRITE_CONTEXT, context={"a": 1, "b": 1})
    synthesise(folder, tmp_path / "out", validation=False, context={"b": 2})
    written = json.loads((tmp_path / "out" / "told.json").read_text())
    assert json.loads(written.pop("CDK_CONTEXT_JSON")) == {"a": 1, "b": 2}
    assert written.pop("CDK_VALIDATION") == "false"
    assert written == {"AWS_PROFILE": None, "CDK_DEFAULT_ACCOUNT": None, "cwd": str(folder)}


@pytest.mark.parametrize(
    ("app", "error", "message"),
    [
        ("import sys\nsys.exit(sys.stderr.write('prod.yaml: wrong') and 2)", InputError, "^prod.yaml: wrong$"),
        ("raise SystemExit('no such module')", WorkFailedError, "no such module"),
    ],
)
def test_the_app_s_input_errors_are_passed_on_and_other_failures_are_failed_work(
    tmp_path: Path, app: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        synthesise(project(tmp_path / "project", app), tmp_path / "out")


def test_open_findings_are_no_failure(tmp_path: Path) -> None:
    report = "import os, pathlib\npathlib.Path(os.environ['CDK_OUTDIR'], 'validation-report.json').write_text('{}')\n"
    folder = project(tmp_path / "project", f"{report}raise SystemExit(1)")
    synthesise(folder, tmp_path / "out")
    with pytest.raises(WorkFailedError):
        synthesise(folder, tmp_path / "other", validation=False)


@pytest.mark.parametrize(("text", "found"), [(None, "no such file"), ("{}", "no app"), ("{", "no JSON")])
def test_a_project_without_an_app_is_refused(tmp_path: Path, text: str | None, found: str) -> None:
    if text is not None:
        (tmp_path / "cdk.json").write_text(text)
    with pytest.raises(InputError, match=found):
        synthesise(tmp_path, tmp_path / "out")
