"""The source of builds: what is in it, and what its hash depends on."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from constructs_lib import codebuild_project
from constructs_lib.codebuild_project import BuildSource, source_files
from tests.constructs_lib.templates import ROOT, new_app, new_stack
from tests.models.folders import write_double


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return write_double(tmp_path / "project").parent


def digest_of(models: Path) -> str:
    codebuild_project._gathered.cache_clear()
    return BuildSource(new_stack(), "Source", models=models).asset.asset_hash


def test_it_has_what_a_build_runs_and_nothing_that_it_does_not(models: Path) -> None:
    names = [name for name, _ in source_files(models)]
    assert {
        "model_repos/double/recipe.yaml",
        "pyproject.toml",
        "requirements/main.txt",
        "scripts/setup.py",
        "tritonstack/__main__.py",
        "tritonstack/engines/engine_step.py",
    } <= set(names)
    assert {name.split("/")[0] for name in names} == {
        "model_repos", "pyproject.toml", "requirements", "scripts", "tritonstack", "tritonstack_local",
        "tritonstack_capacity",
    }  # fmt: skip
    assert not [name for name in names if "__pycache__" in name]
    assert not [name for name in names if name.startswith("model_repos/digits")]


def test_the_lock_files_in_the_models_folder_are_taken_for_digests_cover_them(models: Path) -> None:
    files = dict(source_files(models))
    assert files["requirements/exporters.txt"].read_text() == "numpy==2.4.6\n"
    assert files["requirements/main.txt"] == ROOT / "requirements" / "main.txt"


def test_links_are_left_out(models: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of this machine")
    (models / "double" / "link").symlink_to(secret)
    assert "model_repos/double/link" not in dict(source_files(models))


def test_its_hash_depends_on_neither_time_stamps_nor_place(models: Path, tmp_path: Path) -> None:
    before = digest_of(models)
    shutil.copytree(models.parent, tmp_path / "elsewhere")
    elsewhere = (tmp_path / "elsewhere" / models.name).rename(tmp_path / "elsewhere" / "models")
    for path in elsewhere.rglob("*"):
        os.utime(path, (1, 1))
    assert digest_of(elsewhere) == before


@pytest.mark.parametrize("name", ["double/recipe.yaml", "double/new.txt"])
def test_its_hash_depends_on_every_content_and_every_name(models: Path, name: str) -> None:
    before = digest_of(models)
    path = models / name
    path.write_text(path.read_text() + "\n" if path.exists() else "")
    assert digest_of(models) != before


def test_the_asset_is_the_gathered_files(models: Path) -> None:
    codebuild_project._gathered.cache_clear()
    app = new_app()
    stack = new_stack(app)
    asset = BuildSource(stack, "Source", models=models).asset
    app.synth()
    staged = Path(app.outdir, f"asset.{asset.asset_hash}")
    assert sorted(str(path.relative_to(staged)) for path in staged.rglob("*") if path.is_file()) == sorted(
        name for name, _ in source_files(models)
    )
    assert (staged / "scripts/setup.py").read_bytes() == (ROOT / "scripts/setup.py").read_bytes()
