"""Plans of trtexec's stand-in: their file, and that publishing refuses them."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fake_aws import FakeAws
from tests.models.folders import T4, make_engine, make_manifest, places_in, source_of, write, write_double
from tritonstack.archives.bucket import ArtifactBucket, Place
from tritonstack.archives.packing import pack
from tritonstack.archives.publish import BuiltArchive, Published, marked_plans, publish_archives
from tritonstack.errors import WorkFailedError
from tritonstack.model_files.marked_plan import MARK, is_marked, read_graph, read_header, write_marked_plan
from tritonstack.models.digest import model_digest
from tritonstack.models.manifest import ArchiveEntry, EngineEntry, Manifest, Places
from tritonstack.naming import ArchiveName


def marked(folder: Path, content: bytes = b"\x08\x09graph\n") -> Path:
    (folder / "model.onnx").write_bytes(content)
    write_marked_plan(folder / "model.plan", header={"tensorrt": "10.4.0"}, onnx=folder / "model.onnx")
    return folder / "model.plan"


def test_graph_and_header_are_read_back(tmp_path: Path) -> None:
    content = b"\n" + MARK + bytes(range(256)) * 5000
    plan = marked(tmp_path, content)
    assert read_graph(plan) == content
    assert read_header(plan) == {"tensorrt": "10.4.0"}
    assert b"no TensorRT engine" in plan.read_bytes().split(b"\n")[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.onnx", "model.plan"]


@pytest.mark.parametrize("content", [b"", b"ptrt" + bytes(200), MARK[:-1]])
def test_another_file_is_not_marked(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.plan").write_bytes(content)
    assert not is_marked(tmp_path / "model.plan")
    with pytest.raises(ValueError, match="was not written by trtexec-stand-in"):
        read_graph(tmp_path / "model.plan")


PLAN = "double/1/model.plan"
ENGINE = make_engine()


def _built(root: Path, plan: bytes, engine: EngineEntry = ENGINE) -> tuple[BuiltArchive, Places]:
    """An archive for a T4 with this plan, as the pack step leaves it."""
    folder, places = write_double(root), places_in(root)
    source = source_of(folder)
    name = ArchiveName(model="double", digest=model_digest(source))
    write(root / "repository", {"double/config.pbtxt": 'backend: "tensorrt"'})
    (root / "repository/double/1").mkdir()
    (root / "repository" / PLAN).write_bytes(plan)
    places.archives_for("24.09-t4").mkdir(parents=True)
    packed = pack(root / "repository", places.archive(name, "24.09-t4"))
    manifest = make_manifest(
        digest=name.digest,
        dependency="engine",
        target="24.09-t4",
        plan=not engine.stand_in,
        engines={"double": engine},
        archive=ArchiveEntry(
            file=str(name),
            bytes=packed.bytes,
            sha256=packed.sha256,
            tar_bytes=packed.tar_bytes,
            tar_sha256=packed.tar_sha256,
        ),
        backends=("tensorrt",),
        figures={"engine_difference": 0.5},
    )
    places.manifest(name, "24.09-t4").write_text(manifest.to_json())
    place = Place(endpoint="numbers", platform=T4)
    return BuiltArchive(source=source, name=name, place=place, target="24.09-t4", manifest=manifest), places


def _publish(built: BuiltArchive, places: Places, aws: FakeAws, *, local: bool = False) -> Published:
    bucket = ArtifactBucket(environment="dev", session=aws)
    [done] = publish_archives([built], bucket=bucket, local=local, places=places)
    return done


def test_a_plan_of_tensorrt_is_published_under_its_platform(aws: FakeAws, tmp_path: Path) -> None:
    built, places = _built(tmp_path, b"ptrt")
    done = _publish(built, places, aws)
    assert (done.outcome, done.key) == ("published", f"endpoints/numbers/24.09-t4/{built.name}")
    assert [key.split("/")[0] for key in aws.writes] == ["inputs", "manifests", "endpoints"]
    again = _publish(built, places, aws)
    assert again.outcome == "there already"


@pytest.mark.parametrize("told", [True, False])
def test_a_marked_plan_is_refused_whether_its_manifest_tells_or_not(aws: FakeAws, tmp_path: Path, told: bool) -> None:
    engine = ENGINE.model_copy(update={"stand_in": told})
    built, places = _built(tmp_path, MARK + b"{}\ngraph", engine)
    with pytest.raises(WorkFailedError, match=rf"holds no TensorRT engine, but {PLAN}, which trtexec-stand-in wrote"):
        _publish(built, places, aws)
    without = built.manifest.model_copy(update={"plan": False, "engines": {}, "backends": ("onnxruntime",)})
    with pytest.raises(WorkFailedError, match="but the ONNX graph of an engine that is not built"):
        _publish(replace(built, manifest=without), places, aws)
    assert aws.writes == []
    assert _publish(built, places, aws, local=True).outcome == "published"


def test_another_build_s_engine_is_not_described_by_our_manifest(aws: FakeAws, tmp_path: Path) -> None:
    built, places = _built(tmp_path, b"ptrt")
    other = built.manifest.archive.model_copy(update={"bytes": 3, "sha256": hashlib.sha256(b"any").hexdigest()})
    aws.artifacts[built.key] = b"any"
    told = {"sha256": other.sha256, "tar-bytes": str(other.tar_bytes), "tar-sha256": other.tar_sha256}
    aws.metadata[built.key] = {f"{name}": value for name, value in told.items()}
    done = _publish(built, places, aws)
    assert (done.outcome, done.fixed) == ("there already from another build", True)
    fixed = Manifest.model_validate_json(aws.artifacts[built.place.manifest(built.name)])
    assert (fixed.archive, fixed.engines, fixed.plan) == (other, {}, True)
    assert "engine_difference" not in fixed.figures


def test_every_member_that_begins_with_the_mark_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "repository"
    write(folder, {"a/config.pbtxt": "", "a/1/model.plan": MARK.decode(), "b/2/a10g.plan": MARK.decode() + "x"})
    write(folder, {"b/1/model.plan": MARK.decode()[:-1], "b/1/note": "x" + MARK.decode(), "c/1/empty": ""})
    packed = pack(folder, tmp_path / "a.tar.gz")
    assert sorted(marked_plans(packed.archive)) == ["a/1/model.plan", "b/2/a10g.plan"]
    half = packed.archive.read_bytes()
    (tmp_path / "half.tar.gz").write_bytes(half[: len(half) // 2])
    with pytest.raises(WorkFailedError, match=r"half\.tar\.gz cannot be read"):
        list(marked_plans(tmp_path / "half.tar.gz"))
