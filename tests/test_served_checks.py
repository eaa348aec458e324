"""What archives contain against their endpoints: backends, DALI's memory, the default model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.config.environment_file import write_environment
from tritonstack.config import Environment, load_environment
from tritonstack.errors import Problem
from tritonstack.models.contents import ArchiveContents
from tritonstack.served_checks import check_archives, with_archives, with_default_models

DALI = "--backend-config=dali,release_after_unload=true"


def environment(folder: Path, endpoint: str = "") -> Environment:
    """A small environment whose endpoint serves ``digits-onnx``."""
    return load_environment(write_environment(folder, endpoint=endpoint))


def check_backends(
    settings: Environment, backends: Mapping[str, Iterable[str]], *, file: Path | None = None
) -> list[Problem]:
    """The problems of archives with these backends."""
    contents = {
        model: ArchiveContents(models=(model,), ensembles=(), backends=frozenset(named))
        for model, named in backends.items()
    }
    return check_archives(settings, contents, file=file)


def archive(*models: str, ensembles: tuple[str, ...] = ()) -> dict[str, ArchiveContents]:
    """The archive ``digits-onnx`` with these model folders."""
    return {"digits-onnx": ArchiveContents(models=models, ensembles=ensembles, backends=frozenset())}


def single(folder: Path, default: str = "null") -> Environment:
    """A single-model endpoint."""
    return environment(folder, f"mode: single-model\ncontainer: {{default_model_name: {default}}}")


VARIANTS = "mode: single-model\nvariants: [{name: current, model: a, weight: 1}, {name: new, model: b, weight: 1}]"


def test_variants_take_the_same_requests_and_each_serves_its_own_default_model(tmp_path: Path) -> None:
    settings = load_environment(write_environment(tmp_path, endpoint=VARIANTS, without=["models"]))
    other = {"b": ArchiveContents(models=("b",), ensembles=(), backends=frozenset(), inputs=("x INT64 [-1, 4]",))}
    steps = {"models": ("e", "step"), "ensembles": ("e",), "backends": frozenset({"tensorflow"})}
    contents = {"a": ArchiveContents(**steps, inputs=("x FP32 [-1, 4]",)), **other}  # type: ignore[arg-type]
    [problem] = check_archives(settings, contents)
    assert problem.field == "endpoints[0].variants[1].model"
    assert problem.found == "a takes x FP32 [-1, 4]; b takes x INT64 [-1, 4]"
    assert check_archives(settings, {**contents, "b": replace(other["b"], inputs=())}) == []  # completed by Triton
    gone = settings.model_copy(update={"endpoints": (settings.endpoints[0].model_copy(update={"release": "25.04"}),)})
    assert check_archives(gone, {"a": contents["a"]})[0].field == "endpoints[0].variants[0].model"
    [endpoint] = with_default_models(with_archives(settings, {"b": ("b-large",)}), contents).endpoints
    assert endpoint.models == ("a", "b-large")
    assert [each.container.default_model_name for each in endpoint.variant_settings] == ["e", None]


@pytest.mark.parametrize("named", ["onnxruntime", "onnxruntime_onnx", "tensorrt_plan", "ensemble", "python"])
def test_backends_and_platforms_of_the_release_are_taken(named: str, tmp_path: Path) -> None:
    assert check_backends(environment(tmp_path), {"digits-onnx": [named]}) == []


@pytest.mark.parametrize("named", ["tensorflow", "tensorflow_savedmodel", "tensorflow_graphdef"])
def test_tensorflow_is_refused_from_25_03_on(named: str, tmp_path: Path) -> None:
    assert check_backends(environment(tmp_path), {"digits-onnx": [named]}) == []
    [problem] = check_backends(environment(tmp_path, 'release: "25.04"'), {"digits-onnx": [named]})
    assert problem.field == "endpoints[0].models[0]"
    assert named in problem.found
    assert "went after release 25.02" in problem.found
    assert "onnxruntime" in problem.allowed
    assert "Take release 24.09" in problem.advice


def test_a_backend_that_went_and_a_misspelt_one_are_refused_with_release_and_nearest(tmp_path: Path) -> None:
    [late] = check_backends(environment(tmp_path), {"digits-onnx": ["fastertransformer"]})
    assert "went after release 23.05" in late.found
    [problem] = check_backends(environment(tmp_path), {"digits-onnx": ["onnxruntim"]})
    assert "which no release has" in problem.found
    assert "Did you mean onnxruntime?" in problem.advice


def test_a_backend_of_ones_own_can_be_named(tmp_path: Path) -> None:
    own = environment(tmp_path, "additional_backends: [mine]")
    assert check_backends(own, {"digits-onnx": ["mine"]}) == []


def test_every_model_and_backend_is_told_at_once_and_models_of_no_endpoint_are_ignored(tmp_path: Path) -> None:
    settings = environment(tmp_path, 'release: "25.04"\nmodels: [a, b]')
    problems = check_backends(settings, {"a": ["tensorflow", "x"], "b": ["y", "y"], "c": ["z"]}, file=Path("e.yaml"))
    assert [problem.field for problem in problems] == ["endpoints[0].models[0]"] * 2 + ["endpoints[0].models[1]"]
    assert {problem.file for problem in problems} == {"e.yaml"}


def test_an_option_of_the_whole_server_is_refused_where_the_endpoint_has_no_argument_for_it(tmp_path: Path) -> None:
    argument = "--backend-config=onnxruntime,default-max-batch-size=8"
    model = {"models": ("digits-onnx",), "ensembles": (), "backends": frozenset({"onnxruntime"})}
    contents = {"digits-onnx": ArchiveContents(**model, server_arguments=(argument,))}  # type: ignore[arg-type]
    [problem] = check_archives(environment(tmp_path), contents)
    assert problem.field == "endpoints[0].container.additional_args"
    assert problem.allowed == f"a list with {argument}"
    given = environment(tmp_path, f"container: {{additional_args: ['{argument}']}}")
    assert check_archives(given, contents) == []


def test_dali_in_multi_model_mode_needs_the_argument_that_gives_its_memory_back(tmp_path: Path) -> None:
    dali = {"digits-onnx": ["dali", "python"]}
    [problem] = check_backends(environment(tmp_path), dali)
    assert problem.field == "endpoints[0].container.additional_args"
    assert DALI in problem.allowed
    assert "digits-onnx" in problem.found
    assert check_backends(environment(tmp_path, f"container: {{additional_args: ['{DALI}']}}"), dali) == []
    assert check_backends(environment(tmp_path, "mode: single-model"), dali) == []
    [old] = check_backends(environment(tmp_path, 'release: "23.05"'), dali)
    assert "23.07 or newer" in old.advice, "which reads additional arguments"


def test_the_only_ensemble_of_a_single_model_endpoint_is_its_default_model(tmp_path: Path) -> None:
    contents = archive("both", "one", "two", ensembles=("both",))
    settings = single(tmp_path)
    assert check_archives(settings, contents) == []
    [endpoint] = with_default_models(settings, contents).endpoints
    assert endpoint.container_environment()["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"] == "both"


def test_a_default_model_that_the_settings_name_stays(tmp_path: Path) -> None:
    contents = archive("both", "one", ensembles=("both",))
    settings = single(tmp_path, "one")
    assert check_archives(settings, contents) == []
    assert with_default_models(settings, contents) == settings


def test_one_folder_needs_no_default_model_and_multi_model_mode_has_none(tmp_path: Path) -> None:
    settings = single(tmp_path)
    assert check_archives(settings, archive("one")) == []
    assert with_default_models(settings, archive("one")) == settings
    several, many = environment(tmp_path), archive("both", "one", ensembles=("both",))
    assert check_archives(several, many) == []
    assert with_default_models(several, many) == several


@pytest.mark.parametrize("ensembles", [(), ("a", "b")])
def test_several_folders_without_one_ensemble_need_a_default_model(ensembles: tuple[str, ...], tmp_path: Path) -> None:
    [problem] = check_archives(single(tmp_path), archive("a", "b", "c", ensembles=ensembles))
    assert problem.field == "endpoints[0].container.default_model_name"
    assert "3 model folders" in problem.found
    assert "a, b, c" in problem.allowed


def test_a_variants_wrong_default_model_is_reported_where_the_file_has_it(tmp_path: Path) -> None:
    own = VARIANTS.replace("model: b,", "model: b, container: {default_model_name: gone},")
    settings = load_environment(write_environment(tmp_path, endpoint=own, without=["models"]))
    one = ArchiveContents(models=("one",), ensembles=(), backends=frozenset())
    [problem] = check_archives(settings, {"a": one, "b": one})
    assert problem.field == "endpoints[0].variants[1].container.default_model_name"


def test_a_default_model_that_is_no_folder_of_the_archive_is_refused(tmp_path: Path) -> None:
    for contents in (archive("both", "one", ensembles=("both",)), archive("one")):
        [problem] = check_archives(single(tmp_path, "gone"), contents)
        assert problem.field == "endpoints[0].container.default_model_name"
        assert "gone" in problem.found
        assert ", ".join(contents["digits-onnx"].models) in problem.allowed


BLS = {
    "digits-onnx": ArchiveContents(
        models=("one", "pipeline", "two"),
        ensembles=(),
        backends=frozenset({"python"}),
        addressed="pipeline",
        called=("one", "two"),
    )
}
"""An archive whose model ``pipeline`` calls the others by its program."""


def test_a_single_model_endpoint_serves_the_recipe_s_model_and_loads_those_that_it_calls(tmp_path: Path) -> None:
    settings = environment(tmp_path, "mode: single-model\ncontainer: {additional_args: ['--id=x']}")
    assert check_archives(settings, BLS) == []
    [endpoint] = with_default_models(settings, BLS).endpoints
    variables = endpoint.container_environment()
    assert variables["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"] == "pipeline"
    assert variables["SAGEMAKER_TRITON_ADDITIONAL_ARGS"] == "--id=x --load-model=one --load-model=two"


@pytest.mark.parametrize(
    ("endpoint", "found", "allowed"),
    [
        ("", "whose program calls one, two by name, on a multi-model endpoint", "an ensemble of all steps"),
        ('mode: single-model\nrelease: "23.05"', "calls one, two, with release 23.05", "release 23.07 or newer"),
    ],
)
def test_models_that_call_others_are_refused_where_nothing_serves_or_loads_them(
    tmp_path: Path, endpoint: str, found: str, allowed: str
) -> None:
    [problem] = check_archives(environment(tmp_path, endpoint), BLS)
    assert found in problem.found
    assert allowed in problem.allowed


OVERLAID = {"digits-onnx": ("digits-onnx-a", "digits-onnx-b")}
TWO = {name: ArchiveContents(models=(name,), ensembles=(), backends=frozenset()) for name in OVERLAID["digits-onnx"]}


def test_a_folder_s_archives_are_checked_each_at_the_folder_s_place(tmp_path: Path) -> None:
    gone = {"digits-onnx-b": ArchiveContents(models=("m",), ensembles=(), backends=frozenset({"tensorflow"}))}
    settings = environment(tmp_path, 'release: "25.04"')
    [problem] = check_archives(settings, TWO | gone, archives=OVERLAID)
    assert problem.field == "endpoints[0].models[0]"
    assert "digits-onnx-b" in problem.found


def test_a_folder_with_several_archives_is_refused_on_a_single_model_endpoint(tmp_path: Path) -> None:
    [problem] = check_archives(single(tmp_path), TWO, archives=OVERLAID)
    assert problem.field == "endpoints[0].models[0]"
    assert problem.found == "digits-onnx, which stands for 2 archives, on a single-model endpoint"
    assert problem.allowed == "one of them: digits-onnx-a, digits-onnx-b"
    assert check_archives(environment(tmp_path), TWO, archives=OVERLAID) == []


def test_with_archives_names_each_archive_of_an_endpoint_once(tmp_path: Path) -> None:
    settings = environment(tmp_path, "models: [digits-onnx, digits-onnx-a]")
    [endpoint] = with_archives(settings, OVERLAID).endpoints
    assert endpoint.models == ("digits-onnx-a", "digits-onnx-b")


@pytest.mark.parametrize(
    ("endpoint", "decoupled", "tensors", "found"),
    [
        ("", True, (), "a decoupled model, on a multi-model endpoint"),
        ("mode: single-model", True, (), "a decoupled model, on an endpoint that infers"),
        ("mode: single-model\ncontainer: {inference_type: generate_stream}", True, (), None),
        ("mode: single-model\ncontainer: {inference_type: generate_stream}", False, (), None),
        ("mode: single-model\ncontainer: {inference_type: generate_stream}", True, ("x FP16",), "with x FP16"),
        ("mode: single-model", False, ("x FP16",), None),
    ],
)
def test_a_decoupled_model_is_on_an_endpoint_that_streams_and_a_stream_has_no_half_precision(
    endpoint: str, decoupled: bool, tensors: tuple[str, ...], found: str | None, tmp_path: Path
) -> None:
    settings = environment(tmp_path, f'release: "25.09"\n{endpoint}')
    [contents] = archive("digits-onnx").values()
    problems = check_archives(settings, {"digits-onnx": replace(contents, decoupled=decoupled, unstreamable=tensors)})
    assert [found in str(each.found) for each in problems if found] == ([True] if found else [])
    assert len(problems) == (found is not None)
