"""Whatever lies in an output folder is the result of a step that built, or is refused with what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonstack.engines.gpu_step import PlannedMachine, file_of, read_result, refuse_changed
from tritonstack.errors import WorkFailedError

PLANNED = PlannedMachine(release="24.09", tensorrt=("10.4",), gpu="A10G", compute_capability="8.6")
RECORD = {"name": "model.plan", "bytes": 4, "sha256": "0" * 64}
GOOD: dict[str, Any] = {
    "outcome": "built",
    "status": 0,
    "release": "24.09",
    "trtexec": {"program": "trtexec", "tensorrt": "10.4.0", "stand_in": False, "host_data": True},
    "gpu": {"name": "NVIDIA A10G", "compute_capability": "8.6", "driver": "550.127.05"},
    "image": {},
    "durations": {"build_seconds": 1.5},
    "files": {"plan": RECORD, "outputs": {**RECORD, "name": "outputs.json"}},
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def _folder(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> Path:
    folder = tmp_path_factory.mktemp("output")
    (folder / "result.json").write_bytes(content)
    return folder


@given(content=st.binary(max_size=60) | st.builds(lambda value: json.dumps(value).encode(), JSON))
def test_any_bytes_are_refused_and_never_raise_otherwise(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    with pytest.raises(WorkFailedError, match=r"^engine of m"):
        read_result(_folder(tmp_path_factory, content), planned=PLANNED, what="engine of m")


@given(field=st.sampled_from(sorted(set(GOOD) - {"status"})), value=JSON, drop=st.booleans())
def test_a_result_with_another_field_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, field: str, value: Any, drop: bool
) -> None:
    content = {key: value if key == field else kept for key, kept in GOOD.items() if not (drop and key == field)}
    folder = _folder(tmp_path_factory, json.dumps(content).encode())
    try:
        result = read_result(folder, planned=PLANNED, what="engine of m")
    except WorkFailedError:
        return
    assert (result.outcome, result.release) == ("built", "24.09")
    assert {"plan", "outputs"} <= set(result.files)


@pytest.mark.parametrize(
    ("name", "capability", "taken"),
    [
        ("NVIDIA A10G", "8.6", True),
        ("NVIDIA A10G (nvidia-smi-stand-in)", None, True),
        ("NVIDIA A10", "8.6", False),
        ("NVIDIA A10G", "8.9", False),
        ("Tesla T4", "7.5", False),
    ],
)
def test_only_the_planned_gpu_counts(
    tmp_path_factory: pytest.TempPathFactory, name: str, capability: str | None, taken: bool
) -> None:
    content = {**GOOD, "gpu": {"name": name, "compute_capability": capability, "driver": "1"}}
    folder = _folder(tmp_path_factory, json.dumps(content).encode())
    if taken:
        assert read_result(folder, planned=PLANNED, what="engine of m").gpu.name == name
    else:
        with pytest.raises(WorkFailedError, match=r"planned for A10G \(8\.6\)"):
            read_result(folder, planned=PLANNED, what="engine of m")


@pytest.mark.parametrize(("version", "taken"), [("10.4.0", True), ("10.4", True), ("10.40.0", False), ("11.4", False)])
def test_only_a_planned_tensorrt_counts(tmp_path_factory: pytest.TempPathFactory, version: str, taken: bool) -> None:
    content = {**GOOD, "trtexec": {**GOOD["trtexec"], "tensorrt": version}}
    folder = _folder(tmp_path_factory, json.dumps(content).encode())
    if taken:
        assert read_result(folder, planned=PLANNED, what="engine of m").trtexec.tensorrt == version
    else:
        with pytest.raises(WorkFailedError, match=r"planned for 10\.4"):
            read_result(folder, planned=PLANNED, what="engine of m")


def test_a_failed_step_is_told_with_phase_reason_and_last_lines(tmp_path: Path) -> None:
    failed = {"outcome": "failed", "phase": "build", "reason": "no kernel", "log_tail": ["[E] one", "[E] two"]}
    (tmp_path / "result.json").write_text(json.dumps(failed))
    with pytest.raises(WorkFailedError) as refused:
        read_result(tmp_path, planned=PLANNED, what="engine of m")
    assert str(refused.value) == "engine of m failed in its phase build: no kernel\n  [E] one\n  [E] two"


def test_a_huge_result_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_bytes(b" " * ((1 << 20) + 1))
    with pytest.raises(WorkFailedError, match="more than 1,048,576 bytes"):
        read_result(tmp_path, planned=PLANNED, what="engine of m")


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "/etc/passwd", "a\\b", "gone"])
def test_a_file_is_one_of_the_folder_itself(tmp_path: Path, name: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/b").write_text("")
    files = {**GOOD["files"], "plan": {**RECORD, "name": name}}
    (tmp_path / "result.json").write_text(json.dumps({**GOOD, "files": files}))
    result = read_result(tmp_path, planned=PLANNED, what="engine of m")
    with pytest.raises(WorkFailedError, match="there is no such file"):
        file_of(result, "plan", tmp_path)


def test_a_file_of_another_digest_is_refused(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(json.dumps(GOOD))
    (tmp_path / "model.plan").write_bytes(b"ptrt")
    result = read_result(tmp_path, planned=PLANNED, what="engine of m")
    with pytest.raises(WorkFailedError, match="4 bytes, and it wrote 4 with SHA-256 0000"):
        refuse_changed(result, "plan", file_of(result, "plan", tmp_path))
