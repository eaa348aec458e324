"""Credentials that end while a command works: one message with what to do, exit code 1, and work that goes on later."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, CredentialRetrievalError, UnauthorizedSSOTokenError

from tests.archives.test_publish import _build
from tests.fake_aws import FakeAws
from tests.models.folders import make_endpoint, make_environment, places_in, write_double
from tritonstack.archives import bucket as bucket_module
from tritonstack.archives.bucket import ArtifactBucket
from tritonstack.archives.publish import publish_environment
from tritonstack.aws.session import credentials_ended
from tritonstack.cli import root as cli
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.models.manifest import Places
from tritonstack.preparation.remote_job import JobState, await_job
from tritonstack.releases.verification import Verifier

ENVIRONMENT = make_environment(make_endpoint("numbers", ("double",)))
Ended = Callable[[Callable[[], object]], tuple[int, str]]


def refused(code: str, operation: str = "PutObject") -> ClientError:
    """An error as botocore raises it."""
    return ClientError({"Error": {"Code": code, "Message": "said so"}}, operation)


def wrapped(error: Exception) -> WorkFailedError:
    """An error of ours that came from another, whose words it does not repeat."""
    ours = WorkFailedError("it failed")
    ours.__cause__ = error
    return ours


@pytest.fixture
def aws() -> FakeAws:
    return FakeAws.with_artifacts()


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """A project with one built archive."""
    write_double(tmp_path)
    found = places_in(tmp_path)
    found.archives.mkdir()
    _build(found, b"archive" * 100)
    return found


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ended:
    """Runs something as the command line would: exit code and what it said; a traceback fails the test."""

    def run(work: Callable[[], object]) -> tuple[int, str]:
        monkeypatch.setattr(cli.root, "main", lambda **_: work())
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        return int(exit_.value.code or 0), capsys.readouterr().err

    return run


@pytest.mark.parametrize(
    "error",
    [
        *(
            refused(code)
            for code in ("ExpiredToken", "ExpiredTokenException", "RequestExpired", "InvalidClientTokenId")
        ),
        wrapped(refused("ExpiredTokenException")),
        WorkFailedError(f"2 failed: {refused('ExpiredToken')}"),
        WorkFailedError("cdk deploy ended with 1\nExpiredTokenException: The security token in the request is expired"),
        UnauthorizedSSOTokenError(),
        wrapped(CredentialRetrievalError(provider="custom-process", error_msg="no")),
        InputError([Problem(found=str(refused("ExpiredToken")), allowed="x")]),
    ],
    ids=str,
)
def test_credentials_that_have_ended_are_said_with_what_to_do(error: Exception, ended: Ended) -> None:
    def work() -> None:
        raise error

    code, said = ended(work)
    assert code == 1
    assert "renew the AWS credentials" in said
    assert "then run the same command again" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "error", [refused("AccessDenied"), refused("Throttling"), WorkFailedError("expired"), OSError()]
)
def test_other_errors_are_left_as_they_are(error: Exception) -> None:
    assert not credentials_ended(error)


def until_it_works(aws: FakeAws, work: Callable[[], object], ended: Ended) -> list[str]:
    """Messages of work whose credentials expire after 0, 1, 2, … responses and are then renewed."""
    said: list[str] = []
    for responses in range(60):
        aws.responses_left = responses
        code, text = ended(lambda: (work(), 0)[1])
        if code == 0:
            return said
        assert (code, text.count("renew the AWS credentials"), "Traceback" in text) == (1, 1, False), text
        assert "Expired" in text, text
        said.append(text)
    raise AssertionError("it never worked")


@pytest.mark.parametrize("part_bytes", [1 << 20, 100], ids=["whole", "in-parts"])
def test_publishing_goes_on_where_it_was_whenever_the_credentials_end(
    aws: FakeAws, places: Places, ended: Ended, monkeypatch: pytest.MonkeyPatch, part_bytes: int
) -> None:
    monkeypatch.setattr(bucket_module, "PART_BYTES", part_bytes)
    said = until_it_works(aws, lambda: publish_environment(ENVIRONMENT, session=aws, places=places), ended)
    assert len(said) > 5, "each of its requests was the first that was refused"
    assert len(aws.writes) == len(set(aws.writes)) == 3, "inputs, manifest and archive, each once"
    aws.responses_left = None
    assert str(publish_environment(ENVIRONMENT, session=aws, places=places)) == "1 there already"


def test_an_abort_that_is_refused_too_hides_nothing(aws: FakeAws, places: Places) -> None:
    bucket = ArtifactBucket(environment="dev", session=aws)
    aws.responses_left = 1
    file = places.archives / "large"
    file.write_bytes(bytes(bucket_module.PART_BYTES + 1))
    with pytest.raises(WorkFailedError, match=r"could not write s3://artifacts/large: .*ExpiredToken.*UploadPart"):
        bucket.put_once("large", file)


def test_verification_ends_with_the_first_model_as_the_others_would_say_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error: Exception = WorkFailedError(f"could not read: {refused('ExpiredToken')}")

    def called(*_: Any) -> None:
        raise error

    monkeypatch.setattr(Verifier, "_manifest", called)
    verifier, release = object.__new__(Verifier), Any
    with pytest.raises(WorkFailedError, match="ExpiredToken"):
        verifier.model(release, Any)  # type: ignore[arg-type]


class RunningJob:
    """A job that runs on, of a service that takes the credentials no more."""

    link = "https://console.example/build/1"

    def __init__(self) -> None:
        self.looks = 0

    def look(self) -> JobState:
        self.looks += 1
        raise WorkFailedError(f"CodeBuild does not tell of it: {refused('ExpiredTokenException', 'BatchGetBuilds')}")

    def stop(self) -> None:
        raise WorkFailedError(str(refused("ExpiredTokenException", "StopBuild")))


def test_a_wait_for_a_job_lasts_while_a_person_may_renew_and_then_says_that_the_job_goes_on(ended: Ended) -> None:
    job, reports = RunningJob(), list[str]()
    code, said = ended(
        lambda: await_job(job, stop=threading.Event(), interval=0, report=reports.append, what="CodeBuild build 1")
    )
    assert code == 1
    assert "CodeBuild build 1 could not be stopped and goes on by itself: https://console.example/build/1" in said
    assert "renew the AWS credentials" in said
    assert job.looks > 20, "credentials that are renewed meanwhile, as of an SSO session, end the wait in no way"
    assert any("ExpiredTokenException" in each for each in reports)
