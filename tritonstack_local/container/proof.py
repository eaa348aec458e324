"""Proof of an archive: a sample request to its staged repository in the real local Triton, without a GPU."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import select
import shutil
import socket
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from textwrap import indent
from typing import Any

import numpy as np
import psutil

from tritonstack.archives.programs import Report
from tritonstack.client.body import Body, decode, encode
from tritonstack.client.streaming import data_of_events, generate_body, joined_outputs
from tritonstack.disk import link_or_copy
from tritonstack.errors import Problem, WorkFailedError, refuse
from tritonstack.local_aws import ContainerResponse, LackingModuleError
from tritonstack.models.python_failure import (
    ProgramFailure,
    Shown,
    dumped_calls,
    fatal_error,
    logged_failures,
    program_failure,
    server_message,
)
from tritonstack.paths import setup_command
from tritonstack_local.container import (
    ContainerFailedError,
    ContainerSettings,
    TritonContainer,
    TritonFiles,
    prepare_model_data,
)
from tritonstack_local.container.python_processes import (
    computed_seconds,
    ended_processes,
    killed_for_memory,
    write_calls,
)
from tritonstack_local.container.repository import ENVIRONMENT_NOTE, PARAMETER
from tritonstack_local.container.serve import SINGLE_MODEL_REPOSITORY

Arrays = Mapping[str, "np.ndarray[Any, Any]"]

START_SECONDS = 600.0
ANSWER_SECONDS = 600.0
IDLE_SECONDS = 60.0
"""So long a program may take for a response without computing: as long as SageMaker waits for any."""
_IDLE_SHARE = 0.05
"""Of one core: a process that uses less waits."""
LOCKED_SECONDS = 60.0
"""So long nothing may be computed while models are loaded, unless a program waits itself."""
_LOADING_SHARE = 0.02
"""The same while models are loaded: Triton, which is asked whether it is ready, takes part of it."""
_LOOK_SECONDS = 5.0
ENDED = "killed (SIGKILL), or ended by itself (os._exit): a crash in compiled code would have left its calls"
BUSY = (
    "this machine has more to run than it has processors ({load}), and Triton takes a Python model's process for dead "
    "that gets none for a second. Try again with less running beside it"
)
"""Source: python_backend r24.10 src/stub_launcher.cc, ReceiveMessageFromStub: stub_health has to be set within 1 s."""
LOCKED = "Triton took the process of a Python model for dead while it was loaded, and the two wait for each other"
CRASHED = "the process of a Python model crashed outside of Python, in Triton's own code or a thread of a library"
NOT_RUN = (
    "no code of the program runs: execute has returned something else than a list of responses, such as None, and no "
    "response sender has sent one"
)
_STAND_IN = "tritonstack stand-in: "
_NO_MODULE = re.compile(r"No module named '([\w.]+)'")
_NEEDS_GPU = re.compile(
    r"lib(?:cuda|cudart|cublas\w*|cudnn\w*|cufft|curand|cusolver|cusparse\w*|nccl|nvrtc|nvinfer\w*|nvJitLink)"
    r"\.so[.\d]*: cannot open shared object file|Torch not compiled with CUDA enabled|Found no NVIDIA driver on your "
    r"system|no CUDA-capable device is detected|CUDA driver version is insufficient"
)
"""What the loader, PyTorch and CUDA say where there is no GPU, and no library of one."""
NEEDED_ENVIRONMENTS = {"pytorch": "torch", "dali": "dali", "tensorflow": "tensorflow", PARAMETER: "torch"}
"""Backend or parameter → the environment of its stand-in, in addition to those of every container."""


def answer_in_container(
    repository: Path,
    *,
    model: str,
    needs: Collection[str],
    request: Arrays,
    environments: Mapping[str, Path],
    loads: tuple[str, ...],
    streamed: Mapping[str, str] | None,
    work: Path,
    report: Report,
) -> ContainerResponse:
    """Load a repository as a single-model container does, ``loads`` in addition to the model, and send one request.

    ``environments``: file of the repository → the execution environment that takes its place, which is for the local
    server's Python. ``streamed``: of a decoupled model output → datatype; the container generates then, and the values
    of all its responses are joined.

    Raises InputError: the environments of the local Triton are not made on this machine. Raises LackingModuleError: the
    stand-in for an execution environment lacks a module that a Python model imports. Raises WorkFailedError: the
    repository does not load, or the request is refused; with the server's own message, and files by their paths in
    ``repository``.
    """
    _require({need for need in needs if need != PARAMETER})
    environment = {
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": model,
        "SAGEMAKER_TRITON_LOG_VERBOSE": "false",
        "SAGEMAKER_TRITON_INFERENCE_TYPE": "infer" if streamed is None else "generate_stream",
        "SAGEMAKER_TRITON_ADDITIONAL_ARGS": " ".join(f"--load-model={name}" for name in loads),
    }
    data = work / "model"
    shutil.copytree(repository, data, copy_function=link_or_copy)
    for name, packed in environments.items():
        (data / name).unlink(missing_ok=True)  # a link to the repository's, which stays
        link_or_copy(packed, data / name)
    changes = prepare_model_data(data)
    stood_in_for = [change for change in changes if ENVIRONMENT_NOTE in change]
    if stood_in_for and not (TritonFiles.of_repository().torch / "bin" / "python").exists():
        reason = f"{stood_in_for[0].partition(': ')[2]}, which is not made here: {setup_command('torch')}"
        raise LackingModuleError(reason)
    settings = ContainerSettings(environment=environment, multi_model=False, model_data=data)
    body = encode(request, payload_format="binary") if streamed is None else generate_body(request, {})
    report(f"proof of {model}: starting the local Triton")

    def shown(text: str) -> str:
        for folder in (SINGLE_MODEL_REPOSITORY, f"{data.resolve()}/"):  # the second without a namespace
            text = text.replace(folder, f"{repository.resolve()}/")
        return text

    for attempt in ("container", "container-again"):
        killed = killed_for_memory()
        with TritonContainer.start(settings, folder=work / attempt) as container:
            try:
                _await_ready(container)
                report(f"proof of {model}: asking it")
                content, content_type = _ask(container, body)
                outputs = decode(content, content_type).outputs if streamed is None else _joined(content, streamed)
            except _ModelFailedError as error:
                # Once more where the model need not be at fault; one that is fails in the same way again.
                if attempt == "container" and (why := _why_again(error, container)):
                    report(f"proof of {model}: {why}: again")
                    container.stop(seconds=0)
                    continue
                reason = _reason(error, container, shown=shown, killed=killed)
                if stood_in_for and (lacking := _NO_MODULE.search(reason)):
                    stand_in = stood_in_for[0].partition(": ")[2]
                    raise LackingModuleError(f"{stand_in}, which has no {lacking[1]}") from error
                if needed := _NEEDS_GPU.search(error.failure.error if error.failure else ""):
                    lacking_gpu = f"its program needs a GPU, which this machine has not: {needed[0]}"
                    raise LackingModuleError(lacking_gpu) from error
                raise WorkFailedError(f"proof of {model} failed: {reason}") from error
            version = container.server_version or "unknown"
            peak = _peak_of_tree(container.pid)
            lines = container.log_path.read_text(errors="replace").splitlines()
        break
    for failure in logged_failures(container.log_end()):
        if failure.where == "in finalize":  # with a response all the same; on an endpoint it keeps what it holds
            text = shown(indent(failure.text(shown=shown, quoted=True), "  "))
            raise WorkFailedError(f"proof of {model} failed: it responded, and failed when it was unloaded:\n{text}")
    stood_in = sorted({line.partition(_STAND_IN)[2].strip() for line in lines if _STAND_IN in line})
    said = [line.partition(" (model ")[0] for line in stood_in]  # without the model that a line names at its end
    unsaid = [change for change in changes if not any(line in change for line in said)]
    return ContainerResponse(
        outputs=outputs, stand_ins=(*stood_in, *unsaid), tools={"tritonserver": version}, peak_bytes=peak
    )


def machine_load() -> str:
    """The machine's load where it has more to run than processors; empty else."""
    load, processors = os.getloadavg()[0], os.cpu_count() or 1
    return f"load {load:.1f} on {processors}" if load > processors else ""


def _why_again(error: _ModelFailedError, container: TritonContainer) -> str:
    """Why a second attempt may succeed; empty where the model is at fault, as far as is known.

    Triton takes a process that is silent for a second for dead. While a model is loaded it then frees the queues that
    the process goes on using, and waits for its end: both wait, or the process crashes in Triton's own code, so without
    a call of Python (segmentation fault, bus error), and the server after it.
    """
    if error.failure is not None and error.failure.error == LOCKED:
        return LOCKED
    crash = fatal_error(container.log_end())
    silent = not crash.calls if crash is not None else error.failure is not None and error.failure.ended
    load = machine_load()
    return f"no sign of life from its process, on a busy machine ({load})" if silent and load else ""


def _peak_of_tree(pid: int) -> int:
    """The sum of the largest resident sizes of a process and its descendants, in bytes (proc(5): VmHWM)."""
    server = psutil.Process(pid)
    lines: list[str] = []
    for process in (server, *server.children(recursive=True)):
        with contextlib.suppress(OSError):  # one that has ended
            lines += Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def _require(needs: Collection[str]) -> None:
    """Raise unless the local Triton can run here with these."""
    files = TritonFiles.of_repository()
    problems: list[Problem] = []
    try:
        files.check()
    except WorkFailedError as error:
        problems.append(Problem(found=str(error), allowed="the local Triton, for the proof", advice=setup_command()))
    folders = {"torch": files.torch, "dali": files.dali, "tensorflow": files.tensorflow}
    for need in sorted(set(needs) & NEEDED_ENVIRONMENTS.keys()):
        name = NEEDED_ENVIRONMENTS[need]
        if not (folders[name] / "bin" / "python").exists():
            found = f"nothing, and the stand-in for {need} needs it"
            advice = setup_command(name)
            problems.append(Problem(file=str(folders[name]), found=found, allowed="an environment", advice=advice))
    refuse(problems)


class _ModelFailedError(Exception):
    """There is no response."""

    def __init__(self, what: str, message: str = "", *, failure: ProgramFailure | None = None) -> None:
        """``what`` happened; ``message``: of Triton; ``failure``: of the program, where no message states it."""
        super().__init__(what)
        self.what, self.message, self.failure = what, message, failure or program_failure(message)


def _await_ready(container: TritonContainer) -> None:
    """Wait until the models are loaded. A process that ended while its model is loaded, Triton waits for in vain."""
    deadline, ended = time.monotonic() + START_SECONDS, frozenset[int]()
    looked, computed = time.monotonic(), computed_seconds(container.pid)
    while True:
        try:
            container.wait_ready(_LOOK_SECONDS)
        except ContainerFailedError as error:
            if container.exited.done():
                found = container.not_loaded()
                what = f"Triton does not load {found[0]}" if found else str(error)
                raise _ModelFailedError(what, found[1] if found else "") from error
            before, ended = ended, ended_processes(container.pid)
            if before & ended:
                failure = ProgramFailure(error="the process of a Python model ended without an exception", ended=True)
                raise _ModelFailedError("no model was loaded", failure=failure) from error
            now, total = time.monotonic(), computed_seconds(container.pid)
            if now > deadline:
                what = f"no model was loaded within {START_SECONDS:g} s"
                raise _ModelFailedError(what, failure=_standing(container)) from error
            if total - computed > _LOADING_SHARE * (now - looked):
                looked, computed = now, total
            elif now - looked > LOCKED_SECONDS:
                if _runs_no_program(container):
                    raise _ModelFailedError("no model was loaded", failure=ProgramFailure(error=LOCKED)) from error
                looked = now
        else:
            return


def _runs_no_program(container: TritonContainer) -> bool:
    """Whether a Python model's process waits outside of Python, for Triton's messages, and none is in a program."""
    written = container.log_path.stat().st_size
    text = container.log_end(since=written) if write_calls(container.pid) else ""
    return "<no Python frame>" in text and not dumped_calls(text)


def _joined(content: bytes, streamed: Mapping[str, str]) -> dict[str, np.ndarray[Any, Any]]:
    """The outputs of a stream's events. Raises _ModelFailedError: one of them is an error."""
    events = [json.loads(data) for data in data_of_events([content])]
    failed = next((event["error"] for event in events if "model_name" not in event), None)
    if failed is not None:
        raise _ModelFailedError(f"event {len(events)} of its stream is an error", server_message(str(failed)))
    return joined_outputs(events, streamed)


def _ask(container: TritonContainer, body: Body) -> tuple[bytes, str]:
    """The response, and its content type. Raises _ModelFailedError."""
    connection = http.client.HTTPConnection("container")
    connection.sock = container.connect_single_model()
    connection.sock.settimeout(ANSWER_SECONDS)
    try:
        connection.request("POST", container.single_model_path, body.content, {"Content-Type": body.content_type})
        _await_response(container, connection.sock)
        response = connection.getresponse()
        content = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise _ModelFailedError(f"no response ({error!r})\n{container.log_tail()}") from error
    finally:
        connection.close()
    if response.status != http.client.OK:
        message = server_message(content.decode(errors="replace"))
        raise _ModelFailedError(f"Triton responded {response.status}", message)
    return content, response.getheader("Content-Type") or ""


def _await_response(container: TritonContainer, connection: socket.socket) -> None:
    """Wait for the first byte of a response, for :data:`ANSWER_SECONDS`, or until a model only waits itself."""
    began = looked = time.monotonic()
    computed = computed_seconds(container.pid)
    while not select.select([connection], [], [], _LOOK_SECONDS)[0]:
        now, total = time.monotonic(), computed_seconds(container.pid)
        if now - began > ANSWER_SECONDS:
            raise _ModelFailedError(f"no response within {ANSWER_SECONDS:g} s", failure=_standing(container))
        if total - computed > _IDLE_SHARE * (now - looked):
            looked, computed = now, total
        elif now - looked > IDLE_SECONDS:
            what = f"no response, and nothing was computed for {IDLE_SECONDS:g} s"
            raise _ModelFailedError(what, failure=_standing(container))


def _standing(container: TritonContainer) -> ProgramFailure:
    """The calls that a program is in, which Triton waits for."""
    written = container.log_path.stat().st_size
    calls = dumped_calls(container.log_end(since=written)) if write_calls(container.pid) else ()
    return ProgramFailure(error="(it is there still)" if calls else NOT_RUN, calls=calls)


def _reason(error: _ModelFailedError, container: TritonContainer, *, shown: Shown, killed: int) -> str:
    """What happened, with the traceback of a Python model's program, whose files' paths are as ``shown`` has them.

    ``killed``: processes that Linux had killed for lack of memory before.
    """
    failure, crash = error.failure, fatal_error(container.log_end())
    if failure is None and crash is not None and not crash.calls:
        load = machine_load()
        busy = f"; {BUSY.format(load=load)}" if load else ""
        return shown(f"{CRASHED}: {crash.error}{busy}\n{error.what}")
    if failure is None:
        return shown(f"{error.what}: {error.message}" if error.message else error.what)
    if failure.error == LOCKED:
        failure = replace(failure, error=f"{LOCKED}; try again with less running beside it")
    elif failure.ended and crash is not None:
        failure = crash
    elif failure.ended:
        for_memory = killed_for_memory() > killed
        why = "Linux killed a process for lack of memory meanwhile" if for_memory else ENDED
        if not for_memory and (load := machine_load()):
            why += f"; or {BUSY.format(load=load)}"
        failure = replace(failure, error=f"{failure.error}\n{why}")
    where = f", {failure.where}" if failure.where else ""
    return shown(f"{error.what}{where}:\n{indent(failure.text(shown=shown, quoted=True), '  ')}")
