"""The GPU step: its result, read with distrust, and timing caches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engines.prepare_way import A10G, IMAGE
from tests.models import fake_aws
from tests.models.fake_aws import FakeAws
from tritonstack.engines.gpu_step import (
    EngineFailedError,
    build_engine,
    fetch_timing_cache,
    keep_timing_cache,
    read_result,
)
from tritonstack.engines.plan import builder_for
from tritonstack.errors import WorkFailedError
from tritonstack.models.bucket import ArtifactBucket
from tritonstack.models.programs import Report

RECORD = {"name": "model.plan", "bytes": 4, "sha256": "0" * 64}
GOOD: dict[str, Any] = {
    "outcome": "built",
    "status": 0,
    "release": "24.09",
    "trtexec": {"program": "trtexec", "tensorrt": "10.4.0", "stand_in": False, "host_data": True},
    "gpu": {"name": "NVIDIA A10G", "compute_capability": "8.6", "driver": "550.127.05"},
    "image": {},
    "durations": {"build_seconds": 1.5},
    "files": {"plan": RECORD, "outputs": {**RECORD, "name": "outputs.json"}},
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def _folder(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> Path:
    folder = tmp_path_factory.mktemp("output")
    (folder / "result.json").write_bytes(content)
    return folder


@given(content=st.binary(max_size=60) | st.builds(lambda value: json.dumps(value).encode(), JSON))
def test_any_bytes_are_refused_and_never_raise_otherwise(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    with pytest.raises(WorkFailedError, match=r"^engine of m"):
        read_result(_folder(tmp_path_factory, content), what="engine of m")


@given(field=st.sampled_from(sorted(set(GOOD) - {"status"})), value=JSON, drop=st.booleans())
def test_a_result_with_another_field_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, field: str, value: Any, drop: bool
) -> None:
    content = {key: value if key == field else kept for key, kept in GOOD.items() if not (drop and key == field)}
    folder = _folder(tmp_path_factory, json.dumps(content).encode())
    try:
        result = read_result(folder, what="engine of m")
    except WorkFailedError:
        return
    assert result.outcome == "built"
    assert {"plan", "outputs"} <= set(result.files)


def test_a_failed_step_is_told_with_phase_reason_and_last_lines(tmp_path: Path) -> None:
    failed = {"outcome": "failed", "phase": "build", "reason": "no kernel", "log_tail": ["[E] one", "[E] two"]}
    (tmp_path / "result.json").write_text(json.dumps(failed))
    with pytest.raises(WorkFailedError) as refused:
        read_result(tmp_path, what="engine of m")
    assert str(refused.value) == "engine of m failed in its phase build: no kernel\n  [E] one\n  [E] two"


KEY = "timing-caches/a10g/10.4.0/timing.cache"


@pytest.fixture
def aws() -> Iterator[FakeAws]:
    with fake_aws.running() as running:
        yield running


def bucket(aws: FakeAws) -> ArtifactBucket:
    return ArtifactBucket(environment="dev", session=aws)


def job(folder: Path, *, cache: str | None = "timing.cache", tensorrt: tuple[str, ...] = ("10.4",)) -> Path:
    folder.mkdir(parents=True)
    (folder / "job.json").write_text(json.dumps({"timing_cache": cache, "tensorrt": list(tensorrt)}))
    return folder


def output(folder: Path, content: bytes | None, *, tensorrt: str = "10.4.0") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, Any] = {}
    if content is not None:
        (folder / "timing.cache").write_bytes(content)
        files["timing"] = {"name": "timing.cache"}
    result = {"outcome": "built", "trtexec": {"tensorrt": tensorrt}, "files": files}
    (folder / "result.json").write_text(json.dumps(result))
    return folder


def keep(aws: FakeAws, folder: Path, *, before: str | None = None) -> list[str]:
    """Keep what a step left; what was reported."""
    said: list[str] = []
    keep_timing_cache(bucket(aws), folder, gpu="A10G", before=before, report=said.append)
    return said


def fetch(aws: FakeAws, folder: Path) -> tuple[str | None, list[str]]:
    """Fetch for a job; its digest, and what was reported."""
    said: list[str] = []
    return fetch_timing_cache(bucket(aws), folder, gpu="A10G", report=said.append), said


def test_the_next_build_starts_from_what_the_last_one_timed(aws: FakeAws, tmp_path: Path) -> None:
    assert keep(aws, output(tmp_path / "output", b"tactics")) == []
    assert list(aws.objects) == [KEY]
    digest, said = fetch(aws, job(tmp_path / "job"))
    assert (tmp_path / "job/timing.cache").read_bytes() == b"tactics"
    assert (digest is not None, said) == (True, [])


def test_a_cache_that_did_not_change_is_not_written_again(aws: FakeAws, tmp_path: Path) -> None:
    keep(aws, output(tmp_path / "output", b"tactics"))
    digest, _ = fetch(aws, job(tmp_path / "job"))
    keep(aws, tmp_path / "output", before=digest)
    assert aws.writes == [KEY]


def test_a_cache_of_another_tensorrt_or_gpu_is_not_taken(aws: FakeAws, tmp_path: Path) -> None:
    keep(aws, output(tmp_path / "output", b"tactics", tensorrt="10.13.2"))
    assert fetch(aws, job(tmp_path / "one", tensorrt=("10.1",)))[0] is None, "10.1 is not the beginning of 10.13"
    assert fetch(aws, job(tmp_path / "two", tensorrt=("10.9", "10.13")))[0] is not None
    other = fetch_timing_cache(bucket(aws), job(tmp_path / "three", tensorrt=("10.13",)), gpu="T4", report=print)
    assert other is None


def test_a_job_that_wants_no_cache_gets_none(aws: FakeAws, tmp_path: Path) -> None:
    keep(aws, output(tmp_path / "output", b"tactics"))
    assert fetch(aws, job(tmp_path / "job", cache=None)) == (None, [])


def test_a_cache_that_is_not_what_was_put_there_is_left_out_and_reported(aws: FakeAws, tmp_path: Path) -> None:
    keep(aws, output(tmp_path / "output", b"tactics"))
    aws.objects[KEY] = b"damaged"
    digest, (said,) = fetch(aws, job(tmp_path / "job"))
    assert digest is None
    assert "is not what was stored" in said
    assert not (tmp_path / "job/timing.cache").exists()


def test_a_bucket_that_refuses_costs_the_cache_alone(aws: FakeAws, tmp_path: Path) -> None:
    kept = bucket(aws)
    aws.url = ""
    broken = ArtifactBucket.__new__(ArtifactBucket)
    broken.name, broken.s3 = kept.name, fake_client()
    said: list[str] = []
    assert fetch_timing_cache(broken, job(tmp_path / "job"), gpu="A10G", report=said.append) is None
    keep_timing_cache(broken, output(tmp_path / "output", b"tactics"), gpu="A10G", before=None, report=said.append)
    assert len(said) == 2
    assert all("Could not connect" in line for line in said)


def fake_client() -> Any:
    """A client of a server that is gone."""
    gone = FakeAws(url="http://127.0.0.1:9")
    return gone.client("s3")


@pytest.mark.parametrize("content", [None, b""])
def test_a_step_without_a_cache_keeps_none(aws: FakeAws, tmp_path: Path, content: bytes | None) -> None:
    assert keep(aws, output(tmp_path / "output", content)) == []
    assert aws.writes == []


class Refusing:
    """A runner whose TensorRT does not read its cache, in the given words."""

    def __init__(self, *, says: str) -> None:
        self.says, self.caches = says, list[bool]()

    def run(self, *, name: str, job: Path, output: Path, report: Report) -> None:
        report(name)
        self.caches.append((job / "timing.cache").exists())
        if self.caches[-1]:
            raise EngineFailedError(reason="trtexec ends with status 1", log_tail=[self.says])
        _output_of(output)


def _output_of(folder: Path) -> None:
    output(folder, b"new tactics")


def build(aws: FakeAws, folder: Path, runner: Refusing) -> None:
    """Build an engine with a cache from an earlier build."""
    keep(aws, output(folder / "before", b"old tactics"))
    build_engine(
        job(folder / "job"),
        folder / "output",
        model="tiny",
        environment="dev",
        builder=builder_for(A10G, "us-east-1", image=IMAGE),
        runner=runner,
        bucket=bucket(aws),
        report=lambda _text: None,
    )


def test_an_engine_whose_tensorrt_refuses_the_cache_is_built_without_it(aws: FakeAws, tmp_path: Path) -> None:
    runner = Refusing(says="[E] Error[4]: createTimingCache failed: timing cache is of another version")
    build(aws, tmp_path, runner)
    assert runner.caches == [True, False]
    assert aws.objects[KEY] == b"new tactics"


def test_an_engine_that_fails_for_another_reason_is_not_built_again(aws: FakeAws, tmp_path: Path) -> None:
    runner = Refusing(says="[I] timing cache loaded")
    with pytest.raises(EngineFailedError):
        build(aws, tmp_path, runner)
    assert runner.caches == [True]
