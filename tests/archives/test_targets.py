"""What archives are built for, and which of them would not serve there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.folders import (
    PACKED,
    T4,
    make_endpoint,
    make_environment,
    make_environment_file,
    places_in,
    source_of,
    write_double,
)
from tritonstack.archives import execution_environment, staging
from tritonstack.archives.build import build_environment, build_models
from tritonstack.archives.execution_environment import PackedEnvironment
from tritonstack.archives.programs import LOCAL_ENVIRONMENT, Spent, environment_version
from tritonstack.archives.proof import Proven
from tritonstack.cli.archives import built_lines
from tritonstack.lint import lint_folder
from tritonstack.models.build_target import target_of
from tritonstack.models.source import ArchiveSource
from tritonstack.models.tensorrt_models import lacks_plan, models_without_plan
from tritonstack.untrusted.unpacking import unpack


def source(root: Path, *, backend: str = "python", recipe: str = "") -> ArchiveSource:
    """A folder's archive with this backend and these further fields of the recipe."""
    folder = write_double(root)
    config = folder / "double/config.pbtxt"
    config.write_text(config.read_text().replace('backend: "python"', f'backend: "{backend}"'))
    with (folder / "recipe.yaml").open("a") as file:
        file.write(recipe)
    return source_of(folder)


@pytest.mark.parametrize(
    ("dependency", "here", "there"),
    [("none", None, None), ("python", "local", "python-3.10"), ("engine", "local", "24.09-t4")],
)
def test_the_target_follows_from_the_dependency(tmp_path: Path, dependency: str, here: str, there: str) -> None:
    made = source(tmp_path, recipe=f"dependency: {dependency}\n")
    assert target_of(made, None) == here
    assert target_of(made, T4) == there


def test_an_archive_of_a_backend_that_nothing_here_runs_is_built_and_its_proof_skipped(tmp_path: Path) -> None:
    folder = source(tmp_path, backend="identity").folder
    recipe = folder / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("kind: python", "kind: other"))
    summary = build_models(["double"], places=places_in(tmp_path))
    (built,) = summary.built
    assert built.manifest.proof_skipped == "the local Triton has no backend identity"
    assert (built.manifest.figures, built.manifest.stand_ins, built.spent) == ({}, (), ())
    assert str(summary).endswith("; proof skipped: double")
    assert "proof skipped: the local Triton has no backend identity; in an account" in built_lines(built)


def test_archives_that_depend_on_python_are_kept_apart_for_each_target(tmp_path: Path) -> None:
    source(tmp_path, recipe="dependency: python\n")
    places = places_in(tmp_path)
    (here,) = build_models(["double"], places=places).built
    environment = make_environment(make_endpoint("one", ("double",)))
    (there,) = build_environment(environment, local=False, places=places).built
    assert (here.target, there.target) == ("local", "python-3.10")
    assert here.name == there.name
    assert (here.manifest.target, there.manifest.target) == ("local", "python-3.10")
    assert places.archive(here.name, "local").is_file()
    assert places.archive(there.name, "python-3.10").is_file()
    assert not places.archive(here.name).exists()


@pytest.mark.parametrize(("on_deploy", "local"), [(None, False), (True, True)])
def test_what_needs_an_engine_is_left_to_the_deployment_that_builds_it(
    tmp_path: Path, on_deploy: bool | None, local: bool
) -> None:
    source(tmp_path, backend="tensorrt", recipe="dependency: engine\n")
    write_double(tmp_path, "other")
    environment = make_environment(make_endpoint("one", ("double", "other")), on_deploy=on_deploy)
    summary = build_environment(environment, local=local, places=places_in(tmp_path))
    assert [built.name.model for built in summary.built] == ["other"]
    said = "1 archive with an engine is built before the deployment: tritonstack prepare -e dev"
    assert str(summary).endswith(f"; {said}")
    only = build_environment(environment, models=["double"], local=local, places=places_in(tmp_path))
    assert (only.built, str(only)) == ((), said)


@pytest.mark.parametrize("plan_of", ["double", "user"])
def test_each_tensorrt_model_of_an_archive_needs_its_own_plan(tmp_path: Path, plan_of: str) -> None:
    made = source(tmp_path, backend="tensorrt", recipe="dependency: engine\n")
    user = write_double(tmp_path, "user")
    config = user / "user/config.pbtxt"
    config.write_text(config.read_text().replace('backend: "python"', 'platform: "tensorrt_plan"'))
    with (user / "recipe.yaml").open("a") as recipe:
        recipe.write("dependency: engine\nuses: [{folder: double, models: [double]}]\n")
    assert models_without_plan(source_of(user)) == ("double", "user")
    (made.folder.parent / plan_of / plan_of / "1/model.plan").write_bytes(b"plan")
    assert models_without_plan(source_of(user)) == ({"double": "user", "user": "double"}[plan_of],)
    assert lacks_plan(source_of(user))


@pytest.mark.parametrize(
    ("engine", "rules"),
    [("engine: {shapes: {x: {min: [1, 1], opt: [4, 1], max: [8, 1]}}}\n", []), ("", ["backend-file"])],
)
def test_lint_wants_the_plan_of_a_used_model_unless_its_own_recipe_has_an_engine(
    tmp_path: Path, engine: str, rules: list[str]
) -> None:
    made = source(tmp_path, backend="tensorrt", recipe=f"dependency: engine\n{engine}")
    (made.folder / "double/1/model.onnx").write_bytes(b"")
    user = write_double(tmp_path, "user")
    with (user / "recipe.yaml").open("a") as recipe:
        recipe.write("dependency: engine\nuses: [{folder: double, models: [double]}]\n")
    assert [each.rule for each in lint_folder(user) if each.rule == "backend-file"] == rules


def test_a_plan_that_an_export_makes_counts(tmp_path: Path) -> None:
    made = source(tmp_path, backend="tensorrt", recipe="exports: [{produces: [double/1/model.plan]}]\n")
    assert models_without_plan(made) == ()


ENVIRONMENT = 'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "$$TRITON_MODEL_DIRECTORY/env.tar.gz" } }\n'


def test_the_environment_is_packed_for_each_targets_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = "dependency: python\nexecution_environment: {requirements: requirements.txt}\n"
    folder = source(tmp_path, recipe=part).folder
    (folder / "requirements.txt").write_text("numpy==1.26.4\n")
    with (folder / "double/config.pbtxt").open("a") as config:
        config.write(ENVIRONMENT)
    local = environment_version(LOCAL_ENVIRONMENT)
    assert local is not None

    def made(*_arguments: object, python: str, target: Path, **_more: object) -> PackedEnvironment:
        target.parent.mkdir(parents=True, exist_ok=True)
        return make_environment_file(target, python)

    spent = Spent(step="proof of double", seconds=1.0, peak_bytes=2**30)
    proven = Proven(sample_difference=0.0, tools={}, stand_ins=("a stand-in",), spent=spent)
    monkeypatch.setattr(execution_environment, "make_execution_environment", made)
    monkeypatch.setattr(staging, "prove_sample", lambda *_arguments, **_more: proven)
    places = places_in(tmp_path)
    environment = make_environment(make_endpoint("one", ("double",)))
    (here,) = build_environment(environment, local=True, places=places).built
    (there,) = build_environment(environment, local=False, places=places).built
    for item, python in ((here, local), (there, "3.10")):
        kept = item.manifest.environment
        assert kept is not None
        assert (kept.file, kept.python) == ("double/env.tar.gz", python)
        unpack(places.archive(item.name, item.target), tmp_path / python)
        assert (tmp_path / python / "double/env.tar.gz").read_bytes() == PACKED
