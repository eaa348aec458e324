"""``tritonstack build``."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.config.environment_file import write_environment
from tests.models.folders import write_double
from tritonstack.cli.archives import build_command as command
from tritonstack.cli.root import root
from tritonstack.errors import InputError
from tritonstack.models.manifest import Manifest


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the folder ``double``, which is of two sizes, and an environment that serves it."""
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(tmp_path))
    monkeypatch.setenv("TRITONSTACK_HOME", str(tmp_path / ".local"))
    folder = write_double(tmp_path)
    with (folder / "recipe.yaml").open("a") as recipe:
        recipe.write("sizes: {tiny: {layers: 1}}\n")
    (tmp_path / "environments").mkdir()
    write_environment(tmp_path / "environments", header="builds: {size: tiny}", endpoint="models: [double]")
    return tmp_path


def sizes(project: Path) -> list[str]:
    """The sizes of the archives that were built, in the order of their files."""
    manifests = sorted((project / ".local/archives").glob("*.json"))
    return sorted(Manifest.model_validate_json(path.read_bytes()).size for path in manifests)


def test_a_named_model_is_built_in_full_size_unless_told_otherwise(project: Path) -> None:
    done = CliRunner().invoke(root, ["build", "double"])
    assert done.exit_code == 0, done.output
    assert sizes(project) == ["full"]
    assert "double." in done.stdout
    assert "proven with double/config.pbtxt: instances on the CPU" in done.stdout
    assert re.search(
        r"^  proof of double \(local Triton\): \d+ s, \d\.\d GiB of memory at most$", done.stdout, re.MULTILINE
    )
    assert CliRunner().invoke(root, ["build", "double", "--size", "tiny", "--weights", "random"]).exit_code == 0
    assert sizes(project) == ["full", "tiny"]


def test_an_environment_builds_as_it_says_and_an_option_says_otherwise(project: Path) -> None:
    assert CliRunner().invoke(root, ["build", "-e", "local"]).exit_code == 0
    assert sizes(project) == ["tiny"]
    assert CliRunner().invoke(root, ["build", "-e", "local", "--size", "full"]).exit_code == 0
    assert sizes(project) == ["full", "tiny"]
    assert "1 there already" in CliRunner().invoke(root, ["build"]).stderr


@pytest.mark.parametrize("environment", [(), ("-e", "local")])
def test_unknown_models_are_refused_together_each_with_its_nearest(project: Path, environment: tuple[str, ...]) -> None:
    error = CliRunner().invoke(root, ["build", *environment, "doubel", "gone"]).exception
    assert isinstance(error, InputError)
    assert [problem.advice for problem in error.problems] == ["Did you mean double?", ""]
    assert ["doubel" in problem.found or "gone" in problem.found for problem in error.problems] == [True, True]


def _environment(project: Path, endpoint: str) -> None:
    write_environment(project / "environments", header="builds: {size: tiny}", endpoint=f"models: [double]\n{endpoint}")


def test_an_error_for_the_environments_release_stops_the_build_before_it_starts(project: Path) -> None:
    config = project / "model_repos/double/double/config.pbtxt"
    config.write_text(config.read_text().replace('backend: "python"', 'platform: "tensorflow_graphdef"'))
    _environment(project, 'release: "25.09"')
    with pytest.raises(InputError, match=r"backend-not-in-release") as refused:
        command.main(["-e", "local"], standalone_mode=False)
    assert "endpoint digits of local" in str(refused.value)
    assert not (project / ".local").exists()


def test_an_error_for_the_environments_instance_stops_the_build_and_a_warning_does_not(project: Path) -> None:
    config = project / "model_repos/double/double/config.pbtxt"
    text = config.read_text()
    config.write_text(text + "instance_group [ { count: 1 kind: KIND_GPU gpus: [ 3 ] } ]\n")
    _environment(project, "instance_type: ml.g4dn.xlarge")
    with pytest.raises(InputError, match=r"g4dn\.xlarge"):
        command.main(["-e", "local", "double"], standalone_mode=False)
    assert not (project / ".local").exists()
    config.write_text(text.replace("max_batch_size: 8", "max_batch_size: 8000000"))  # shm-size, a warning
    assert CliRunner().invoke(root, ["build", "-e", "local"]).exit_code == 0


def test_what_is_not_asked_for_is_not_linted_for_the_environment(project: Path) -> None:
    other = write_double(project, "other")
    (other / "other/config.pbtxt").write_text("no configuration")
    write_environment(project / "environments", header="builds: {size: tiny}", endpoint="models: [double, other]")
    assert CliRunner().invoke(root, ["build", "-e", "local", "double"]).exit_code == 0
    with pytest.raises(InputError, match="other/config"):
        command.main(["-e", "local"], standalone_mode=False)


def test_pack_prints_the_archives_checksum(tmp_path: Path) -> None:
    folder = write_double(tmp_path)
    target = tmp_path / "packed.tar.gz"
    done = CliRunner().invoke(root, ["pack", str(folder), str(target)])
    assert done.exit_code == 0
    assert done.stdout.split() == [hashlib.sha256(target.read_bytes()).hexdigest(), str(target)]
