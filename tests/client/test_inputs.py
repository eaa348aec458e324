"""Input arrays from JSON, .npy, .npz, images and texts, and each refusal."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.cases import cases
from tests.client.fake_triton import Array, datatype_of
from tritonstack.adapters import Adapters
from tritonstack.client.inputs import InputFile, read_inputs
from tritonstack.client.kserve_request import inputs_from_json
from tritonstack.client.manifest import TensorSpec, TensorTable
from tritonstack.errors import InputError


def table(*inputs: tuple[str, str, tuple[int, ...]], **adapters: Any) -> TensorTable:
    return TensorTable(
        inputs=tuple(TensorSpec(name=name, datatype=datatype, shape=shape) for name, datatype, shape in inputs),
        outputs=(),
        max_batch_size=8,
        optional_inputs=frozenset(),
        adapters=Adapters.model_validate(adapters),
    )


PIXELS = table(("pixels", "FP32", (-1, 4)))
TWO = table(("ids", "INT64", (-1, -1)), ("mask", "BOOL", (-1, -1)))
IMAGE = table(("image", "BYTES", (-1, 1)), image={"input": "image", "encoding": "png-bytes"})
TEXT = table(("text", "BYTES", (-1, 1)), text={"input": "text", "encoding": "utf8"})


def no_files(_table: TensorTable, names: Sequence[str]) -> dict[str, Path]:
    assert not names
    return {}


def read(path: Path, model: TensorTable | None, name: str | None = None) -> dict[str, Array]:
    return read_inputs([InputFile(path=path, input=name)], model, fetch=no_files)


def read_json(value: Any) -> dict[str, Array]:
    return inputs_from_json(json.dumps(value).encode(), file="f.json")


def test_a_kserve_request_is_sent_unchanged() -> None:
    arrays = read_json(
        {
            "inputs": [
                {"name": "ids", "shape": [1, 2], "datatype": "INT64", "data": [3, 4]},
                {"name": "mask", "shape": [1, 2], "datatype": "BOOL", "data": [[True, False]]},
                {"name": "h", "shape": [1], "datatype": "FP16", "data": [0.5]},
                {"name": "t", "shape": [1, 1], "datatype": "BYTES", "data": ["ü"]},
            ]
        }
    )
    assert {name: (datatype_of(a), a.tolist()) for name, a in arrays.items()} == {
        "ids": ("INT64", [[3, 4]]),
        "mask": ("BOOL", [[True, False]]),
        "h": ("FP16", [0.5]),
        "t": ("BYTES", [["ü".encode()]]),
    }


@cases("value, message")
def test_everything_wrong_with_a_kserve_request_is_reported_at_once(value: Any, message: list[tuple[str, str]]) -> None:
    with pytest.raises(InputError) as caught:
        read_json(value)
    assert all(problem.file == "f.json" for problem in caught.value.problems)
    assert [(problem.field, problem.found) for problem in caught.value.problems] == message


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000])
def test_invalid_json_is_reported(content: bytes) -> None:
    with pytest.raises(InputError, match="Invalid JSON"):
        inputs_from_json(content, file="f.json")


def test_several_files_give_several_inputs_and_none_twice(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((1, 2), np.int64))
    np.save(tmp_path / "b.npy", np.array([[True, False]]))
    files = [InputFile.parse(f"ids={tmp_path}/a.npy"), InputFile.parse(f"mask={tmp_path}/b.npy")]
    assert {name: array.dtype for name, array in read_inputs(files, TWO, fetch=no_files).items()} == {
        "ids": np.int64,
        "mask": np.bool_,
    }
    with pytest.raises(InputError, match="given twice"):
        read_inputs([*files, files[0]], TWO, fetch=no_files)
    for model in (TWO, None):
        with pytest.raises(InputError, match="=file"):
            read(tmp_path / "a.npy", model)


def test_errors_of_several_files_are_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(b"no array")
    (tmp_path / "b.npz").write_bytes(b"no archive")
    np.save(tmp_path / "pickled.npy", np.array([{}], dtype=object), allow_pickle=True)
    (tmp_path / "c.json").write_text("{")
    names = ["pixels=a.npy", "b.npz", "pixels=pickled.npy", "c.json", "missing.npy", "notes.txt"]
    (tmp_path / "notes.txt").write_text("text")
    files = [InputFile(path=tmp_path / InputFile.parse(n).path, input=InputFile.parse(n).input) for n in names]
    with pytest.raises(InputError) as caught:
        read_inputs(files, PIXELS, fetch=no_files)
    assert [Path(problem.file or "").name for problem in caught.value.problems] == [f.path.name for f in files]


def test_a_name_before_the_file_is_split_off_unless_the_file_is_called_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert InputFile.parse("x=a.npy") == InputFile(path=Path("a.npy"), input="x")
    assert InputFile.parse("dir/x=a.npy") == InputFile(path=Path("dir/x=a.npy"))
    Path("x=a.npy").touch()
    assert InputFile.parse("x=a.npy") == InputFile(path=Path("x=a.npy"))


def picture(form: str, mode: str = "RGB") -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, (5, 3), 7).save(buffer, format=form)
    return buffer.getvalue()


@pytest.mark.parametrize(("form", "suffix", "mode"), [("JPEG", ".jpg", "CMYK"), ("PNG", ".png", "RGB")])
def test_another_image_is_sent_as_a_png(tmp_path: Path, form: str, suffix: str, mode: str) -> None:
    path = tmp_path / f"a{suffix.upper()}"
    path.write_bytes(picture(form, mode))
    element = read(path, IMAGE)["image"][0, 0]
    with Image.open(io.BytesIO(element)) as image:
        assert (image.format, image.size) == ("PNG", (5, 3))


@pytest.mark.parametrize("content", [b"\xff\x00", b"", b"\xff\xd8\xff\xe0junk"])
def test_file_bytes_of_no_image_are_refused_before_they_travel(tmp_path: Path, content: bytes) -> None:
    raw = table(("blob", "UINT8", (-1, -1)), image={"input": "blob", "encoding": "file-bytes"})
    (tmp_path / "a.jpg").write_bytes(content)
    with pytest.raises(InputError) as caught:
        read(tmp_path / "a.jpg", raw)
    assert [problem.file for problem in caught.value.problems] == [str(tmp_path / "a.jpg")]


@pytest.mark.parametrize(
    ("model", "name", "message"),
    [
        (TEXT, None, "no adapter for it"),
        (PIXELS, None, "for which the model has no input"),
        (None, None, "manifest cannot be read"),
        (IMAGE, "mask", "other files name their inputs"),
    ],
)
def test_an_image_is_refused_where_the_model_has_no_use_for_it(
    tmp_path: Path, model: TensorTable | None, name: str | None, message: str
) -> None:
    (tmp_path / "a.png").write_bytes(picture("PNG"))
    with pytest.raises(InputError, match=message):
        read(tmp_path / "a.png", model, name)
