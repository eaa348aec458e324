"""``tritonstack builders`` and the lines of ``prepare``."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from tests.engines.engine_environments import environment_file, write_models
from tests.models.folders import write_double
from tritonstack.cli import prepare
from tritonstack.cli.prepare import ArchiveLines
from tritonstack.errors import InputError


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that is the working directory; it has no environment yet."""
    (tmp_path / "environments").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _environment(project: Path, *endpoints: str) -> None:
    environment_file(project, *endpoints).rename(project / "environments/local.yaml")


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(prepare.builders_command, arguments, env={"COLUMNS": "120"})


def test_the_table_names_machine_gpu_tensorrt_image_and_quota(project: Path) -> None:
    write_models(project)
    _environment(project, "", "instance_type: ml.g5.xlarge")
    result = _run()
    assert result.exit_code == 0
    for shown in (
        "24.09-t4",
        "SageMaker Processing ml.g4dn.xlarge (T4)",
        "24.09-a10g",
        "CodeBuild BUILD_GENERAL1_SMALL (A10G)",
        "10.4.0.26",
        "image 763104351884.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:24.09-py3",
        "quota L-F1FE1B52",
    ):
        assert shown in result.stdout


@pytest.mark.parametrize(
    ("release", "cuda", "driver"),
    [
        ("24.09", "CUDA 12.6.1", "driver 525"),
        ("25.09", "CUDA 13.0.1", "driver 580"),
        ("23.03", "not known", "not known"),
    ],
)
def test_what_is_known_of_the_machines_driver_is_said_and_what_is_not(
    project: Path, release: str, cuda: str, driver: str
) -> None:
    write_models(project)
    _environment(project, f"release: '{release}'\ninstance_type: ml.g5.xlarge")
    said = _run().stdout
    assert cuda in said
    assert driver in said
    assert "the driver of CodeBuild's machines is UNVERIFIED: AWS names none" in said
    [build] = json.loads(_run("--json").stdout)["builds"]
    assert build["driver"] is None
    assert build["least_driver"] == (int(driver.split()[1]) if driver != "not known" else None)


def test_a_narrow_terminal_loses_nothing(project: Path) -> None:
    write_models(project)
    _environment(project, "")
    result = CliRunner().invoke(prepare.builders_command, [], env={"COLUMNS": "60"})
    assert all(word in result.stdout for word in ("24.09-t4", "g4dn", "fast"))


def test_programs_get_builds_and_refusals_and_exit_code_two(project: Path) -> None:
    write_models(project)
    _environment(
        project, "instance_type: ml.g6.xlarge\nmode: single-model", "instance_type: ml.p4d.24xlarge\nmode: single-model"
    )
    result = _run("--json")
    assert isinstance(result.exception, InputError)
    document = json.loads(result.stdout)
    [build] = document["builds"]
    assert (build["platform"], build["kind"], build["machine"]) == ("24.09-l4", "processing", "ml.g6.xlarge")
    assert (build["gpu"], build["compute_capability"], build["tensorrt"]) == ("L4", "8.9", "10.4.0.26")
    assert (build["endpoints"], build["archives"]) == (["e0"], ["fast"])
    [refused] = document["refused"]
    assert refused["field"] == "endpoints[1].models[0]"
    assert "A100-40GB" in refused["found"]
    assert [problem.found for problem in result.exception.problems] == [refused["found"]]


def test_an_environment_without_tensorrt_models_says_so(project: Path) -> None:
    write_double(project)
    environment_file(project, "", models="[double]").rename(project / "environments/local.yaml")
    assert _run().stdout == "no archive of local needs a TensorRT engine\n"
    assert json.loads(_run("--json").stdout) == {"environment": "local", "builds": [], "refused": []}


def test_in_a_mixed_environment_each_family_has_its_own_machine(project: Path) -> None:
    write_models(project)
    _environment(project, "", "instance_type: ml.g5.xlarge", "instance_type: ml.g6.xlarge\nmode: single-model", "")
    builds = json.loads(_run("--json").stdout)["builds"]
    assert {build["platform"]: (build["kind"], build["machine"], build["endpoints"]) for build in builds} == {
        "24.09-a10g": ("codebuild", "BUILD_GENERAL1_SMALL", ["e1"]),
        "24.09-l4": ("processing", "ml.g6.xlarge", ["e2"]),
        "24.09-t4": ("processing", "ml.g4dn.xlarge", ["e0", "e3"]),
    }
    shown = _run().stdout
    assert all(f"24.09-{gpu}" in shown for gpu in ("a10g", "l4", "t4"))
    assert shown.count("needs the quota") == 3


BUILD = "CodeBuild: BUILD, 3 s"


@pytest.mark.parametrize(
    ("said", "seconds", "printed"),
    [
        (
            [("bert", "job to S3: 1 %"), ("bert", "job to S3: 50 %"), ("bert", ""), ("bert", BUILD)],
            1000,
            ["bert  job to S3: 1 %", f"bert  {BUILD}"],
        ),
        ([("a", "export"), ("b", "export"), ("a", "export")], 1000, ["a  export", "b  export"]),
        ([("a", BUILD), ("a", "CodeBuild: BUILD, 18 s")], 0, [f"a  {BUILD}", "a  CodeBuild: BUILD, 18 s"]),
        ([("a", "x" * 300)], 1000, ["a  " + "x" * 300]),
    ],
    ids=["what is new", "archives do not silence each other", "again after long, with figures", "one line"],
)
def test_what_an_archive_is_at_is_printed(said: list[tuple[str, str]], seconds: float, printed: list[str]) -> None:
    """Without the times that the lines begin with."""
    stream = io.StringIO()
    view = ArchiveLines(Console(file=stream, width=40), log_seconds=seconds)
    for archive, text in said:
        view.say(archive, text)
    assert [line.split(" s  ", 1)[1] for line in stream.getvalue().splitlines()] == printed
