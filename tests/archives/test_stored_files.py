"""Files of models in S3: the folder's own where it is the same, else downloaded once and checked by their hash."""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import Path

import pytest

from tests.fake_aws import ARTIFACTS, FakeAws
from tests.models.folders import places_in, source_of, write, write_double
from tritonstack.archives.build import build_models
from tritonstack.archives.exporting import fetch_files
from tritonstack.archives.stored_inputs import pack_inputs
from tritonstack.config import load_environment
from tritonstack.errors import InputError
from tritonstack.lint import lint_folder
from tritonstack.models.digest import model_digest
from tritonstack.models.manifest import Places
from tritonstack.models.source import BuildChoice

WEIGHTS = bytes(range(256)) * 1000
DIGEST = hashlib.sha256(WEIGHTS).hexdigest()
NAME = "double/1/weights.bin"
URL = f"s3://{ARTIFACTS}/double/{DIGEST[:16]}/weights.bin"


@pytest.fixture
def aws(aws: FakeAws, monkeypatch: pytest.MonkeyPatch) -> FakeAws:
    """A shell with credentials of an account whose bucket has the file."""
    aws.artifacts[f"double/{DIGEST[:16]}/weights.bin"] = WEIGHTS
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    aws.install(monkeypatch)
    return aws


@pytest.fixture
def places(tmp_path: Path) -> Places:
    folder = write_double(tmp_path)
    with (folder / "recipe.yaml").open("a") as file:
        file.write(f"files: {{{NAME}: {{s3: '{URL}', sha256: {DIGEST}}}}}\n")
    return places_in(tmp_path)


def test_a_build_downloads_the_file_into_the_archive(aws: FakeAws, places: Places) -> None:
    choice = BuildChoice(size="tiny", weights="random")
    [built] = build_models(["double"], choice=choice, places=places, report=print).built
    with tarfile.open(places.archive(built.name, built.target)) as archive:
        [name] = [each for each in archive.getnames() if each.endswith(NAME)]
        member = archive.extractfile(name)
        assert member is not None
        assert member.read() == WEIGHTS
    assert not (places.folder("double") / NAME).exists()
    aws.artifacts.clear()
    assert fetch_files(source_of(places.folder("double")), places.sources, report=print)[NAME].read_bytes() == WEIGHTS


def test_the_folders_own_file_is_taken_and_is_neither_a_source_nor_sent_to_a_build(
    places: Places, tmp_path: Path
) -> None:
    folder = places.folder("double")
    without = model_digest(source_of(folder))
    assert not [each for each in lint_folder(folder) if each.level == "error"]
    write(folder, {NAME: ""})
    (folder / NAME).write_bytes(WEIGHTS)
    assert model_digest(source_of(folder)) == without
    assert fetch_files(source_of(folder), places.sources, report=print) == {NAME: folder / NAME}
    pack_inputs(source_of(folder), tmp_path / "inputs.tar.gz")
    with tarfile.open(tmp_path / "inputs.tar.gz") as archive:
        names = [each.lstrip("./") for each in archive.getnames()]
    assert "model_repos/double/recipe.yaml" in names
    assert f"model_repos/double/{NAME}" not in names


def test_another_file_in_the_folder_is_refused_with_how_to_take_either(places: Places) -> None:
    folder = places.folder("double")
    write(folder, {NAME: "other"})
    other = hashlib.sha256(b"other").hexdigest()
    with pytest.raises(InputError) as refused:
        fetch_files(source_of(folder), places.sources, report=print)
    [problem] = refused.value.problems
    assert problem.field == f"files.{NAME}"
    assert f"aws s3 cp {folder / NAME} s3://{ARTIFACTS}/double/{other[:16]}/weights.bin" in problem.advice
    assert f'sha256: "{other}"' in problem.advice


def test_an_object_with_another_content_is_refused_and_not_kept(aws: FakeAws, places: Places) -> None:
    aws.artifacts[f"double/{DIGEST[:16]}/weights.bin"] = b"changed"
    with pytest.raises(InputError, match=rf"files\.{NAME}\.sha256"):
        fetch_files(source_of(places.folder("double")), places.sources, report=print)
    assert not (places.sources / DIGEST).exists()


def test_another_hash_is_another_archive(places: Places) -> None:
    folder = places.folder("double")
    before = model_digest(source_of(folder))
    recipe = folder / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace(DIGEST, "a" * 64))
    assert model_digest(source_of(folder)) != before


def test_a_file_that_an_export_makes_lies_nowhere_else(places: Places) -> None:
    folder = places.folder("double")
    with (folder / "recipe.yaml").open("a") as file:
        file.write(f"exports: [{{script: export.py, produces: [{NAME}]}}]\n")
    with pytest.raises(InputError, match="is in exports"):
        source_of(folder).recipe  # noqa: B018  reads it


def test_the_build_role_may_read_the_object(places: Places, tmp_path: Path) -> None:
    from tests.config.environment_file import write_environment
    from tritonstack.preparation.deployed_builds import deployed_builds
    from tritonstack.served import served_by

    header = "environment: dev\nbuilds: {on_deploy: true, size: tiny, weights: random}"
    file = write_environment(tmp_path, header=header, endpoint="models: [double]", name="dev")
    served = served_by(load_environment(file), places.repositories, file=file)
    assert deployed_builds(served, places.repositories).weights == (URL,)
