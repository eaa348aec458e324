"""trtexec-stand-in accepts the options of its TensorRT version, and names itself in every line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import cases
from tests.engines.stand_ins import doubling_graph, quantised_graph
from tritonstack.catalogue.trtexec_options import trtexec_options, trtexec_table
from tritonstack.model_files.marked_plan import is_marked, read_header
from tritonstack_local.trtexec.arguments import Arguments, Refused
from tritonstack_local.trtexec.launchers import StandIns, machine_with, make_stand_ins

SHAPES = ["--minShapes=x:1x3,k:1x3", "--optShapes=x:2x3,k:2x3", "--maxShapes=x:4x3,k:4x3"]


def programs(folder: Path, *, tensorrt: str = "10.4.0", gpu: str = "A10G", compute_capability: str = "8.6") -> StandIns:
    machine = machine_with(tensorrt=tensorrt, gpu=gpu, compute_capability=compute_capability)
    return make_stand_ins(folder / tensorrt, machine)


def run(program: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.fixture
def onnx(tmp_path: Path) -> str:
    (tmp_path / "model.onnx").write_bytes(doubling_graph())
    return f"--onnx={tmp_path / 'model.onnx'}"


@pytest.mark.parametrize("version", trtexec_table().versions)
def test_it_takes_exactly_the_options_of_its_version(version: str) -> None:
    machine = machine_with(tensorrt=version, gpu="T4", compute_capability="7.5")
    known = trtexec_options(version)
    anywhere = frozenset[str]().union(*(trtexec_options(one) for one in trtexec_table().versions))
    for option in sorted(anywhere | {"--no-such-option"}):
        try:
            Arguments.parse([option], known=frozenset(machine.options))
        except Refused as refused:
            assert str(refused).startswith("Unknown option: ") == (option not in known), option
        else:
            assert option in known


def test_every_unknown_option_is_named_and_nothing_is_written(tmp_path: Path, onnx: str) -> None:
    plan = tmp_path / "model.plan"
    status, log = run(
        programs(tmp_path).trtexec, onnx, f"--saveEngine={plan}", "--workspace=4096", "--explicitBatch", *SHAPES
    )
    assert status == 1
    assert "Unknown option: --workspace 4096" in log
    assert "Unknown option: --explicitBatch" in log
    assert "&&&& FAILED trtexec-stand-in" in log
    assert not plan.exists()


@cases("tensorrt, level, message")
def test_a_compatibility_level_is_taken_from_the_version_on_that_has_it(
    tmp_path: Path, onnx: str, tensorrt: str, level: str, message: str
) -> None:
    wanted = f"--hardwareCompatibilityLevel={level}"
    status, log = run(programs(tmp_path, tensorrt=tensorrt).trtexec, onnx, wanted, *SHAPES, "--skipInference")
    assert status == bool(message)
    assert message in log


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (["--minShapes=z:1x3"], "Cannot find input tensor with name 'z'"),
        (["--shapes=x:1x4"], "x:1x4 does not suit the graph's x:-1x3"),
        (["--shapes=x:3"], "x:3 does not suit"),
        (["--minShapes=x:2x3", "--optShapes=x:1x3", "--maxShapes=x:4x3"], "do not rise"),
    ],
)
def test_shapes_that_do_not_suit_the_graph_are_refused(
    tmp_path: Path, onnx: str, shapes: list[str], message: str
) -> None:
    plan = tmp_path / "model.plan"
    status, log = run(programs(tmp_path).trtexec, onnx, f"--saveEngine={plan}", "--skipInference", *shapes)
    assert status == 1
    assert message in log
    assert not plan.exists()


def test_every_line_reports_that_it_is_a_stand_in(tmp_path: Path, onnx: str) -> None:
    trtexec = programs(tmp_path).trtexec
    for arguments in (["--help"], [onnx, *SHAPES], [onnx, "--no-such"], []):
        _, log = run(trtexec, *arguments)
        assert log
        assert all("trtexec-stand-in" in line for line in log.splitlines())


def test_written_files_are_marked_and_name_what_they_replace(tmp_path: Path, onnx: str) -> None:
    plan = tmp_path / "model.plan"
    assert run(programs(tmp_path).trtexec, onnx, f"--saveEngine={plan}", "--skipInference", *SHAPES)[0] == 0
    assert is_marked(plan)
    header = read_header(plan)
    assert (header["tool"], header["tensorrt"], header["gpu"]) == ("trtexec-stand-in", "10.4.0", "A10G")
    assert header["profiles"][0]["x"] == [[1, 3], [2, 3], [4, 3]]
    again = tmp_path / "again.plan"
    run(programs(tmp_path).trtexec, onnx, f"--saveEngine={again}", "--skipInference", *SHAPES)
    assert again.read_bytes() == plan.read_bytes()


def test_a_marked_file_is_loaded_by_its_version_its_gpu_and_within_its_profile_only(tmp_path: Path, onnx: str) -> None:
    plan = tmp_path / "model.plan"
    trtexec = programs(tmp_path).trtexec
    run(trtexec, onnx, f"--saveEngine={plan}", "--skipInference", *SHAPES)
    load = [f"--loadEngine={plan}", "--shapes=x:3x3,k:3x3"]
    assert run(trtexec, *load)[0] == 0
    status, log = run(trtexec, f"--loadEngine={plan}", "--shapes=x:5x3,k:5x3")
    assert status == 1
    assert "not between (1, 3) and (4, 3)" in log
    status, log = run(programs(tmp_path, tensorrt="10.5.0").trtexec, *load)
    assert status == 1
    assert "Version tag does not match" in log
    status, log = run(programs(tmp_path, gpu="T4", compute_capability="7.5").trtexec, *load)
    assert status == 1
    assert "incompatible device" in log


PROFILES = [
    "--profile=0", "--minShapes=x:1x3,k:1x3", "--optShapes=x:1x3,k:1x3", "--maxShapes=x:2x3,k:2x3",
    "--profile=1", "--minShapes=x:3x3,k:3x3", "--optShapes=x:4x3,k:4x3", "--maxShapes=x:4x3,k:4x3",
]  # fmt: skip


def test_a_file_of_several_profiles_is_run_within_the_chosen_one(tmp_path: Path, onnx: str) -> None:
    plan, trtexec = tmp_path / "model.plan", programs(tmp_path).trtexec
    assert run(trtexec, onnx, f"--saveEngine={plan}", "--skipInference", *PROFILES)[0] == 0
    shapes = f"--loadEngine={plan}", "--shapes=x:4x3,k:4x3"
    assert run(trtexec, *shapes, "--useProfile=1")[0] == 0
    for wrong, message in (("0", "is not between (1, 3) and (2, 3)"), ("2", "the engine has 2")):
        status, log = run(trtexec, *shapes, f"--useProfile={wrong}")
        assert status == 1
        assert message in log


@cases("arguments, message")
def test_profiles_are_spelled_as_trtexec_reads_them(arguments: list[str], message: str) -> None:
    parsed = Arguments.parse(arguments, known=frozenset(one.partition("=")[0] for one in arguments))
    with pytest.raises(Refused, match=message):
        parsed.profiles()


@pytest.mark.parametrize(("version", "kind"), [("8.6.1", np.int32), ("10.4.0", np.int64)])
def test_whole_numbers_have_64_bits_since_tensorrt_10(
    tmp_path: Path, onnx: str, version: str, kind: type[np.generic]
) -> None:
    plan, raw, exported = tmp_path / "model.plan", tmp_path / "k.raw", tmp_path / "out.json"
    np.array([[1, -2, 3]], kind).tofile(raw)
    trtexec = programs(tmp_path, tensorrt=version).trtexec
    run(trtexec, onnx, f"--saveEngine={plan}", "--skipInference", *SHAPES)
    load = [f"--loadEngine={plan}", "--shapes=x:1x3,k:1x3", f"--loadInputs=k:{raw}", f"--exportOutput={exported}"]
    assert run(trtexec, *load)[0] == 0
    y, m = json.loads(exported.read_text())
    assert (y["name"], y["dimensions"], y["values"]) == ("y", "1x3", [0, 0, 0])
    assert (m["name"], m["values"]) == ("m", [2, -4, 6])


def test_nvidia_smi_names_the_gpu_and_refuses_other_fields(tmp_path: Path) -> None:
    program = programs(tmp_path).nvidia_smi
    query = "--query-gpu=name,compute_cap,driver_version"
    assert run(program, query, "--format=csv,noheader") == (
        0,
        "NVIDIA A10G (nvidia-smi-stand-in), 8.6, 0.0.stand-in\n",
    )
    status, log = run(program, "--query-gpu=temperature", "--format=csv,noheader")
    assert status == 2
    assert "temperature" in log


NAMES = st.text(st.characters(codec="ascii", categories=["L", "N"], include_characters=":,_/."), min_size=1)


@settings(max_examples=30)
@given(st.dictionaries(NAMES, st.lists(st.integers(0, 9999), min_size=1, max_size=8), min_size=1))
def test_shapes_are_read_back_whatever_the_inputs_are_called(shapes: dict[str, list[int]]) -> None:
    text = ",".join(f"'{name}':{'x'.join(map(str, shape))}" for name, shape in shapes.items())
    parsed = Arguments.parse([f"--shapes={text}"], known=frozenset({"--shapes"}))
    assert parsed.shapes("--shapes") == {name: tuple(shape) for name, shape in shapes.items()}


STEPS = ["--shapes=x:1x3", "--skipInference"]


@cases("tensorrt, options, is_quantised, cache, message")
def test_int8_is_built_and_refused_as_by_trtexec_of_the_version(  # noqa: PLR0917
    tmp_path: Path, tensorrt: str, options: list[str], is_quantised: bool, cache: str | None, message: str
) -> None:
    (tmp_path / "model.onnx").write_bytes(quantised_graph() if is_quantised else doubling_graph())
    if cache is not None:
        (tmp_path / "c.cache").write_text(cache)
        options = [*options, f"--calib={tmp_path / 'c.cache'}"]
    status, log = run(
        programs(tmp_path, tensorrt=tensorrt).trtexec, f"--onnx={tmp_path / 'model.onnx'}", *options, *STEPS
    )
    assert status == bool(message), log
    assert message in log
    assert "made up" not in log


def test_int8_without_any_ranges_is_built_with_a_warning_as_by_trtexec(tmp_path: Path, onnx: str) -> None:
    status, log = run(programs(tmp_path).trtexec, onnx, "--int8", *SHAPES, "--skipInference")
    assert status == 0
    assert "[W] --int8 without --calib and without Q/DQ nodes" in log
