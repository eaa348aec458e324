"""The zip of an archive's inputs holds all that its digest covers, and is unpacked without tricks."""

from __future__ import annotations

import stat
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.models.folders import source_of, write, write_double
from tritonstack.models import inputs as digest_module
from tritonstack.models.inputs import model_digest, unzip_inputs, zip_inputs
from tritonstack.models.source import ArchiveSource, archives_of
from tritonstack.unpacking import UnpackLimits, UnsafeArchiveError

OVERLAYS = """\
overlays:
  wide: {config: [wide.pbtxt]}
  deep: {config: [deep.pbtxt]}
"""


def _written(root: Path) -> Path:
    """A folder with an export in the environment torch, and with files that no digest covers."""
    folder = write_double(root)
    with (folder / "recipe.yaml").open("a") as recipe:
        recipe.write("exports: [{environment: torch, produces: [double/1/made.bin]}]\n")
    write(folder, {"export.py": "", "double/1/made.bin": "by an earlier export", "double/1/model.py~": "an editor's"})
    write(root, {"requirements/torch.txt": "torch==1\n"})
    return folder


def _unpacked(source: ArchiveSource, root: Path) -> Path:
    zip_inputs(source, root / "inputs.zip")
    unzip_inputs(root / "inputs.zip", root / "unpacked")
    return root / "unpacked"


def test_the_digest_of_what_is_unpacked_is_that_of_what_was_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = source_of(_written(tmp_path))
    kept = _unpacked(source, tmp_path)
    wanted = model_digest(source)
    library = kept / "tritonstack/exporters"
    monkeypatch.setattr(digest_module, "EXPORTERS", tmp_path / "gone")  # what is kept does not need this checkout's
    (again,) = archives_of(kept / "model_repos/double")
    assert model_digest(again) != wanted
    again = ArchiveSource(name="double", folder=kept / "model_repos/double", library=library)
    assert model_digest(again) == wanted
    assert not (kept / "model_repos/double/double/1/made.bin").exists()


def test_used_folders_and_every_overlays_fragments_are_kept(tmp_path: Path) -> None:
    folder = write_double(tmp_path)
    write(folder, {"wide.pbtxt": "max_batch_size: 64\n", "deep.pbtxt": "max_batch_size: 2\n"})
    with (folder / "recipe.yaml").open("a") as recipe:
        recipe.write(OVERLAYS)
    user = write_double(tmp_path, "user")
    with (user / "recipe.yaml").open("a") as recipe:
        recipe.write("uses: [{folder: double, models: [double]}]\n")
    (tmp_path / "zip").mkdir()
    kept = _unpacked(source_of(user), tmp_path / "zip")
    assert model_digest(source_of(kept / "model_repos/user")) == model_digest(source_of(user))
    for source in archives_of(folder):
        (tmp_path / source.name).mkdir()
        again = {
            each.name: each for each in archives_of(_unpacked(source, tmp_path / source.name) / "model_repos/double")
        }
        assert model_digest(again[source.name]) == model_digest(source)


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "/etc/passwd",
        "model_repos/../../evil",
        "model_repos\\evil",
        "elsewhere/file",
        "model_repos",
        "tritonstack/errors.py",
        "model_repos/folder/",
    ],
)
def test_a_member_that_is_no_file_of_the_inputs_is_refused_and_nothing_is_left(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr("model_repos/double/fine", "fine")
        archive.writestr(name, "evil")
    with pytest.raises(UnsafeArchiveError):
        unzip_inputs(tmp_path / "bad.zip", tmp_path / "unpacked")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.zip"]


def test_links_and_second_members_of_a_name_are_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("model_repos/double/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "link.zip", "w") as archive:
        archive.writestr(link, "/etc")
    with zipfile.ZipFile(tmp_path / "twice.zip", "w") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("model_repos/double/a", "1")
        archive.writestr("model_repos/double/a", "2")
    for name in ("link.zip", "twice.zip"):
        with pytest.raises(UnsafeArchiveError):
            unzip_inputs(tmp_path / name, tmp_path / "unpacked")
        assert not (tmp_path / "unpacked").exists()


def test_more_bytes_or_members_than_allowed_are_refused_while_they_are_written(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model_repos/double/a", bytes(10_000))
        archive.writestr("model_repos/double/b", bytes(10_000))
    unzip_inputs(tmp_path / "bomb.zip", tmp_path / "fits", limits=UnpackLimits(max_bytes=20_000, max_members=2))
    for limits in (UnpackLimits(max_bytes=19_999), UnpackLimits(max_members=1)):
        with pytest.raises(UnsafeArchiveError, match="more"):
            unzip_inputs(tmp_path / "bomb.zip", tmp_path / "unpacked", limits=limits)
        assert not (tmp_path / "unpacked").exists()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=300), cut=st.integers(0, 400))
def test_a_damaged_zip_is_refused_or_read_and_never_raises_otherwise(tmp_path: Path, content: bytes, cut: int) -> None:
    with zipfile.ZipFile(tmp_path / "made.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model_repos/double/a", content)
    whole = (tmp_path / "made.zip").read_bytes()
    (tmp_path / "damaged.zip").write_bytes(whole[:cut] + bytes(whole[cut : cut + 1]) + content + whole[cut + 1 :])
    try:
        unzip_inputs(tmp_path / "damaged.zip", tmp_path / "unpacked")
    except UnsafeArchiveError:
        assert not (tmp_path / "unpacked").exists()
    else:
        files = [path for path in (tmp_path / "unpacked").rglob("*") if path.is_file()]
        assert all(path.is_relative_to(tmp_path / "unpacked/model_repos") for path in files)
        for path in sorted((tmp_path / "unpacked").rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        (tmp_path / "unpacked").rmdir()
