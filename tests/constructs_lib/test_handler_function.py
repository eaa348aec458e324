"""The function behind custom resources: what Lambda is given to run, and as whom."""

from __future__ import annotations

import stat
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_logs as logs

import constructs_lib.handler_function as under_test
from constructs_lib.handler_function import HandlerFunction
from tests.constructs_lib.templates import ACCOUNT, REGION, new_app, only, properties


@pytest.fixture
def handlers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of handlers with one in it, as a clone with umask 077 leaves it."""
    folder = tmp_path / "handlers" / "greeting"
    folder.mkdir(parents=True)
    source = folder / "handler.py"
    source.write_text("def handler(event, context): ...\n")
    source.chmod(0o600)
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "handler.pyc").write_bytes(b"")
    monkeypatch.setattr(under_test, "HANDLERS", folder.parent)
    return folder


def synthesised(
    outdir: Path, *, variables: dict[str, str] | None = None, package: bool = False
) -> cdk.cx_api.CloudFormationStackArtifact:
    app = new_app(outdir=str(outdir))
    stack = cdk.Stack(app, "stack", env=cdk.Environment(account=ACCOUNT, region=REGION))
    HandlerFunction(
        stack,
        "Greeting",
        handler="greeting",
        description="Greets",
        log_retention=logs.RetentionDays.ONE_WEEK,
        variables=variables,
        package=package,
    )
    return app.synth().get_stack_by_name("stack")


def test_a_handler_that_only_its_owner_may_read_is_readable_for_all_in_the_asset(
    handlers: Path, tmp_path: Path
) -> None:
    synthesised(tmp_path / "out")
    [asset] = (tmp_path / "out").glob("asset.*")
    assert [path.name for path in asset.iterdir()] == ["handler.py"]
    assert stat.S_IMODE((asset / "handler.py").stat().st_mode) == 0o644


def test_the_asset_has_the_same_name_whatever_the_modes_in_the_clone(handlers: Path, tmp_path: Path) -> None:
    closed = synthesised(tmp_path / "closed").template
    (handlers / "handler.py").chmod(0o644)
    assert synthesised(tmp_path / "open").template == closed


def test_the_log_group_is_the_one_that_the_role_may_write(handlers: Path, tmp_path: Path) -> None:
    template = synthesised(tmp_path / "out").template
    log_group, _ = only(template, "AWS::Logs::LogGroup")
    assert properties(template, "AWS::Lambda::Function")["LoggingConfig"] == {"LogGroup": {"Ref": log_group}}
    [statement] = properties(template, "AWS::IAM::Policy")["PolicyDocument"]["Statement"]
    assert statement["Resource"] == {"Fn::GetAtt": [log_group, "Arn"]}


def test_the_function_has_the_variables_that_it_is_given_and_else_none(handlers: Path, tmp_path: Path) -> None:
    without = synthesised(tmp_path / "without").template
    assert "Environment" not in properties(without, "AWS::Lambda::Function")
    given = synthesised(tmp_path / "given", variables={"WHOM": "you"}).template
    assert properties(given, "AWS::Lambda::Function")["Environment"] == {"Variables": {"WHOM": "you"}}


def test_files_that_import_one_another_lie_in_a_folder_of_their_name(handlers: Path, tmp_path: Path) -> None:
    (handlers / "words.py").write_text('HELLO = "hello"\n')
    template = synthesised(tmp_path / "out", package=True).template
    assert properties(template, "AWS::Lambda::Function")["Handler"] == "greeting.handler.handler"
    [asset] = (tmp_path / "out").glob("asset.*")
    files = sorted(str(path.relative_to(asset)) for path in asset.rglob("*") if path.is_file())
    assert files == ["greeting/handler.py", "greeting/words.py"]
