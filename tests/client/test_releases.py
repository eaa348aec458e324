"""Release records: cached, shared by threads, and what names resolve to."""

from __future__ import annotations

import pytest

from tests.client.fakes import FakeTime
from tests.fake_aws import FakeAws
from tritonstack.client.errors import AmbiguousModelError, ReleaseLookupError, UnknownModelError
from tritonstack.client.releases import ModelReference, ReleaseRecords
from tritonstack.errors import InputError

ONE, TWO = "0123456789abcdef", "fedcba9876543210"
PARAMETERS = {
    "/tritonstack/dev/_artifacts/bucket-name": "bucket",
    "/tritonstack/dev/digits/digits-onnx": ONE,
    "/tritonstack/dev/digits/bert": ONE,
    "/tritonstack/dev/text/bert": TWO,
    "/tritonstack/dev/text/bert-large": TWO,
    "/tritonstack/devious/text/other": TWO,
}


def records(parameters: dict[str, str] | None = None) -> tuple[ReleaseRecords, FakeAws, FakeTime]:
    """Records of environment ``dev``, with their account and clock."""
    aws, time = FakeAws(parameters=dict(PARAMETERS if parameters is None else parameters)), FakeTime()
    ssm = aws.client("ssm")
    return ReleaseRecords(environment="dev", ssm=lambda: ssm, now=lambda: time.seconds), aws, time


def resolve(source: ReleaseRecords, name: str) -> str:
    """``endpoint → archive``."""
    release = source.resolve(ModelReference.parse(name))
    return f"{release.endpoint} → {release.archive}"


def test_a_name_alone_is_found_among_all_records() -> None:
    source, aws, _ = records()
    assert resolve(source, "bert-large") == f"text → bert-large.{TWO}.tar.gz"
    assert resolve(source, "digits-onnx") == f"digits → digits-onnx.{ONE}.tar.gz"
    assert aws.parameter_reads == ["/tritonstack/dev/"]


def test_an_ambiguous_name_is_refused_with_its_candidates() -> None:
    source, _, _ = records()
    with pytest.raises(AmbiguousModelError, match=r"one of digits/bert, text/bert\n"):
        resolve(source, "bert")


def test_a_second_endpoint_with_the_model_breaks_no_client_that_calls_it_by_its_name_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source, aws, time = records()
    first = f"digits → digits-onnx.{ONE}.tar.gz"
    assert resolve(source, "digits-onnx") == first
    aws.parameters["/tritonstack/dev/canary/digits-onnx"] = TWO
    for _ in range(3):
        time.seconds += 61
        assert resolve(source, "digits-onnx") == first
    (message,) = [record.getMessage() for record in caplog.records]
    assert "one of canary/digits-onnx, digits/digits-onnx" in message
    with pytest.raises(AmbiguousModelError, match="as endpoint/model"):  # a client that starts now
        resolve(ReleaseRecords(environment="dev", ssm=lambda: aws.client("ssm")), "digits-onnx")
    aws.parameters["/tritonstack/dev/digits/digits-onnx"] = TWO  # its own record still moves
    time.seconds += 61
    assert resolve(source, "digits-onnx") == f"digits → digits-onnx.{TWO}.tar.gz"
    del aws.parameters["/tritonstack/dev/digits/digits-onnx"]  # and it is kept as long as its endpoint
    time.seconds += 61
    assert resolve(source, "digits-onnx") == f"canary → digits-onnx.{TWO}.tar.gz"


@pytest.mark.parametrize("name", ["digit-onnx", "digits/digit-onnx", "text/digits-onnx"])
def test_an_unknown_name_is_refused_with_its_nearest(name: str) -> None:
    source, _, _ = records()
    with pytest.raises(UnknownModelError) as caught:
        resolve(source, name)
    assert "digits-onnx" in caught.value.problems[0].allowed
    assert "_artifacts" not in str(caught.value)
    assert "'dev'" in caught.value.problems[0].found


def test_an_endpoint_in_place_of_a_model_is_refused_with_its_models() -> None:
    source, _, _ = records()
    with pytest.raises(UnknownModelError) as caught:
        resolve(source, "text")
    (problem,) = caught.value.problems
    assert problem.found == "'text', which is an endpoint"
    assert problem.allowed == "one of its models: text/bert, text/bert-large"


def test_records_are_read_again_after_a_minute() -> None:
    source, aws, time = records()
    resolve(source, "text/bert")
    aws.parameters["/tritonstack/dev/text/bert"] = ONE
    time.seconds += 59
    assert resolve(source, "text/bert") == f"text → bert.{TWO}.tar.gz"
    time.seconds += 1
    assert resolve(source, "text/bert") == f"text → bert.{ONE}.tar.gz"
    assert len(aws.parameter_reads) == 2
    time.seconds += 61
    aws.refused["ssm"] = "ThrottlingException"
    assert resolve(source, "text/bert") == f"text → bert.{ONE}.tar.gz", "while SSM is down the last record serves"
    time.seconds += 61
    aws.refused.clear()
    del aws.parameters["/tritonstack/dev/text/bert"]
    with pytest.raises(UnknownModelError):  # a removed one is not served from memory
        resolve(source, "text/bert")


def test_no_permission_to_list_is_an_error_that_advises_to_name_the_endpoint() -> None:
    source, aws, _ = records()
    aws.refused["ssm"] = "AccessDeniedException"
    with pytest.raises(ReleaseLookupError, match="endpoint/model") as caught:
        resolve(source, "bert")
    assert "AccessDeniedException" in str(caught.value.__cause__)


@pytest.mark.parametrize(
    "name", ["", "/", "a/", "/a", "a/b/c", "Bert", "bert_large", "-a", f"bert.{ONE}.tar.gz", "a b"]
)
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"\[endpoint/\]model"):
        ModelReference.parse(name)


def test_a_folders_name_is_refused_with_all_of_its_archives() -> None:
    names = [f"bert-{variant}" for variant in ("a", "b", "c", "d", "e", "f", "g")]
    source, _, _ = records({f"/tritonstack/dev/text/{name}": ONE for name in (*names, "bart")})
    with pytest.raises(UnknownModelError) as caught:
        resolve(source, "bert")
    (problem,) = caught.value.problems
    assert problem.allowed == f"a model with a release record: {', '.join(names)}"
    assert problem.advice == "", "the environment is right, and deployed"
