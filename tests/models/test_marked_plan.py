"""The file that trtexec-stand-in writes in a plan's place, and which file the tensorrt backend serves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonstack.models.marked_plan import MARK, is_marked, read_graph, read_header, write_marked_plan


def marked(folder: Path, content: bytes = b"\x08\x09graph\n") -> Path:
    (folder / "model.onnx").write_bytes(content)
    write_marked_plan(folder / "model.plan", header={"tensorrt": "10.4.0"}, onnx=folder / "model.onnx")
    return folder / "model.plan"


def test_graph_and_header_are_read_back(tmp_path: Path) -> None:
    content = b"\n" + MARK + bytes(range(256)) * 5000
    plan = marked(tmp_path, content)
    assert read_graph(plan) == content
    assert read_header(plan) == {"tensorrt": "10.4.0"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.onnx", "model.plan"]


def test_the_first_line_says_that_it_is_no_engine(tmp_path: Path) -> None:
    first = marked(tmp_path).read_bytes().split(b"\n")[0]
    assert b"no TensorRT engine" in first
    assert b"stand-in" in first


@pytest.mark.parametrize("content", [b"", b"ptrt" + bytes(200), MARK[:-1]])
def test_another_file_is_not_marked(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.plan").write_bytes(content)
    assert not is_marked(tmp_path / "model.plan")
    with pytest.raises(ValueError, match="was not written by trtexec-stand-in"):
        read_graph(tmp_path / "model.plan")


def test_a_missing_file_or_a_folder_is_not_marked(tmp_path: Path) -> None:
    assert not is_marked(tmp_path / "model.plan")
    assert not is_marked(tmp_path)


def test_a_damaged_header_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "model.plan").write_bytes(MARK + b"{")
    assert is_marked(tmp_path / "model.plan")
    with pytest.raises(ValueError, match="Expecting"):
        read_header(tmp_path / "model.plan")


def test_no_half_written_plan_is_left_where_the_graph_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_marked_plan(tmp_path / "model.plan", header={}, onnx=tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []
