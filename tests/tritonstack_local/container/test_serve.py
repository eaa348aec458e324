"""What SageMaker's ``serve`` script makes of a container's environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import cases
from tests.tritonstack_local.container.conftest import write_files
from tritonstack.catalogue import load_catalogue
from tritonstack_local.container.serve import ServeCommand, ServeExitError, serve_command

PREFIX = "SAGEMAKER_TRITON_"


@pytest.fixture
def one_model(tmp_path: Path) -> Path:
    (tmp_path / "digits").mkdir()
    (tmp_path / "readme.txt").touch()
    return tmp_path


def multi(*, release: str | None = None, **variables: str) -> tuple[str, ...]:
    """The arguments in multi-model mode."""
    environment = {PREFIX + name: value for name, value in variables.items()}
    return serve_command(environment, multi_model=True, release=release).argv


def test_multi_model_mode_without_settings_gives_the_scripts_flags() -> None:
    assert serve_command({}, multi_model=True).argv == (
        "tritonserver",
        "--allow-sagemaker=true",
        "--allow-http=false",
        "--model-control-mode=explicit",
        "--model-repository=/tmp/sagemaker",
        "--allow-grpc=false",
        "--allow-metrics=false",
        "--model-namespacing=true",
        "--log-verbose=true",
        "--backend-config=python,shm-default-byte-size=16777216",
        "--backend-config=python,shm-growth-byte-size=1048576",
    )


def test_each_variable_becomes_its_flag_once() -> None:
    flags = {
        "THREAD_COUNT": "--sagemaker-thread-count=4",
        "BUFFER_MANAGER_THREAD_COUNT": "--buffer-manager-thread-count=2",
        "LOG_VERBOSE": "--log-verbose=false",
        "LOG_INFO": "--log-info=false",
        "LOG_WARNING": "--log-warning=false",
        "LOG_ERROR": "--log-error=true",
        "SHM_DEFAULT_BYTE_SIZE": "--backend-config=python,shm-default-byte-size=33554432",
        "SHM_GROWTH_BYTE_SIZE": "--backend-config=python,shm-growth-byte-size=4096",
        "TENSORFLOW_VERSION": "--backend-config=tensorflow,version=2",
        "ALLOW_GRPC": "--allow-grpc=true",
        "ALLOW_METRICS": "--allow-metrics=true",
        "METRICS_PORT": "--metrics-port=9002",
        "GRPC_PORT": "--grpc-port=9001",
    }
    argv = multi(**{name: flag.rpartition("=")[2] for name, flag in flags.items()})
    for flag in flags.values():
        assert [one for one in argv if one.startswith(flag.rpartition("=")[0] + "=")] == [flag]


@cases("release, variables, flag, is_there")
def test_traps_of_the_script_are_kept(
    release: str | None, variables: dict[str, str], flag: str, *, is_there: bool
) -> None:
    assert any(flag in one for one in multi(release=release, **variables)) == is_there


def test_additional_args_come_last_and_are_split_at_white_space() -> None:
    argv = multi(ADDITIONAL_ARGS="--cache-config=local,size=1048576  --exit-timeout-secs=5")
    assert argv[-2:] == ("--cache-config=local,size=1048576", "--exit-timeout-secs=5")
    platform = {"SAGEMAKER_BIND_TO_PORT": "8100", "SAGEMAKER_SAFE_PORT_RANGE": "9000-9999"}
    argv = serve_command(platform, multi_model=True, multi_model_repository="/home/a b").argv
    assert {*("--sagemaker-port=8100", "--sagemaker-safe-port-range=9000-9999", "--model-repository=/home/a b")} <= set(
        argv
    )


NEWER = sorted(name for name, one in load_catalogue().serve_variables.items() if one.since > "22.05")


@pytest.mark.parametrize("name", NEWER)
def test_a_variable_newer_than_the_release_is_ignored_and_reported(name: str, one_model: Path) -> None:
    since = load_catalogue().serve_variables[name].since
    year, month = map(int, since.split("."))
    before = f"{year}.{month - 1:02d}" if month > 1 else f"{year - 1}.12"
    value = "infer" if name.endswith("INFERENCE_TYPE") else "1"

    def serve(environment: dict[str, str], release: str) -> ServeCommand:
        return serve_command(environment, multi_model=False, model_data=one_model, release=release)

    with_it, without = serve({name: value}, before), serve({}, before)
    assert (with_it.argv, with_it.env) == (without.argv, without.env)
    assert any(name in note and before in note for note in with_it.notes)
    assert not any("ignored" in note for note in serve({name: value}, since).notes)


@pytest.mark.parametrize("environment", [{}, {PREFIX + "OVERRIDE_PING_MODE": "live"}])
def test_the_ping_mode_does_not_reach_the_server_unless_the_variable_is_there_already(
    environment: dict[str, str],
) -> None:
    command = serve_command(environment, multi_model=True)
    assert PREFIX + "PING_MODE" not in command.env
    assert any("ping mode live does not reach the server" in note for note in command.notes)


@pytest.mark.parametrize(
    ("multi_model", "override", "mode"),
    [(True, {}, "live"), (True, {PREFIX + "OVERRIDE_PING_MODE": "ready"}, "ready"), (False, {}, "ready")],
    ids=["multi-model", "override", "single model"],
)
def test_a_predefined_ping_mode_is_overwritten_with_what_the_script_computes(
    multi_model: bool, override: dict[str, str], mode: str, one_model: Path
) -> None:
    given = {PREFIX + "PING_MODE": "anything", **override}
    command = serve_command(given, multi_model=multi_model, model_data=one_model)
    assert command.env[PREFIX + "PING_MODE"] == mode


def test_the_load_limit_has_no_flag_without_a_gpu_and_this_is_reported() -> None:
    limit = {PREFIX + "MODEL_LOAD_GPU_LIMIT": "0.8"}
    command = serve_command(limit, multi_model=True)
    assert not [one for one in command.argv if "gpu-limit" in one]
    assert any("lists no GPU" in note for note in command.notes)


def test_the_only_directory_is_the_default_model_and_is_exported(one_model: Path) -> None:
    command = serve_command({}, multi_model=False, model_data=one_model)
    assert "--model-repository=/opt/ml/model/" in command.argv
    assert "--load-model=digits" in command.argv
    assert command.env[PREFIX + "DEFAULT_MODEL_NAME"] == "digits"


@pytest.mark.parametrize(
    ("made", "variables", "message"),
    [
        (["digits/", "preprocess/"], {}, r"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME.*digits preprocess"),
        (["digits/"], {"DEFAULT_MODEL_NAME": "other"}, r"no such directory.*digits"),
        (["digits/", "config.pbtxt"], {"DEFAULT_MODEL_NAME": "digits"}, r"config\.pbtxt lies at the archive's root"),
        ([], {}, "No model found"),
        (["digits/"], {"INFERENCE_TYPE": "chat"}, "allowed are infer, generate"),
    ],
    ids=["several", "another", "at the root", "none", "inference type"],
)
def test_an_archive_that_names_no_one_model_ends_the_container(
    made: list[str], variables: dict[str, str], message: str, tmp_path: Path
) -> None:
    for name in made:
        write_files(tmp_path, {f"{name}.keep": ""} if name.endswith("/") else {name: ""})
    environment = {PREFIX + name: value for name, value in variables.items()}
    with pytest.raises(ServeExitError, match=message):
        serve_command(environment, multi_model=False, model_data=tmp_path, release="25.03")


def test_one_of_several_directories_is_named_and_without_a_folder_there_is_no_model(one_model: Path) -> None:
    (one_model / "preprocess").mkdir()
    named = serve_command({PREFIX + "DEFAULT_MODEL_NAME": "preprocess"}, multi_model=False, model_data=one_model)
    assert "--load-model=preprocess" in named.argv
    for folder in (one_model / "missing", None):
        with pytest.raises(ServeExitError, match="No model found"):
            serve_command({}, multi_model=False, model_data=folder)


def test_the_inference_type_generate_is_noted_with_its_release(one_model: Path) -> None:
    environment = {PREFIX + "INFERENCE_TYPE": "generate"}
    command = serve_command(environment, multi_model=False, model_data=one_model, release="25.09")
    assert any("25.03" in note for note in command.notes)
    assert command.generates == f"/v2/models/{command.env['SAGEMAKER_TRITON_DEFAULT_MODEL_NAME']}/generate"
    older = serve_command(environment, multi_model=False, model_data=one_model, release="25.02")
    assert (older.generates, any("is ignored" in note for note in older.notes)) == (None, True)
    inferring = serve_command({PREFIX + "INFERENCE_TYPE": "infer"}, multi_model=False, model_data=one_model)
    assert inferring.generates is None
