"""Publishing: inputs, manifest, archive, in this order and once; the loser of a race uses the winner's."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from pathlib import Path

import pytest

from tests.fake_aws import FakeAws
from tests.models.folders import make_endpoint, make_environment, make_manifest, places_in, source_of, write_double
from tritonstack.archives import bucket as bucket_module
from tritonstack.archives.bucket import ArtifactBucket, StoredObject
from tritonstack.archives.publish import publish_environment
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.models.digest import model_digest
from tritonstack.models.manifest import ArchiveEntry, ClientFileEntry, Manifest, Places
from tritonstack.naming import ArchiveName

ENVIRONMENT = make_environment(make_endpoint("numbers", ("double",)))


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """A project with one built archive; its content does not matter here."""
    write_double(tmp_path)
    found = places_in(tmp_path)
    found.archives.mkdir()
    _build(found, b"archive")
    return found


def _manifest(name: ArchiveName, archive: bytes) -> Manifest:
    """The manifest of an archive with these bytes."""
    sha256 = hashlib.sha256(archive).hexdigest()
    entry = ArchiveEntry(file=str(name), bytes=len(archive), sha256=sha256, tar_bytes=1, tar_sha256=sha256[::-1])
    return make_manifest(name=name.model, digest=name.digest, archive=entry)


def _build(places: Places, archive: bytes) -> bytes:
    """What a build leaves behind whose archive has these bytes; its manifest's bytes."""
    manifest = _manifest(_name(places), archive).to_json().encode()
    places.archive(_name(places)).write_bytes(archive)
    places.manifest(_name(places)).write_bytes(manifest)
    return manifest


def _name(places: Places) -> ArchiveName:
    return ArchiveName(model="double", digest=model_digest(source_of(places.folder("double"))))


def _keys(places: Places) -> tuple[str, str, str]:
    name = _name(places)
    manifest = f"manifests/numbers/24.09-t4/double.{name.digest}.json"
    return f"inputs/{name.digest}.tar.gz", manifest, f"endpoints/numbers/24.09-t4/{name}"


def test_inputs_manifest_and_archive_are_written_in_this_order(aws: FakeAws, places: Places) -> None:
    summary = publish_environment(ENVIRONMENT, session=aws, places=places)
    inputs, manifest, archive = _keys(places)
    assert aws.writes == [inputs, manifest, archive]
    assert aws.artifacts[manifest] == places.manifest(_name(places)).read_bytes()
    assert aws.artifacts[archive] == b"archive"
    with tarfile.open(fileobj=io.BytesIO(aws.artifacts[inputs])) as opened:
        assert "model_repos/double/recipe.yaml" in opened.getnames()
    assert str(summary) == "1 published"


def test_what_lies_there_is_left_alone(aws: FakeAws, places: Places) -> None:
    publish_environment(ENVIRONMENT, session=aws, places=places)
    aws.writes.clear()
    assert str(publish_environment(ENVIRONMENT, session=aws, places=places)) == "1 there already"
    _build(places, b"elsewhere")  # another machine may compress the same inputs differently, even to the same size
    assert str(publish_environment(ENVIRONMENT, session=aws, places=places)) == "1 there already from another build"
    assert aws.writes == []


def test_the_loser_of_a_race_uses_the_winners_archive_and_manifest(aws: FakeAws, places: Places) -> None:
    _, manifest, archive = _keys(places)

    rivals = _manifest(_name(places), b"the rival's archive").to_json().encode()

    def rival(_key: str) -> None:
        aws.artifacts.setdefault(manifest, rivals)
        aws.artifacts.setdefault(archive, b"the rival's archive")

    aws.before_put = rival
    assert str(publish_environment(ENVIRONMENT, session=aws, places=places)) == "1 another was first"
    assert aws.artifacts[archive] == b"the rival's archive"
    assert aws.artifacts[manifest] == rivals


@pytest.mark.parametrize(
    ("there", "said"),
    [("manifest", "1 published, manifests fixed: 1"), ("archive", "1 there already, manifests fixed: 1")],
)
def test_what_an_interrupted_publisher_left_gets_its_manifest(
    aws: FakeAws, places: Places, there: str, said: str
) -> None:
    _, manifest, archive = _keys(places)
    aws.artifacts[manifest if there == "manifest" else archive] = b"archive"
    assert str(publish_environment(ENVIRONMENT, session=aws, places=places)) == said
    assert aws.artifacts[manifest] == places.manifest(_name(places)).read_bytes()
    assert aws.writes[-1] == manifest


def test_a_manifest_that_nothing_can_mend_is_told(aws: FakeAws, places: Places) -> None:
    _, manifest, archive = _keys(places)
    aws.artifacts[archive] = b"without metadata, of another size"
    aws.artifacts[manifest] = places.manifest(_name(places)).read_bytes()
    with pytest.raises(WorkFailedError, match="delete both objects"):
        publish_environment(ENVIRONMENT, session=aws, places=places)


def test_two_writers_at_once_are_told_to_try_again_and_do(
    aws: FakeAws, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_module, "_CONFLICT_PAUSES", (0, 0))
    aws.conflicts = 99
    with pytest.raises(WorkFailedError, match="s3://artifacts/inputs/"):
        publish_environment(ENVIRONMENT, session=aws, places=places)
    aws.conflicts = 2
    assert str(publish_environment(ENVIRONMENT, session=aws, places=places)) == "1 published"


def test_a_large_archive_is_sent_in_parts_and_an_upload_that_lost_is_aborted(
    aws: FakeAws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_module, "PART_BYTES", 1 << 16)
    content = os.urandom((1 << 18) + 17)
    (tmp_path / "large").write_bytes(content)
    bucket = ArtifactBucket(environment="dev", session=aws)
    sent: list[int] = []
    assert bucket.put_once("large", tmp_path / "large", metadata={"sha256": "abc"}, sent=sent.append)
    assert aws.artifacts["large"] == content
    assert bucket.look("large") == StoredObject(bytes=len(content), metadata={"sha256": "abc"})
    assert sum(sent) == len(content)
    assert len(sent) == 5

    assert not bucket.put_once("large", tmp_path / "large")
    assert aws.uploads == []  # the first was completed, the second aborted


def test_what_is_not_built_is_said_once_a_target_with_one_short_advice(aws: FakeAws, places: Places) -> None:
    repositories = places.repositories
    for name, fields in (("many", "copies: 3\n"), ("other", "dependency: python\n"), ("double", "")):
        recipe = write_double(repositories.parent, name) / "recipe.yaml"
        recipe.write_text(recipe.read_text() + fields)
    (places.folder("double") / "double/1/model.py").write_text("changed since")
    environment = make_environment(make_endpoint("numbers", ("double", "many", "other")))
    with pytest.raises(InputError) as refused:
        publish_environment(environment, session=aws, places=places)
    here, python = refused.value.problems
    assert (here.file, python.file) == (str(places.archives), f"{places.archives}/python-3.10")
    assert here.found.endswith(": double, many-0, many-1, many-2")
    assert (here.advice, python.advice) == ("", "tritonstack build -e dev")
    assert aws.writes == []


def test_without_an_artifacts_stack_the_message_says_what_to_deploy(aws: FakeAws, places: Places) -> None:
    aws.parameters.clear()
    with pytest.raises(InputError, match="cdk deploy 'dev/artifacts'"):
        publish_environment(ENVIRONMENT, session=aws, places=places)


def test_a_corrupt_archive_is_refused_before_anything_is_written(aws: FakeAws, places: Places) -> None:
    places.archive(_name(places)).write_bytes(b"archivE")  # as long as what was built
    with pytest.raises(WorkFailedError, match=r"is corrupt: .*not what was built"):
        publish_environment(ENVIRONMENT, session=aws, places=places)
    assert aws.writes == []


def test_client_files_are_published_below_the_manifests_name_and_before_the_archive(
    aws: FakeAws, places: Places
) -> None:
    name = _name(places)
    labels = places.client_files(name) / "text/labels.txt"
    labels.parent.mkdir(parents=True)
    labels.write_bytes(b"cat")
    entry = ClientFileEntry(sha256=hashlib.sha256(b"cat").hexdigest(), bytes=3)
    manifest = _manifest(name, b"archive").model_copy(update={"client_files": {"text/labels.txt": entry}})
    places.manifest(name).write_text(manifest.to_json())
    publish_environment(ENVIRONMENT, session=aws, places=places)
    inputs, manifest_key, archive = _keys(places)
    key = f"manifests/numbers/24.09-t4/double.{name.digest}/text/labels.txt"
    assert aws.writes == [inputs, key, manifest_key, archive]
    assert aws.artifacts[key] == b"cat"

    aws.artifacts.clear()
    aws.writes.clear()
    labels.write_bytes(b"dog")
    with pytest.raises(WorkFailedError, match=r"labels\.txt is corrupt"):
        publish_environment(ENVIRONMENT, session=aws, places=places)
    labels.unlink()
    with pytest.raises(InputError, match="tritonstack build -e dev"):
        publish_environment(ENVIRONMENT, session=aws, places=places)
    assert aws.writes == []


def _needs_engine(places: Places) -> ArchiveName:
    folder = places.folder("double")
    config = (folder / "double/config.pbtxt").read_text().replace('backend: "python"', 'backend: "tensorrt"')
    (folder / "double/config.pbtxt").write_text(config)
    recipe = (folder / "recipe.yaml").read_text().replace("kind: python", "kind: tensorrt\ndependency: engine")
    (folder / "recipe.yaml").write_text(recipe)
    (places.archives / "local").mkdir()
    places.archive(_name(places), "local").write_bytes(b"archive")
    places.manifest(_name(places), "local").write_text(_manifest(_name(places), b"archive").to_json())
    return _name(places)


def test_an_archive_without_its_engine_is_published_to_the_local_aws_alone(aws: FakeAws, places: Places) -> None:
    _needs_engine(places)
    environment = make_environment(*ENVIRONMENT.endpoints, on_deploy=False)
    with pytest.raises(InputError, match=r"for 24\.09-t4: it needs a TensorRT engine"):
        publish_environment(environment, session=aws, places=places)
    assert aws.writes == []
    assert str(publish_environment(environment, session=aws, local=True, places=places)) == "1 published"


def test_an_archive_that_needs_an_engine_is_left_to_the_deployment_that_builds_it(aws: FakeAws, places: Places) -> None:
    _needs_engine(places)
    summary = publish_environment(ENVIRONMENT, session=aws, places=places)
    assert (summary.archives, summary.left, aws.writes) == ((), ("double",), [])
    assert str(summary) == "1 archive with an engine is built before the deployment: tritonstack prepare -e dev"


def test_what_depends_on_python_is_taken_from_its_target_s_folder(aws: FakeAws, places: Places) -> None:
    recipe = places.folder("double") / "recipe.yaml"
    recipe.write_text(recipe.read_text() + "dependency: python\n")
    for target, content in (("local", b"local"), ("python-3.10", b"three ten")):
        (places.archives / target).mkdir()
        places.archive(_name(places), target).write_bytes(content)
        places.manifest(_name(places), target).write_text(_manifest(_name(places), content).to_json())
    publish_environment(ENVIRONMENT, session=aws, places=places)
    assert aws.artifacts[_keys(places)[2]] == b"three ten"


def test_an_object_is_fetched_into_a_file_unless_it_is_larger_than_allowed(aws: FakeAws, tmp_path: Path) -> None:
    bucket = ArtifactBucket(environment="dev", session=aws)
    aws.artifacts["inputs/a.zip"] = b"twelve bytes"
    assert bucket.fetch("inputs/a.zip", tmp_path / "a", most_bytes=12)
    assert (tmp_path / "a").read_bytes() == b"twelve bytes"
    assert not bucket.fetch("inputs/gone.zip", tmp_path / "gone", most_bytes=12)
    with pytest.raises(WorkFailedError, match="has 12 bytes; 11 are allowed"):
        bucket.fetch("inputs/a.zip", tmp_path / "b", most_bytes=11)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["a"]


def test_an_object_that_s3_refuses_is_absent_unless_the_list_has_it(aws: FakeAws, tmp_path: Path) -> None:
    bucket, key = ArtifactBucket(environment="dev", session=aws), "manifests/bert.json"
    aws.denied = {key}
    aws.artifacts[f"{key}.bak"] = b"another"
    assert bucket.look(key) is None
    assert bucket.read(key) is None
    assert not bucket.fetch(key, tmp_path / "object", most_bytes=1)
    aws.artifacts[key] = b"there"
    with pytest.raises(WorkFailedError, match="could not look for s3://artifacts/manifests"):
        bucket.look(key)
