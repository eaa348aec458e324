"""``tritonstack preflight``: its table, its JSON, its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result

from tests.fake_aws import DENIED, AwsError, FakeAws, Response
from tests.preflight.subjects import ACCOUNT, served
from tests.preflight.test_account import FOUND, MISSING, bootstrap
from tests.preflight.test_role import DEPLOYED
from tritonstack.cli import preflight
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.preflight import runner
from tritonstack.preflight.subject import PreflightResult, Subject

SCHEMA = Path(__file__).parents[2] / "schemas/preflight.schema.json"
CALLER: Response = {"Account": ACCOUNT, "Arn": f"arn:aws:iam::{ACCOUNT}:user/me", "UserId": "u"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that is the working directory, with an environment ``test``."""
    served(tmp_path)
    (tmp_path / "environments").mkdir()
    (tmp_path / "test.yaml").rename(tmp_path / "environments/test.yaml")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(tmp_path))
    monkeypatch.setattr(preflight, "run_checks", _two_checks)
    return tmp_path


def _two_checks(subject: object, **more: object) -> object:
    checks = tuple(check for check in runner.CHECKS if check.name in {"bootstrap", "image"})
    return runner.run_checks(subject, checks=checks, **more)  # type: ignore[arg-type]


def _run(monkeypatch: pytest.MonkeyPatch, responses: dict[str, Response], *arguments: str) -> Result:
    session = FakeAws(
        responses={"sts.GetCallerIdentity": CALLER, **bootstrap("21"), "ecr.BatchGetImage": FOUND, **responses}
    )
    monkeypatch.setattr(preflight, "session_of", lambda *_settings, **_local: session)
    return CliRunner().invoke(
        preflight.command, ["-e", "test", *arguments], env={"COLUMNS": "120"}, standalone_mode=False
    )


def test_nothing_that_fails_is_exit_code_zero(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = _run(monkeypatch, {})
    assert result.return_value == 0
    assert "4 pass, 0 will fail, 0 could not be checked" in result.stdout
    assert "constructed" not in result.stdout, "this is not the local AWS"


PIPELINE = f"""
name: triton
account: "{ACCOUNT}"
region: us-east-1
source:
  connection: arn:aws:codeconnections:us-east-1:{ACCOUNT}:connection/00000000-0000-0000-0000-000000000000
  repository: team/models
stages: [{{environment: test}}]
"""


@pytest.mark.parametrize(
    ("pipeline", "arguments", "at_once"),
    [(None, (), 1), (None, ("--concurrency", "3"), 3), ("test", (), 2), ("test", ("--concurrency", "1"), 1),
     ("other", (), 1)],
)  # fmt: skip
def test_what_a_pipeline_deploys_is_updated_at_once_unless_an_option_says_otherwise(
    project: Path, monkeypatch: pytest.MonkeyPatch, pipeline: str | None, arguments: tuple[str, ...], at_once: int
) -> None:
    served(project, {}, {})
    (project / "test.yaml").replace(project / "environments/test.yaml")
    if pipeline is not None:
        text = PIPELINE.replace("environment: test", f"environment: {pipeline}")
        (project / "pipeline.yaml").write_text(text)
    seen: list[Subject] = []

    def look(subject: Subject, **_more: object) -> tuple[PreflightResult, ...]:
        seen.append(subject)
        return ()

    monkeypatch.setattr(preflight, "run_checks", look)
    assert _run(monkeypatch, {}, *arguments).return_value == 0
    assert [each.at_once for each in seen] == [at_once]


@pytest.mark.parametrize(
    ("variables", "local"),
    [
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:4566"}, True),  # eval "$(tritonstack local env)"
        ({"AWS_ENDPOINT_URL_SERVICE_QUOTAS": "http://localhost:4566"}, True),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:4566", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}, False),
    ],
)
def test_constructed_quotas_are_said_to_be_where_the_shell_points_at_a_local_aws(
    project: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], *, local: bool
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert (preflight.CONSTRUCTED in _run(monkeypatch, {}).stdout) is local
    assert json.loads(_run(monkeypatch, {}, "--json").stdout)["constructed"] is local


def test_what_fails_is_said_with_what_to_do_and_is_exit_code_one(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = _run(monkeypatch, {"ecr.BatchGetImage": MISSING})
    assert result.return_value == 1
    for words in ("will fail", "ImageNotFound", "needed:", "do:      Name a release"):
        assert words in result.stdout


def test_what_is_not_known_fails_only_where_asked_to_be_strict(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    denied: dict[str, Response] = {"ecr.BatchGetImage": DENIED}
    lenient = _run(monkeypatch, denied)
    assert lenient.return_value == 0
    assert "not known" in lenient.stdout
    assert "Allow ecr:BatchGetImage" in lenient.stdout
    assert _run(monkeypatch, denied, "--strict").return_value == 1


def test_programs_get_a_document_of_the_schema(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = _run(monkeypatch, {"ecr.BatchGetImage": DENIED}, "--json")
    document = json.loads(result.stdout)
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(document)
    assert (document["passes"], document["fails"], document["unknown"]) == (3, 0, 1)
    assert document["constructed"] is False
    assert [row["permission"] for row in document["results"]] == [None, None, None, "ecr:BatchGetImage"]
    assert {row["check"] for row in document["results"]} == {"account", "bootstrap", "image"}


def test_the_policy_of_each_role_is_printed_with_the_names_of_what_is_deployed(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = _run(monkeypatch, DEPLOYED, "--role-policy")
    policy = json.loads(result.stdout)["e0"]
    statements = {each["Sid"]: each for each in policy["Statement"]}
    assert statements["ReadArchives"] == {
        "Sid": "ReadArchives",
        "Effect": "Allow",
        "Action": ["s3:GetObject"],
        "Resource": ["arn:aws:s3:::archives/endpoints/e0/24.09-t4/*"],
    }
    assert statements["DecryptArchives"]["Resource"] == [f"arn:aws:kms:us-east-1:{ACCOUNT}:key/k"]
    assert statements["ListArchives"]["Condition"] == {
        "StringLike": {"s3:prefix": ["endpoints/e0/24.09-t4/*", "endpoints/e0/24.09-t4"]}
    }
    missing = _run(monkeypatch, {"ssm.GetParameter": AwsError("ParameterNotFound")}, "--role-policy")
    assert isinstance(missing.exception, WorkFailedError)
    assert "cdk deploy test/artifacts" in str(missing.exception)


def test_a_wrong_environment_and_missing_credentials_are_wrong_input(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError):
        CliRunner().invoke(preflight.command, ["-e", "nowhere"], standalone_mode=False, catch_exceptions=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    with pytest.raises(InputError, match="credentials"):
        CliRunner().invoke(preflight.command, ["-e", "test"], standalone_mode=False, catch_exceptions=False)


def test_credentials_that_have_expired_are_said_and_no_traceback(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = _run(monkeypatch, {"sts.GetCallerIdentity": AwsError("ExpiredToken", "it has expired")}, "--strict")
    assert result.exception is None
    assert result.return_value == 1
    assert "credentials do not work: ExpiredToken: it has expired" in result.stdout
