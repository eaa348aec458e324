"""A model's configuration as a backend reads it, and the responses to a call."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

CONFIG = {
    "max_batch_size": 8,
    "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [2]}],
    "output": [
        {"name": "y", "data_type": "TYPE_FP32", "dims": [2]},
        {"name": "z", "data_type": "TYPE_STRING", "dims": [2]},
    ],
    "parameters": {"threads": {"string_value": "3"}, "name": {"string_value": "many"}},
}


@pytest.fixture
def model(backend: Callable[[str], Any]) -> Any:
    return backend("common/tritonstack_model.py")


def settings_of(model: Any, folder: Path, **changes: object) -> Any:
    arguments = {
        "model_config": json.dumps({**CONFIG, **changes}),
        "model_name": "digits",
        "model_repository": str(folder),
        "model_version": "1",
        "model_instance_name": "digits_0_1",
    }
    return model.ModelSettings(arguments)


def test_numbers_are_read_from_parameters(model: Any, tmp_path: Path, pb_utils: Any) -> None:
    settings = settings_of(model, tmp_path)
    assert settings.number("threads", 1) == 3
    assert settings.number("absent", 1) == 1
    with pytest.raises(pb_utils.TritonModelException, match="'name' of model 'digits' is 'many', a whole number"):
        settings.number("name", 1)


def test_the_default_model_filename_names_the_file(model: Any, tmp_path: Path, pb_utils: Any) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "other.onnx").touch()
    assert (
        settings_of(model, tmp_path, default_model_filename="other.onnx").model_file("model.onnx").name == "other.onnx"
    )
    with pytest.raises(pb_utils.TritonModelException, match=r"model\.onnx' .* found in that folder: other\.onnx"):
        settings_of(model, tmp_path).model_file("model.onnx")


def test_only_the_first_instance_speaks(model: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = settings_of(model, tmp_path)
    settings.stand_in("backend a runs b")
    assert capsys.readouterr().out == ""
    settings.first_instance = True
    settings.stand_in("backend a runs b")
    assert capsys.readouterr().out == "tritonstack stand-in: backend a runs b (model digits)\n"


def responses(
    model: Any, folder: Path, run: Callable[..., Any], requests: list[Any], **attributes: object
) -> list[Any]:
    class Backend(model.BatchingModel):  # type: ignore[misc]  # imported at run time
        settings = settings_of(model, folder)

        def run(self, inputs: dict[str, np.ndarray], outputs: list[str]) -> dict[str, np.ndarray]:
            return dict(run(inputs, outputs))

    for name, value in attributes.items():
        setattr(Backend, name, value)
    return list(Backend().execute(requests))


def test_a_response_holds_the_outputs_its_request_asked_for(model: Any, tmp_path: Path, request_of: Any) -> None:
    asked: list[list[str]] = []

    def run(inputs: dict[str, np.ndarray], outputs: list[str]) -> dict[str, np.ndarray]:
        asked.append(outputs)
        return {"y": inputs["x"], "z": np.full(inputs["x"].shape, "a", object)}

    x = np.ones((1, 2), np.float32)
    first, second = responses(model, tmp_path, run, [request_of({"x": x}, ["y"]), request_of({"x": x}, ["z", "y"])])
    assert asked == [["y", "z"]]
    assert list(first.outputs) == ["y"]
    assert sorted(second.outputs) == ["y", "z"]


def test_an_error_names_the_model(model: Any, tmp_path: Path, request_of: Any) -> None:
    error = model.RequestError("refused")

    def run(inputs: dict[str, np.ndarray], outputs: list[str]) -> dict[str, np.ndarray]:
        raise error

    (response,) = responses(model, tmp_path, run, [request_of({"x": np.ones((1, 2))}, ["y"])])
    assert response.error == "digits: refused"


def test_an_output_of_another_type_is_an_error_unless_the_backend_converts(
    model: Any, tmp_path: Path, request_of: Any
) -> None:
    def run(inputs: dict[str, np.ndarray], outputs: list[str]) -> dict[str, np.ndarray]:
        return {"y": inputs["x"].astype(np.float64)}

    request = request_of({"x": np.ones((1, 2), np.float32)}, ["y"])
    (refused,) = responses(model, tmp_path, run, [request])
    assert refused.error == "digits: output 'y' is configured as TYPE_FP32, the model gives float64"
    (converted,) = responses(model, tmp_path, run, [request], convert=True)
    assert converted.outputs["y"].dtype == np.float32


def test_a_library_that_is_not_installed_is_reported_with_the_command_that_installs_it(
    model: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pb_utils: Any
) -> None:
    for value in (None, str(tmp_path)):
        if value:
            monkeypatch.setenv("TRITONSTACK_TORCH_SITE", value)
        with pytest.raises(pb_utils.TritonModelException, match=r"needs torch, .*: python3 scripts/setup\.py torch$"):
            model.import_from("TRITONSTACK_TORCH_SITE", "torch", "torch")


@pytest.mark.parametrize(("first", "taken"), [(True, "its own"), (False, "the backends'")])
def test_a_library_may_need_its_own_version_of_what_the_backends_have(
    model: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, first: bool, taken: str
) -> None:
    for site, version in (("library", "its own"), ("backends", "the backends'")):
        folder = tmp_path / site / "needed_by_both_of_them"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(f'VERSION = "{version}"')
    (tmp_path / "library/some_library").mkdir()
    (tmp_path / "library/some_library/__init__.py").write_text("from needed_by_both_of_them import VERSION")
    monkeypatch.syspath_prepend(str(tmp_path / "backends"))
    monkeypatch.setenv("SOME_SITE", str(tmp_path / "library"))
    before = set(sys.modules)
    try:
        assert taken == model.import_from("SOME_SITE", "some_library", "some", first=first).VERSION
    finally:
        for name in set(sys.modules) - before:
            del sys.modules[name]
