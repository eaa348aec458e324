"""Permissions on the command line: ``local env --role``, denials in ``local status``, ``local iam report``."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from click.testing import CliRunner, Result

from tests.cli.test_examples import run_example
from tests.local_keys import KEYS
from tests.tritonstack_local.emulator.running import TRUST, Emulator
from tests.tritonstack_local.fake_parts import EMPTY_STATUS, record_of
from tests.tritonstack_local.http_fake import responding
from tritonstack.cli.root import root
from tritonstack.config import load_environment
from tritonstack.errors import InputError
from tritonstack.paths import REPOSITORY, LocalPaths
from tritonstack.pipeline.bootstrap import environment_policy
from tritonstack.pipeline.builds import PipelineNames
from tritonstack_local.aws import require_local_aws
from tritonstack_local.commands.deploy import LocalDeployment
from tritonstack_local.commands.iam import merged
from tritonstack_local.processes import RunningRecord, write_record

ACCOUNT = "123456789012"


def run(*arguments: str) -> Result:
    """``tritonstack local …``; an error of ours is in ``exception``."""
    return CliRunner().invoke(root, ["local", *arguments])


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Makes an emulator the local AWS that the commands find; its runtime has no endpoint."""
    monkeypatch.setenv("TRITONSTACK_HOME", str(tmp_path))
    with responding(json.dumps(EMPTY_STATUS).encode()) as (port, _):

        def find(emulator: Emulator) -> None:
            record = RunningRecord(
                emulator_port=emulator.port,
                runtime_port=port,
                keys=KEYS,
                emulator=record_of(emulator.process.pid),
                runtime=record_of(os.getpid()),
            )
            write_record(LocalPaths(tmp_path), record)

        yield find


def make_role(aws: Emulator, name: str, *statements: dict[str, Any]) -> str:
    """A role with one policy; its ARN."""
    iam = aws.client("iam")
    arn = iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(TRUST))["Role"]["Arn"]
    document = {"Version": "2012-10-17", "Statement": statements}
    iam.put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=json.dumps(document))
    return str(arn)


def client_of(role: str, service: str) -> Any:
    """A client in a shell of another session, which evaluated what ``local env --role`` prints."""
    script = run("env", "--role", role).stdout
    names = ("AWS_ENDPOINT_URL", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    shown = "; ".join(f'echo "${name}"' for name in names)
    printed = subprocess.run(
        ["bash", "-euc", f"export AWS_SESSION_TOKEN=mine\n{script}\n{shown}"],
        env={"PATH": "/usr/bin:/bin"}, text=True, capture_output=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    keys = ("endpoint_url", "region_name", "aws_access_key_id", "aws_secret_access_key", "aws_session_token")
    given: dict[str, Any] = dict(zip(keys, printed, strict=True))
    return boto3.client(service, **given)


GETS = {
    "Sid": "Gets",
    "Effect": "Allow",
    "Action": ["ssm:GetParameter", "ssm:PutParameter"],
    "Resource": ["arn:aws:ssm:*:*:parameter/*", "arn:aws:ssm:*:*:parameter/never"],
}
NEVER = {"Sid": "Never", "Effect": "Allow", "Action": "s3:Get*", "Resource": "*"}
DENIES = {"Sid": "Denies", "Effect": "Deny", "Action": "kms:*", "Resource": "*"}


def use(aws: Emulator, name: str) -> None:
    """Let a role use one of the actions that it has, twice."""
    make_role(aws, name, GETS, NEVER, DENIES)
    aws.client("ssm").put_parameter(Name=f"/{name}", Value="1", Type="String")
    ssm = client_of(name, "ssm")
    for _ in range(2):
        ssm.get_parameter(Name=f"/{name}")


def reported(name: str, *arguments: str) -> dict[str, Any]:
    """The statements that ``local iam report --json`` has of a role, by Sid."""
    document = json.loads(run("iam", "report", "--json", *arguments).stdout)
    [role] = [each for each in document if each["role"] == name]
    return {each.pop("sid"): each for each in role["statements"]}


def expected(times: int) -> dict[str, Any]:
    return {
        "Gets": {
            "needed": True,
            "used": {"ssm:GetParameter": times},
            "never_used": ["ssm:PutParameter"],
            "patterns": {
                "ssm:GetParameter": True,
                "ssm:PutParameter": False,
                "arn:aws:ssm:*:*:parameter/*": True,
                "arn:aws:ssm:*:*:parameter/never": False,
            },
        },
        "Never": {
            "needed": False,
            "used": {},
            "never_used": ["s3:Get*"],
            "patterns": {"s3:Get*": False, "*": False},
        },
    }


def test_the_examples_of_help_act_as_a_role(guarded: Emulator, commands: Any) -> None:
    commands(guarded)
    make_role(guarded, "deployer", GETS)
    assert "export AWS_SESSION_TOKEN=" in run_example("local env").stdout
    assert "deployer" in [role["role"] for role in json.loads(run_example("local iam report").stdout)]


def test_a_shell_acts_as_the_role_of_a_name_or_an_arn_and_an_unknown_one_is_refused(
    guarded: Emulator, name: str, commands: Any
) -> None:
    commands(guarded)
    arn = make_role(guarded, name, GETS)
    for role in (name, arn):
        caller = client_of(role, "sts").get_caller_identity()["Arn"]
        assert caller == f"arn:aws:sts::{ACCOUNT}:assumed-role/{name}/local-env"
    for unknown in (f"{name}-of-others", arn.replace(ACCOUNT, "210987654321"), ""):
        refused = run("env", "--role", unknown)
        assert isinstance(refused.exception, InputError)
        assert refused.exception.exit_code == 2
        [problem] = refused.exception.problems
        assert (problem.field, problem.found) == ("--role", unknown)
        assert refused.stdout == ""
    assert "unset AWS_SESSION_TOKEN" in run("env", "--unset").stdout.splitlines()


def test_the_status_lists_a_denial_with_the_statement_that_would_allow_it(
    guarded: Emulator, name: str, commands: Any
) -> None:
    commands(guarded)
    make_role(guarded, name, NEVER, DENIES)
    resource = f"arn:aws:ssm:us-east-1:{ACCOUNT}:parameter/{name}"
    ssm, kms = client_of(name, "ssm"), client_of(name, "kms")
    for call in (lambda: ssm.get_parameter(Name=f"/{name}"),) * 2 + (kms.list_keys,):
        with pytest.raises(ClientError, match="not authorized"):
            call()
    lines = [line.strip() for line in run("status").stdout.splitlines()]
    [at] = [number for number, line in enumerate(lines) if f"perform: ssm:GetParameter on resource: {resource}" in line]
    assert lines[at].startswith(f"ssm GetParameter (2 times): User: arn:aws:sts::{ACCOUNT}:assumed-role/{name}/")
    allows = {"Effect": "Allow", "Action": "ssm:GetParameter", "Resource": resource}
    assert json.loads(lines[at + 1].removeprefix("would be allowed by ")) == allows
    assert lines[at + 2].startswith("kms ListKeys: User: ")
    assert lines[at + 3] == "an explicit deny overrides it"


def test_the_status_reports_services_where_nothing_is_enforced(aws: Emulator, commands: Any) -> None:
    commands(aws)
    assert "IAM is switched off: every request is allowed" in run("status").stdout


def test_the_report_has_the_used_actions_and_those_that_never_were(guarded: Emulator, name: str, commands: Any) -> None:
    commands(guarded)
    use(guarded, name)
    assert reported(name) == expected(2)
    rows = [line.split() for line in run("iam", "report").stdout.splitlines() if f" {name} " in line]
    assert rows == [
        [name, "Gets", "yes", "ssm:GetParameter", "ssm:PutParameter"],
        [name, "Never", "no", "none", "s3:Get*"],
    ]


def test_records_of_several_local_aws_are_reported_together_and_an_empty_folder_is_refused(
    tmp_path: Path, name: str, commands: Any
) -> None:
    records = tmp_path / "records"
    records.mkdir()
    refused = run("iam", "report", "--records", str(records))
    assert isinstance(refused.exception, InputError)
    assert refused.exception.exit_code == 2
    assert "TRITONSTACK_IAM_RECORDS" in str(refused.exception)
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        given = {"TRITONSTACK_IAM": "on", "TRITONSTACK_FLEETS": "none", "TRITONSTACK_IAM_RECORDS": str(records)}
        emulator = Emulator(folder, **given).wait_ready()
        try:
            commands(emulator)
            use(emulator, name)
        finally:
            assert emulator.stop() == 0
    assert reported(name, "--records", str(records)) == expected(4)
    (records / "other.json").write_text('{"roles": [{}]}')
    refused = run("iam", "report", "--records", str(records))
    assert isinstance(refused.exception, InputError)
    assert "other.json" in str(refused.exception)
    assert "roles.0.arn: Field required" in str(refused.exception)


@pytest.mark.parametrize(
    ("stack", "logical_id", "shown"),
    [
        ("dev-serving", "HandlerRole0A1B2C3D", "dev-serving/HandlerRole"),
        ("CDKToolkit", "FilePublishingRole", "CDKToolkit/FilePublishingRole"),
        ("", "", "made-by-hand"),
    ],
)
def test_a_role_is_shown_by_its_stack_and_its_name_in_the_code(stack: str, logical_id: str, shown: str) -> None:
    role = {"arn": f"arn:aws:iam::{ACCOUNT}:role/p/made-by-hand", "stack": stack, "logical_id": logical_id}
    assert [each.name for each in merged([{"roles": [{**role, "statements": []}]}])] == [shown]


def test_a_restricted_deployment_has_the_current_policy_of_each_environment(
    guarded: Emulator, name: str, commands: Any
) -> None:
    commands(guarded)
    settings = load_environment(REPOSITORY / "environments/local.yaml")
    other, *same = (f"{name}-{each}" for each in "baaaaaaa")  # more often than a policy has versions
    for number, environment in enumerate((other, *same)):
        wanted = settings.model_copy(
            update={"environment": environment, "alarms": None, "dashboard": environment == other or number % 2 == 0}
        )
        given = LocalDeployment(aws=require_local_aws(), environment=environment).execution_policies(wanted)
    own = [each for each in given if f"/{name}-" in each]
    assert own == [f"arn:aws:iam::{ACCOUNT}:policy/{name}-{each}-execution" for each in "ab"]
    iam = guarded.client("iam")
    version = iam.get_policy(PolicyArn=own[0])["Policy"]["DefaultVersionId"]
    document = iam.get_policy_version(PolicyArn=own[0], VersionId=version)["PolicyVersion"]["Document"]
    names = PipelineNames(pipeline="tritonstack", account=ACCOUNT, partition="aws")
    assert document == environment_policy(wanted, names)
    assert document != environment_policy(wanted.model_copy(update={"dashboard": not wanted.dashboard}), names)
