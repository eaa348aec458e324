"""Digests of archives' inputs, and the archive that keeps them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.models.folders import RECIPE, make_endpoint, make_environment, source_of, write, write_double
from tritonstack.archives.stored_inputs import pack_inputs
from tritonstack.errors import InputError
from tritonstack.models.contents import contents_of
from tritonstack.models.digest import digests_of, model_digest
from tritonstack.models.selection import archive_names, is_made_of_folder, resolved_models
from tritonstack.models.source import ArchiveSource, archives_of
from tritonstack.naming import ArchiveName
from tritonstack.untrusted.unpacking import unpack

EXPORT = "exports: [{script: export.py, produces: [double/1/weights.bin], options: {seed: 0}}]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an export, and one that uses it."""
    made = write_double(tmp_path)
    with (made / "recipe.yaml").open("a") as recipe:
        recipe.write(EXPORT)
    write(made, {"export.py": "print()", "double/1/weights.bin": "made by an earlier export"})
    user = write_double(tmp_path, "user")
    with (user / "recipe.yaml").open("a") as recipe:
        recipe.write("uses: [{folder: double, models: [double]}]\n")
    return made


def _replace(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return change


@pytest.mark.parametrize(
    "change",
    [
        _replace("recipe.yaml", "seed: 0", "seed: 1"),
        _replace("recipe.yaml", "Doubles", "Does double"),
        _replace("double/config.pbtxt", "max_batch_size: 8", "max_batch_size: 16"),
        _replace("double/1/model.py", "2 * item", "item + item"),
        _replace("sample/answer.json", "5.0", "5.1"),
        _replace("export.py", "print()", "print(1)"),
        _replace("../../requirements/exporters.txt", "2.4.6", "2.4.7"),
        lambda folder: (folder / "double/1/new.txt").write_text(""),
        lambda folder: (folder / "export.py").rename(folder / "renamed.py"),
    ],
    ids=["option", "recipe", "config", "source", "sample", "export", "lock", "new file", "renamed file"],
)
def test_a_changed_input_changes_the_digest_of_the_folder_and_of_those_that_use_it(
    folder: Path, change: Callable[[Path], object]
) -> None:
    user = folder.parent / "user"
    before = model_digest(source_of(folder)), model_digest(source_of(user))
    change(folder)
    after = model_digest(source_of(folder)), model_digest(source_of(user))
    assert before[0] != after[0]
    assert before[1] != after[1]


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "double/1/weights.bin").write_text("made again"),
        lambda folder: (folder / "double/1/weights.bin").unlink(),
        lambda folder: write(
            folder, {"__pycache__/export.pyc": "", "double/.ipynb_checkpoints/x": "", ".DS_Store": ""}
        ),
        lambda folder: (folder / "export.py").chmod(0o755),
        lambda folder: os.utime(folder / "export.py", (1, 1)),
    ],
    ids=["made again", "not made yet", "junk", "mode", "time"],
)
def test_what_is_no_input_does_not_change_the_digest(folder: Path, change: Callable[[Path], object]) -> None:
    before = model_digest(source_of(folder))
    change(folder)
    assert model_digest(source_of(folder)) == before


def test_folders_that_use_each_other_are_refused(folder: Path) -> None:
    with (folder / "recipe.yaml").open("a") as recipe:
        recipe.write("uses: [{folder: user, models: [user]}]\n")
    with pytest.raises(InputError, match="double → user → double"):
        model_digest(source_of(folder))


def test_an_export_without_a_lock_file_is_refused(folder: Path) -> None:
    (folder.parent.parent / "requirements/exporters.txt").unlink()
    with pytest.raises(InputError, match="no lock file"):
        digests_of([source_of(folder)])


def test_the_contents_name_own_and_used_models_and_which_are_ensembles(folder: Path) -> None:
    user = folder.parent / "user"
    write(user, {"recipe.yaml": RECIPE + "uses: [{folder: double, models: [double]}]\n"})
    write(user, {"user/config.pbtxt": 'platform: "ensemble"'})
    found = contents_of(source_of(user))
    assert (found.models, found.ensembles, found.backends) == (
        ("double", "user"),
        ("user",),
        frozenset({"python", "ensemble"}),
    )


def test_a_model_without_a_folder_names_the_environment_s_field_along_with_wrong_recipes(folder: Path) -> None:
    with (folder.parent / "user/recipe.yaml").open("a") as recipe:
        recipe.write("speed: 3\n")
    environment = make_environment(make_endpoint("one", ("double",)), make_endpoint("two", ("user", "doubel")))
    file = folder.parent / "dev.yaml"
    file.write_text("endpoints:\n- models: [double]\n- models:\n  - user\n  - doubel\n")
    with pytest.raises(InputError) as caught:
        resolved_models(environment, folder.parent, file=file)
    wrong, gone = caught.value.problems
    assert wrong.field == "speed"
    assert (gone.file, gone.field) == (f"{file}:5", "endpoints[1].models[1]")
    assert gone.found.startswith("doubel")
    assert gone.allowed.endswith(": double, user")
    assert gone.advice == "Did you mean double?"


OVERLAYS = """\
overlays:
  wide: {config: [wide.pbtxt]}
  deep: {config: [deep.pbtxt]}
"""


def _written(root: Path) -> Path:
    """A folder with an export in the environment torch, and with files that no digest covers."""
    folder = write_double(root)
    with (folder / "recipe.yaml").open("a") as recipe:
        recipe.write("exports: [{produces: [double/1/made.bin]}]\n")
    write(folder, {"export.py": "", "double/1/made.bin": "by an earlier export", "double/1/model.py~": "an editor's"})
    write(folder.parent, {"_exporters/layers.py": ""})
    return folder


def _unpacked(source: ArchiveSource, root: Path) -> Path:
    pack_inputs(source, root / "inputs.tar.gz")
    unpack(root / "inputs.tar.gz", root / "unpacked")
    return root / "unpacked"


def test_the_digest_of_what_is_unpacked_is_that_of_what_was_packed(tmp_path: Path) -> None:
    source = source_of(_written(tmp_path))
    models = _unpacked(source, tmp_path) / "model_repos"
    assert model_digest(source_of(models / "double")) == model_digest(source)
    assert not (models / "double/double/1/made.bin").exists()
    write(models, {"_exporters/layers.py": "DEPTH = 2"})
    assert model_digest(source_of(models / "double")) != model_digest(source)
    assert archive_names(models) == ["double"]


def test_used_folders_and_every_overlays_fragments_are_kept(tmp_path: Path) -> None:
    folder = write_double(tmp_path)
    write(folder, {"wide.pbtxt": "max_batch_size: 64\n", "deep.pbtxt": "max_batch_size: 2\n"})
    with (folder / "recipe.yaml").open("a") as recipe:
        recipe.write(OVERLAYS)
    user = write_double(tmp_path, "user")
    with (user / "recipe.yaml").open("a") as recipe:
        recipe.write("uses: [{folder: double, models: [double]}]\n")
    (tmp_path / "kept").mkdir()
    kept = _unpacked(source_of(user), tmp_path / "kept")
    assert model_digest(source_of(kept / "model_repos/user")) == model_digest(source_of(user))
    for source in archives_of(folder):
        (tmp_path / source.name).mkdir()
        again = {
            each.name: each for each in archives_of(_unpacked(source, tmp_path / source.name) / "model_repos/double")
        }
        assert model_digest(again[source.name]) == model_digest(source)


def test_an_archive_is_of_the_folder_as_it_is_now_or_of_an_earlier_state(tmp_path: Path) -> None:
    made = write_double(tmp_path)
    archive = ArchiveName(model="double", digest=model_digest(source_of(made)))
    assert is_made_of_folder(archive, made.parent) is True
    write(made, {"double/1/model.py": "# another program"})
    assert is_made_of_folder(archive, made.parent) is False
    assert is_made_of_folder(ArchiveName(model="gone", digest=archive.digest), made.parent) is None
    (made / "recipe.yaml").write_text("kind: [")
    assert is_made_of_folder(archive, made.parent) is None
