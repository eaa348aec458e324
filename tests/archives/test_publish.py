"""Publishing: inputs, manifest, archive, in this order and once; the loser of a race uses the winner's."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.archives import fake_aws
from tests.archives.fake_aws import FakeAws
from tests.archives.folders import Endpoint, Environment, places_in, write_double
from tritonstack.archives import bucket as bucket_module
from tritonstack.archives.bucket import ArtifactBucket
from tritonstack.archives.digest import model_digest
from tritonstack.archives.places import Places
from tritonstack.archives.publish import publish_environment
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.naming import ArchiveName

ENVIRONMENT = Environment("dev", (Endpoint("numbers", ("double",)),))


@pytest.fixture
def aws() -> Iterator[FakeAws]:
    with fake_aws.running() as running:
        yield running


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """A project with one built archive; its content does not matter here."""
    write_double(tmp_path)
    found = places_in(tmp_path)
    found.archives.mkdir()
    found.archive(_name(found)).write_bytes(b"archive")
    found.manifest(_name(found)).write_bytes(b"manifest")
    return found


def _name(places: Places) -> ArchiveName:
    return ArchiveName(model="double", digest=model_digest(places.folder("double")))


def _keys(places: Places) -> tuple[str, str, str]:
    name = _name(places)
    manifest = f"manifests/numbers/24.09-t4/double.{name.digest}.json"
    return f"inputs/{name.digest}.zip", manifest, f"endpoints/numbers/24.09-t4/{name}"


def test_inputs_manifest_and_archive_are_written_in_this_order(aws: FakeAws, places: Places) -> None:
    summary = publish_environment(ENVIRONMENT, session=aws, places=places)
    inputs, manifest, archive = _keys(places)
    assert aws.writes == [inputs, manifest, archive]
    assert aws.objects[manifest] == b"manifest"
    assert aws.objects[archive] == b"archive"
    with zipfile.ZipFile(io.BytesIO(aws.objects[inputs])) as opened:
        assert "model_repos/double/recipe.yaml" in opened.namelist()
        assert opened.testzip() is None
    assert str(summary) == "1 published"


def test_what_lies_there_is_left_alone(aws: FakeAws, places: Places) -> None:
    publish_environment(ENVIRONMENT, session=aws, places=places)
    aws.writes.clear()
    places.archive(_name(places)).write_bytes(b"rebuilt elsewhere")
    assert str(publish_environment(ENVIRONMENT, session=aws, places=places)) == "1 there already"
    assert aws.writes == []


def test_the_loser_of_a_race_uses_the_winners_archive_and_manifest(aws: FakeAws, places: Places) -> None:
    _, manifest, archive = _keys(places)

    def rival(_key: str) -> None:
        aws.objects.setdefault(manifest, b"the rival's manifest")
        aws.objects.setdefault(archive, b"the rival's archive")

    aws.before_put = rival
    assert str(publish_environment(ENVIRONMENT, session=aws, places=places)) == "1 another was first"
    assert aws.objects[archive] == b"the rival's archive"
    assert aws.objects[manifest] == b"the rival's manifest"


def test_a_manifest_left_by_an_interrupted_publisher_is_put_right(aws: FakeAws, places: Places) -> None:
    _, manifest, archive = _keys(places)
    aws.objects[manifest] = b"left behind"
    assert str(publish_environment(ENVIRONMENT, session=aws, places=places)) == "1 published"
    assert aws.objects[manifest] == b"manifest"
    assert aws.writes[-2:] == [archive, manifest]


def test_two_writers_at_once_are_told_to_try_again_and_do(aws: FakeAws, places: Places) -> None:
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
    assert bucket.put_once("large", tmp_path / "large", sent=sent.append)
    assert aws.objects["large"] == content
    assert sum(sent) == len(content)
    assert len(sent) == 5

    assert not bucket.put_once("large", tmp_path / "large")
    assert list(aws.uploads) == ["upload-0"]  # the first, completed; the second was aborted


def test_an_archive_that_is_not_built_is_refused_before_anything_is_written(aws: FakeAws, places: Places) -> None:
    (places.folder("double") / "double/1/model.py").write_text("changed since")
    with pytest.raises(InputError, match="tritonstack build double"):
        publish_environment(ENVIRONMENT, session=aws, places=places)
    assert aws.writes == []


def test_without_an_artifacts_stack_the_message_says_what_to_deploy(aws: FakeAws, places: Places) -> None:
    aws.parameters.clear()
    with pytest.raises(InputError, match="cdk deploy 'dev/artifacts'"):
        publish_environment(ENVIRONMENT, session=aws, places=places)


def test_a_refusal_of_aws_names_the_object(aws: FakeAws, places: Places) -> None:
    aws.conflicts = 99
    with pytest.raises(WorkFailedError, match="s3://artifacts/inputs/"):
        publish_environment(ENVIRONMENT, session=aws, places=places)
