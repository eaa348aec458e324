"""Proofs in the real local Triton, which needs neither GPU nor network."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.cases import cases
from tests.models.folders import CONFIG, MODEL, write
from tritonstack.archives.execution_environment import activate_script
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.local_aws import LackingModuleError
from tritonstack_local.container import TritonFiles, proof
from tritonstack_local.container.proof import answer_in_container
from tritonstack_local.container.python_processes import killed_for_memory
from tritonstack_local.container.repository import PARAMETER

X = np.array([[2.5]], np.float32)

installed = pytest.mark.skipif(
    not TritonFiles.of_repository().server.exists(), reason="the local Triton is not installed: make setup"
)


def repository(root: Path, model: str = MODEL) -> Path:
    """A staged repository with the model ``double``; its instances want a GPU."""
    folder = root / "repository"
    write(
        folder,
        {"double/config.pbtxt": f"{CONFIG}instance_group [ {{ kind: KIND_GPU }} ]\n", "double/1/model.py": model},
    )
    return folder


def prove(
    folder: Path,
    made: Path,
    *,
    model: str = "double",
    needs: Collection[str] = ("python",),
    loads: tuple[str, ...] = (),
    environments: Mapping[str, Path] | None = None,
    streamed: Mapping[str, str] | None = None,
    report: Callable[[str], None] = lambda _text: None,
    **request: np.ndarray,
) -> Any:
    """What the local Triton makes of a request."""
    return answer_in_container(
        made,
        model=model,
        needs=set(needs),
        request=request,
        environments=environments or {},
        loads=loads,
        streamed=streamed,
        work=folder / "work",
        report=report,
    )


@installed
def test_triton_serves_the_sample_and_changes_made_for_it_are_reported(tmp_path: Path) -> None:
    made = repository(tmp_path)
    proof = prove(tmp_path, made, x=X)
    assert proof.outputs["y"].tolist() == [[5.0]]
    assert proof.stand_ins == ("double/config.pbtxt: instances on the CPU, since there is no GPU",)
    assert proof.peak_bytes > 50 << 20  # the server and the process of its Python model
    assert proof.tools["tritonserver"].startswith("2.")
    assert "KIND_GPU" in (made / "double/config.pbtxt").read_text()


@installed
def test_a_model_that_does_not_load_is_refused_in_the_server_s_words(tmp_path: Path) -> None:
    made = repository(tmp_path, "raise ValueError('no weights')\n")
    with pytest.raises(WorkFailedError, match="no weights"):
        prove(tmp_path, made, x=X)


STREAMING = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for value in pb_utils.get_input_tensor_by_name(request, "x").as_numpy().ravel():
                error = pb_utils.TritonError("a negative number") if value < 0 else None
                tensors = [] if error else [pb_utils.Tensor("y", np.array([[value * 2]], np.float32))]
                sender.send(pb_utils.InferenceResponse(tensors, error=error))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


@installed
def test_a_decoupled_models_responses_are_joined_and_an_error_among_them_fails(
    tmp_path: Path,
) -> None:
    made = repository(tmp_path, STREAMING)
    config = made / "double/config.pbtxt"
    config.write_text(f"{config.read_text()}model_transaction_policy {{ decoupled: true }}\n")
    given = np.array([[2.5, 3.0]], np.float32)
    assert prove(tmp_path, made, streamed={"y": "FP32"}, x=given[:, :1]).outputs["y"].tolist() == [5.0]
    with pytest.raises(WorkFailedError, match="a negative number"):
        prove(tmp_path / "again", made, streamed={"y": "FP32"}, x=-given[:, :1])


FAILING = """\
import ctypes, os, signal, time
import triton_python_backend_utils as pb_utils
{top}
class TritonPythonModel:
    {method}
    def initialize(self, args):
        {initialize}
    def execute(self, requests):
        {execute}
"""
HELPER = "def weigh(n):\n    return 1 / n\n"


@installed
@cases("parts, text")
def test_a_program_that_fails_shows_its_own_traceback_or_what_is_known_of_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: dict[str, str], text: str
) -> None:
    monkeypatch.setattr(proof, "IDLE_SECONDS", 2.0)
    monkeypatch.setattr(proof, "_LOOK_SECONDS", 1.0)
    monkeypatch.setattr(proof, "machine_load", lambda: "")
    program = FAILING.format(**dict.fromkeys(("top", "method", "initialize", "execute"), "pass") | parts)
    made = repository(tmp_path, program)
    write(made, {"double/1/helper.py": HELPER, "double/1/broken.py": "x = (1,\n"})
    with pytest.raises(WorkFailedError) as caught:
        prove(tmp_path, made, x=X)
    said = re.sub(r"python3\.\d+/ctypes/__init__.py\", line \d+", "ctypes", str(caught.value).replace(f"{made}/", ""))
    assert said == f"proof of double failed: {text}".rstrip("\n")


STOPPING = """\
import os, signal, subprocess
import triton_python_backend_utils as pb_utils

def stop_once():
    marker = os.path.join(os.path.dirname(__file__), "stopped")
    if not os.path.exists(marker):
        open(marker, "w").close()
        subprocess.Popen(["sh", "-c", f"sleep 4; kill -CONT {{os.getpid()}}"])
        os.kill(os.getpid(), signal.SIGSTOP)

class TritonPythonModel:
    def initialize(self, args):
        {initialize}
    def execute(self, requests):
        {execute}
        x = [pb_utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor("y", 2 * item)]) for item in x]
"""
"""A program whose process stands still for seconds, once, as one that gets no processor does."""


@installed
@pytest.mark.parametrize("method", ["initialize", "execute"])
def test_a_process_that_gets_no_processor_for_a_second_is_tried_again_on_a_busy_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    made = repository(tmp_path, STOPPING.format(**{"initialize": "pass", "execute": "pass"} | {method: "stop_once()"}))
    monkeypatch.setattr(proof, "machine_load", lambda: "load 9.0 on 2")
    monkeypatch.setattr(proof, "LOCKED_SECONDS", 10.0)
    reports: list[str] = []
    answered = prove(tmp_path, made, x=X, report=reports.append)
    assert answered.outputs["y"].tolist() == [[5.0]]
    [again] = [each for each in reports if each.endswith(": again")]
    silent = "no sign of life from its process, on a busy machine (load 9.0 on 2)"
    assert again in [f"proof of double: {why}: again" for why in (silent, proof.LOCKED)]


BUS_ERROR = """\
Fatal Python error: Bus error

Current thread 0x00007f9678fce000 (most recent call first):
  <no Python frame>
terminate called after throwing an instance of 'boost::interprocess::lock_exception'
"""
"""The end of a server's log, as four servers left it on a machine with load 14 to 20."""
IN_PROGRAM = BUS_ERROR.replace("<no Python frame>", 'File "/opt/ml/model/double/1/model.py", line 3 in execute')
SILENT = "Stub process 'double_0_0' is not healthy."


@pytest.mark.parametrize(
    ("log", "message", "busy", "again", "said"),
    [
        (
            BUS_ERROR,
            "",
            True,
            True,
            "crashed outside of Python, .*: Fatal Python error: Bus error; this machine has more",
        ),
        (
            BUS_ERROR,
            "",
            False,
            False,
            "crashed outside of Python, .*: Fatal Python error: Bus error\nthe container ended",
        ),
        (IN_PROGRAM, SILENT, True, False, "line 3, in execute"),
        ("", SILENT, True, True, "; or this machine has more to run than it has processors"),
        ("", SILENT, False, False, "ended by itself"),
        ("", "no such file", True, False, "no such file"),
    ],
)
def test_a_failure_that_a_busy_machine_explains_is_tried_again_there_alone(
    monkeypatch: pytest.MonkeyPatch, *, log: str, message: str, busy: bool, again: bool, said: str
) -> None:
    monkeypatch.setattr(proof, "machine_load", lambda: "load 9.0 on 2" if busy else "")
    container: Any = SimpleNamespace(log_end=lambda: log)
    error = proof._ModelFailedError("the container ended with exit code 139", message)
    assert bool(proof._why_again(error, container)) is again
    text = proof._reason(error, container, shown=lambda file: file, killed=killed_for_memory())
    assert re.search(said, text), text


@installed
def test_a_second_failure_of_that_kind_says_what_triton_does_on_a_busy_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proof, "machine_load", lambda: "load 9.0 on 2")
    program = FAILING.format(top="", method="pass", initialize="pass", execute="os._exit(3)")
    with pytest.raises(
        WorkFailedError, match=r"processors \(load 9\.0 on 2\), and Triton takes a Python model's process"
    ):
        prove(tmp_path, repository(tmp_path, program), x=X)


@installed
@pytest.mark.parametrize(
    "failure",
    [
        "ImportError('libcudart.so.12: cannot open shared object file: No such file or directory')",
        "AssertionError('Torch not compiled with CUDA enabled')",
    ],
)
def test_a_program_that_needs_a_gpu_is_none_that_fails(tmp_path: Path, failure: str) -> None:
    with pytest.raises(LackingModuleError, match="its program needs a GPU, which this machine has not"):
        prove(tmp_path, repository(tmp_path, f"raise {failure}\n"), x=X)


@installed
def test_a_program_that_fails_at_its_end_is_refused_with_its_traceback(tmp_path: Path) -> None:
    made = repository(tmp_path, f"{MODEL}    def finalize(self):\n        self.absent.close()\n")
    with pytest.raises(WorkFailedError, match=r"(?s)unloaded:.*model.py\", line 8, in finalize\n +self.absent.close()"):
        prove(tmp_path, made, x=X)


@installed
def test_a_refused_request_is_reported_in_the_server_s_words(tmp_path: Path) -> None:
    with pytest.raises(WorkFailedError, match=r"Triton responded 400: .*unexpected"):
        prove(tmp_path, repository(tmp_path), z=X)


ENVIRONMENT = """\
parameters { key: "EXECUTION_ENV_PATH" value { string_value: "$$TRITON_MODEL_DIRECTORY/env.tar.gz" } }
"""


def packed(file: Path, python: str, module: str) -> Path:
    """An execution environment of a Python: one module, and the packages of the local server's own."""
    made = file.with_suffix("")
    site, numpy = f"lib/python{python}/site-packages", TritonFiles.of_repository().python / f"lib/python{python}"
    write(
        made,
        {
            f"{site}/{module}.py": "TEN = 10\n",
            f"{site}/numpy.pth": f"{numpy / 'site-packages'}\n",
            "bin/activate": activate_script(python),
        },
    )
    with tarfile.open(file, "w:gz") as archive:
        archive.add(made, ".")
    return file


@installed
def test_another_environment_takes_the_place_of_one_for_another_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = TritonFiles.of_repository()
    monkeypatch.setattr(TritonFiles, "of_repository", lambda: replace(files, torch=files.python))
    made = repository(tmp_path, f"import ten\n{MODEL.replace('2 * item', 'ten.TEN * item')}")
    write(made, {"double/config.pbtxt": f"{CONFIG}{ENVIRONMENT}"})
    packed(made / "double/env.tar.gz", "3.8", "ten")
    with pytest.raises(LackingModuleError, match=r"^execution environment env.tar.gz: .* its Python 3.8, .* no ten$"):
        prove(tmp_path / "first", made, needs=("python", PARAMETER), x=X)
    local = packed(tmp_path / "local.tar.gz", files.python_version, "ten")
    proof = prove(tmp_path / "second", made, environments={"double/env.tar.gz": local}, x=X)
    assert proof.outputs["y"].tolist() == [[25.0]]


PIPELINE = """\
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    {initialize}
    def execute(self, requests):
        return [self.answer(pb_utils.get_input_tensor_by_name(request, "x")) for request in requests]

    def answer(self, x):
        request = pb_utils.InferenceRequest(model_name="double", requested_output_names=["y"], inputs=[x])
        response = request.exec()
        if response.has_error():
            raise pb_utils.TritonModelException(response.error().message())
        return pb_utils.InferenceResponse(output_tensors=response.output_tensors())
"""
LOADING = 'def initialize(self, args):\n        pb_utils.load_model("double")\n'


def calling(root: Path, *, initialize: str = "") -> Path:
    """A staged repository with ``pipeline``, whose program calls ``double``."""
    made = repository(root)
    write(
        made,
        {
            "pipeline/config.pbtxt": CONFIG.replace('"double"', '"pipeline"'),
            "pipeline/1/model.py": PIPELINE.format(initialize=initialize),
        },
    )
    return made


@installed
@pytest.mark.long
def test_models_that_a_program_calls_are_loaded_with_it_and_by_no_program_at_the_start(
    tmp_path: Path,
) -> None:
    proof = prove(tmp_path, calling(tmp_path), model="pipeline", loads=("double",), x=X)
    assert proof.outputs["y"].tolist() == [[5.0]]
    with pytest.raises(WorkFailedError, match="double"):
        prove(tmp_path / "without", calling(tmp_path / "without"), model="pipeline", x=X)
    with pytest.raises(WorkFailedError, match="not ready"):
        prove(tmp_path / "start", calling(tmp_path / "start", initialize=LOADING), model="pipeline", x=X)


def test_an_environment_that_is_not_made_is_named_with_what_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("triton", "python", "torch", "dali", "tensorflow")
    monkeypatch.setattr(TritonFiles, "of_repository", lambda: TritonFiles(**dict.fromkeys(names, tmp_path)))
    with pytest.raises(InputError) as caught:
        prove(tmp_path, repository(tmp_path), needs=("python", "pytorch", "dali", "tensorflow"), x=X)
    advice = [problem.advice for problem in caught.value.problems]
    assert advice == ["make setup", *(f"python3 scripts/setup.py {name}" for name in ("dali", "torch", "tensorflow"))]
