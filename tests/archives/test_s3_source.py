"""Weights in S3: downloaded once, checked, kept by their digest, and given to the exports that need them."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from botocore.response import StreamingBody

from tests.fake_aws import ARTIFACTS, FakeAws
from tests.models.folders import EXPORT_HEAD, places_in, source_of, write, write_double
from tritonstack.archives.build import build_models
from tritonstack.archives.exporting import export_digest, fetch_source
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.models.manifest import Places
from tritonstack.models.source import ArchiveSource, BuildChoice
from tritonstack.paths import REPOSITORY

WEIGHTS = bytes(range(256)) * 100_000  # more than one chunk
DIGEST = hashlib.sha256(WEIGHTS).hexdigest()
URL = f"s3://{ARTIFACTS}/weights/model.pt"
SCRIPT = f"""\
{EXPORT_HEAD}
from _exporters import hub
size = 0
if told["weights"] == "pretrained":
    size = (hub.fetch(told["source"], ["model.pt"]) / "model.pt").stat().st_size
write("double/1/size.txt", str(size))
report()
"""


@pytest.fixture
def aws(aws: FakeAws) -> FakeAws:
    aws.artifacts["weights/model.pt"] = WEIGHTS
    return aws


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """A project with the folder ``double``, whose export reads weights from S3."""
    folder = write_double(tmp_path)
    write(folder, {"export.py": SCRIPT})
    (folder.parent / "_exporters").symlink_to(REPOSITORY / "model_repos/_exporters")
    fields = {"exports": [{"script": "export.py", "produces": ["double/1/size.txt"]}]}
    with (folder / "recipe.yaml").open("a") as file:
        file.writelines(f"{name}: {json.dumps(value)}\n" for name, value in fields.items())
        file.write(f"source: {{s3: '{URL}', sha256: '{DIGEST}'}}\n")
    return places_in(tmp_path)


@pytest.fixture
def shell(aws: FakeAws, monkeypatch: pytest.MonkeyPatch) -> FakeAws:
    """A shell with credentials of the fake's account."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    aws.install(monkeypatch)
    return aws


def source(places: Places) -> ArchiveSource:
    return source_of(places.folder("double"))


def other_source(places: Places, old: str, new: str) -> ArchiveSource:
    """The folder with another text in its recipe."""
    recipe = places.folder("double") / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace(old, new))
    return source(places)


def test_an_object_is_downloaded_once_and_kept_by_its_digest(aws: FakeAws, places: Places) -> None:
    said: list[str] = []
    file = fetch_source(source(places), places.sources, session=aws, report=said.append)
    assert file == places.sources / DIGEST
    assert file.read_bytes() == WEIGHTS
    assert said[-1] == "weights of double: 100 % of 25.6 MB"
    assert len(said) > 1
    write(places.sources, {DIGEST: "damaged"})
    assert fetch_source(source(places), places.sources, session=aws, report=said.append) == file
    assert file.read_bytes() == WEIGHTS
    aws.artifacts.clear()
    assert fetch_source(source(places), places.sources, session=aws, report=said.append) == file
    assert [path.name for path in places.sources.iterdir()] == [DIGEST]


def test_another_object_than_the_recipe_means_is_refused_and_not_kept(aws: FakeAws, places: Places) -> None:
    aws.artifacts["weights/model.pt"] = b"replaced"
    with pytest.raises(InputError) as refused:
        fetch_source(source(places), places.sources, session=aws, report=print)
    (problem,) = refused.value.problems
    assert problem.file == str(places.folder("double") / "recipe.yaml")
    assert problem.field == "source.sha256"
    assert problem.found == f"{URL} has the SHA-256 {hashlib.sha256(b'replaced').hexdigest()}"
    assert problem.allowed == DIGEST
    assert list(places.sources.iterdir()) == []
    other = other_source(places, "model.pt", "modle.pt")
    with pytest.raises(InputError, match=r"recipe\.yaml: source\.s3\n  found: .*modle\.pt: NoSuchKey"):
        fetch_source(other, places.sources, session=aws, report=print)


def test_a_download_that_breaks_off_is_failed_work_and_leaves_nothing(places: Places) -> None:
    with pytest.raises(WorkFailedError, match=f"could not download {URL}"):
        fetch_source(source(places), places.sources, session=_Breaking(), report=print)
    assert list(places.sources.iterdir()) == []


def test_without_credentials_nothing_is_downloaded(
    places: Places, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    with pytest.raises(InputError, match="Unable to locate credentials") as refused:
        fetch_source(source(places), places.sources, report=print)
    assert refused.value.exit_code == 2
    assert "tritonstack local env" in str(refused.value)
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(InputError, match="nobody"):
        fetch_source(source(places), places.sources, report=print)


def test_a_build_gives_its_export_the_weights_and_records_where_they_are_from(shell: FakeAws, places: Places) -> None:
    digest = export_digest(source(places))
    (built,) = build_models(["double"], places=places).built
    (kept,) = places.exports.iterdir()
    assert kept.name == f"double.{digest}"  # where the weights lie is not in it
    assert (kept / "files/double/1/size.txt").read_text() == str(len(WEIGHTS))
    assert sorted(path.name for path in kept.iterdir()) == ["files", "report.json"]
    assert built.manifest.source is not None
    assert built.manifest.source.plain() == {"s3": URL, "sha256": DIGEST}


def test_a_build_with_random_weights_and_one_that_was_exported_download_nothing(shell: FakeAws, places: Places) -> None:
    build_models(["double"], choice=BuildChoice(weights="random"), places=places)
    assert not places.sources.exists()
    (built,) = build_models(["double"], places=places).built
    shell.artifacts.clear()
    (places.sources / DIGEST).unlink()
    places.archive(built.name).unlink()
    assert build_models(["double"], places=places).built[0].fresh


class _Breaking:
    """An AWS whose object ends before its end, in botocore's own words."""

    def client(self, service_name: str, *, config: Any = None) -> Any:
        assert service_name == "s3"
        return self

    def get_object(self, **_: str) -> dict[str, Any]:
        """An answer that promises more than it holds."""
        return {"ContentLength": 100, "Body": StreamingBody(io.BytesIO(b"part"), 100)}
