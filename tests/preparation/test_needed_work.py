"""Orders compared with the bucket, and the outcome of a run."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from tests.fake_aws import FakeAws
from tests.models.folders import make_engine, make_manifest, source_of, write_double
from tests.preparation.prepare_way import order_of
from tests.preparation.tiny_engine import write_tiny
from tritonstack.archives.bucket import ArtifactBucket, Place
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.models.build_target import target_for
from tritonstack.models.manifest import ArchiveEntry, Manifest
from tritonstack.models.recipe import Dependency
from tritonstack.models.source import ArchiveSource
from tritonstack.naming import ArchiveName, Platform
from tritonstack.preparation.build_order import Order, OrderedArchive
from tritonstack.preparation.gpu_step import EngineFailedError
from tritonstack.preparation.needed_work import (
    Failure,
    NeededWork,
    PrepareFailedError,
    PrepareSummary,
    needed_work,
)

NAME = ArchiveName(model="bert", digest="0123456789abcdef")
T4 = Platform(release="24.09", gpu="t4")
A10G = Platform(release="24.09", gpu="a10g")
PYTHON_310 = Platform(release="24.05", gpu="t4")
PYTHON_312 = Platform(release="25.04", gpu="t4")


def manifest_for(content: bytes, *, dependency: Dependency = "none", **fields: Any) -> Manifest:
    sha256 = hashlib.sha256(content).hexdigest()
    archive = ArchiveEntry(file=str(NAME), bytes=len(content), sha256=sha256, tar_bytes=1, tar_sha256=sha256)
    return make_manifest(name=NAME.model, digest=NAME.digest, dependency=dependency, archive=archive, **fields)


def put(
    aws: FakeAws,
    place: Place,
    *,
    dependency: Dependency,
    target: str | None,
    content: bytes = b"archive",
    described: bytes | None = None,
    **fields: Any,
) -> None:
    """Put an archive and its manifest at a place; ``described``: the content that the manifest describes."""
    manifest = manifest_for(described or content, dependency=dependency, target=target, **fields)
    aws.artifacts[place.manifest(NAME)] = manifest.to_json().encode()
    aws.artifacts[place.archive(NAME)] = content
    aws.metadata[place.archive(NAME)] = {"sha256": hashlib.sha256(content).hexdigest()}


def order(
    dependency: Dependency | None, *, endpoint: str = "here", platform: Platform = T4, name: ArchiveName = NAME
) -> Order:
    row = OrderedArchive(model=name.model, digest=name.digest, dependency=dependency)
    return order_of("dev", endpoint, platform, [row])


@pytest.fixture
def source(tmp_path: Path) -> ArchiveSource:
    """Something that needs no engine."""
    return source_of(write_double(tmp_path))


def needed(aws: FakeAws, source: ArchiveSource, *orders: Order, local: bool = False) -> NeededWork:
    """The needed work, where every archive has the one source."""
    bucket = ArtifactBucket(environment="dev", session=aws)
    return needed_work(orders, bucket=bucket, source_of=lambda _name, _choice: source, local=local)


def kind(work: NeededWork) -> str:
    counts = {"there": work.there, "copy": work.copies, "build": work.builds, "refused": work.refused}
    (only,) = (name for name, found in counts.items() if found)
    return only


def other(platform: Platform, endpoint: str = "other") -> Place:
    return Place(endpoint=endpoint, platform=platform)


def test_an_archive_at_its_own_place_exists_whatever_its_manifest_holds(aws: FakeAws, source: ArchiveSource) -> None:
    put(aws, Place(endpoint="here", platform=T4), dependency="none", target=None)
    del aws.artifacts[Place(endpoint="here", platform=T4).manifest(NAME)]
    assert kind(needed(aws, source, order("none"))) == "there"
    assert kind(needed(aws, source, order("none", platform=Platform(release="24.09", gpu="T4")))) == "there"


@pytest.mark.parametrize(("options", "outcome"), [((), "build"), (("--hardwareCompatibilityLevel=ampere+",), "copy")])
def test_an_engine_that_other_gpus_load_is_copied_to_them(
    aws: FakeAws, source: ArchiveSource, options: tuple[str, ...], outcome: str
) -> None:
    engine = make_engine(options=options, gpu="NVIDIA A10G", compute_capability="8.6")
    put(aws, other(A10G), dependency="engine", target=str(A10G), engines={"bert": engine})
    for recorded in ("engine", None):
        assert kind(needed(aws, source, order(recorded, platform=Platform(release="24.09", gpu="l4")))) == outcome
    assert kind(needed(aws, source, order("engine", platform=T4))) == "build", "a T4 loads no engine of Ampere's"


@pytest.mark.parametrize(
    ("dependency", "platform", "outcome"),
    [
        ("none", T4, "copy"),
        ("none", A10G, "copy"),
        ("none", PYTHON_312, "copy"),
        ("python", A10G, "copy"),
        ("python", PYTHON_310, "copy"),
        ("python", PYTHON_312, "build"),
        ("engine", T4, "copy"),
        ("engine", A10G, "build"),
        ("engine", PYTHON_310, "build"),
    ],
)
def test_an_archive_is_copied_from_where_its_bytes_serve_here_too(
    aws: FakeAws, source: ArchiveSource, dependency: Dependency, platform: Platform, outcome: str
) -> None:
    put(aws, other(platform), dependency=dependency, target=target_for(dependency, platform))
    for recorded in (dependency, None):
        work = needed(aws, source, order(recorded))
        assert kind(work) == outcome
        assert [(copy.source, copy.place.platform) for copy in work.copies] == [(other(platform), T4)] * len(
            work.copies
        )


def test_what_was_built_for_the_local_triton_is_no_engine_of_the_platform(aws: FakeAws, source: ArchiveSource) -> None:
    put(aws, other(T4), dependency="engine", target="local")
    assert kind(needed(aws, source, order("engine"), local=True)) == "build"


def test_on_the_local_aws_an_archive_of_any_python_serves(aws: FakeAws, source: ArchiveSource) -> None:
    put(aws, other(PYTHON_312), dependency="python", target="local")
    assert kind(needed(aws, source, order("python"), local=True)) == "copy"
    assert kind(needed(aws, source, order("python"), local=False)) == "build"


@pytest.mark.parametrize("described", [b"rival's", None])
def test_an_archive_whose_manifest_is_gone_or_anothers_is_not_copied(
    aws: FakeAws, source: ArchiveSource, described: bytes | None
) -> None:
    put(aws, other(T4), dependency="none", target=None, described=described)
    if described is None:
        aws.artifacts[other(T4).manifest(NAME)] = b"{"
    assert kind(needed(aws, source, order("none"))) == "build"
    put(aws, other(A10G), dependency="none", target=None)
    assert kind(needed(aws, source, order("none"))) == "copy", "the next one is as good"


def test_equal_archives_of_several_endpoints_are_built_once(aws: FakeAws, source: ArchiveSource) -> None:
    work = needed(
        aws, source, order("none"), order("none", endpoint="two"), order("none", endpoint="two", platform=A10G)
    )
    (build,) = work.builds
    assert [(place.endpoint, str(place.platform)) for place in build.places] == [
        ("here", "24.09-t4"),
        ("two", "24.09-t4"),
        ("two", "24.09-a10g"),
    ]
    assert (build.builder, build.target) == (None, None)


def test_engines_of_two_platforms_are_two_builds_each_on_its_own_machine(aws: FakeAws, tmp_path: Path) -> None:
    source = source_of(write_tiny(tmp_path).folder("tiny-engine"))
    work = needed(aws, source, order("engine"), order("engine", platform=A10G))
    assert [(build.target, build.builder.machine.name if build.builder else "") for build in work.builds] == [
        ("24.09-t4", "ml.g4dn.xlarge"),
        ("24.09-a10g", "BUILD_GENERAL1_SMALL"),
    ]


BERT, RESNET = (ArchiveName(model=model, digest="0" * 16) for model in ("bert", "resnet"))
EMPTY = PrepareSummary(bucket="b", archives=())
WRONG = InputError([Problem(file="recipe.yaml", field="engine", found="nothing", allowed="shapes")])


def test_the_last_lines_are_one_for_each_failure_in_the_form_that_a_deployment_finds() -> None:
    engine = EngineFailedError(reason="no\ntactic", log_tail=["[E] one", "[E] two"], link="https://log")
    failures = [
        Failure(phase="engine", name=BERT, error=engine),
        Failure(phase="export", name=RESNET, error=WorkFailedError("export failed:\n  line")),
    ]
    recorded = str(PrepareFailedError(failures, left=[BERT], summary=EMPTY)).splitlines()
    assert recorded[-2:] == [
        f"FAILED in phase engine of {BERT}: no tactic (log: https://log)",
        f"FAILED in phase export of {RESNET}: export failed: line",
    ]
    assert "  [E] two" in recorded
    assert f"given up, since another failed: {BERT}" in recorded


def test_a_long_reason_is_cut_and_keeps_its_link() -> None:
    line = str(Failure(phase="engine", name=BERT, error=EngineFailedError(reason="x" * 5000, link="https://log")))
    assert len(line) < 700
    assert line.endswith("… (log: https://log)")


def test_wrong_input_alone_ends_with_2_and_failed_work_with_1() -> None:
    wrong, failed = (Failure(phase="order", name=BERT, error=error) for error in (WRONG, WorkFailedError("no")))
    assert PrepareFailedError([wrong, wrong], left=(), summary=EMPTY).exit_code == 2
    assert PrepareFailedError([wrong, failed], left=(), summary=EMPTY).exit_code == 1


def test_of_wrong_input_the_line_has_the_first_problem_and_the_message_all() -> None:
    problems = [Problem(file="a", field=field, found="x", allowed="y", advice="fix it") for field in ("b", "c", "d")]
    failure = Failure(phase="order", name=BERT, error=InputError(problems))
    assert failure.reason == "3 problems, the first: b: x; allowed: y; do: fix it"
    assert str(PrepareFailedError([failure], left=(), summary=EMPTY)).count("fix it") == 4
