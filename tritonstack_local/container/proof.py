"""Proof of an archive: a sample request to its staged repository in the real local Triton, without a GPU."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from tritonstack.archives.programs import Report
from tritonstack.client.body import Body, decode, encode
from tritonstack.disk import link_or_copy
from tritonstack.errors import Problem, WorkFailedError, refuse
from tritonstack.local_aws import ContainerResponse, LackingModuleError
from tritonstack.paths import setup_command
from tritonstack_local.container import ContainerSettings, TritonContainer, TritonFiles, prepare_model_data
from tritonstack_local.container.repository import ENVIRONMENT_NOTE, PARAMETER
from tritonstack_local.container.serve import SINGLE_MODEL_REPOSITORY

Arrays = Mapping[str, "np.ndarray[Any, Any]"]

START_SECONDS = 600.0
ANSWER_SECONDS = 600.0
_STAND_IN = "tritonstack stand-in: "
_NOT_LOADED = re.compile(r"load failed for model '(?:[^']*::)?([^']*)': (.*?);?\s*$", re.DOTALL)
"""The end of a log of a server that did not start: its message on one model, with the calls in its code."""
_FRAME = re.compile(r"^(\s+\S+\.py)\((\d+)\): ", re.MULTILINE)
"""A call in a Python model's code, as the Python backend lists those that led to an exception."""
_NO_MODULE = re.compile(r"No module named '([\w.]+)'")
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
    work: Path,
    report: Report,
) -> ContainerResponse:
    """Load a repository as a single-model container does, ``loads`` in addition to the model, and send one request.

    ``environments``: file of the repository → the execution environment that takes its place, which is for the local
    server's Python.

    Raises InputError: the environments of the local Triton are not made on this machine. Raises LackingModuleError: the
    stand-in for an execution environment lacks a module that a Python model imports. Raises WorkFailedError: the
    repository does not load, or the request is refused; with the server's own words, and files by their paths in
    ``repository``.
    """
    _require({need for need in needs if need != PARAMETER})
    environment = {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": model, "SAGEMAKER_TRITON_LOG_VERBOSE": "false"}
    if loads:
        environment["SAGEMAKER_TRITON_ADDITIONAL_ARGS"] = " ".join(f"--load-model={name}" for name in loads)
    data = work / "model"
    shutil.copytree(repository, data, copy_function=link_or_copy)
    for name, packed in environments.items():
        (data / name).unlink(missing_ok=True)  # a link to the repository's, which stays
        link_or_copy(packed, data / name)
    changes = prepare_model_data(data)
    stood_in_for = [change for change in changes if ENVIRONMENT_NOTE in change]
    if stood_in_for:
        _require({PARAMETER})
    settings = ContainerSettings(environment=environment, multi_model=False, model_data=data)
    body = encode(request, payload_format="binary")
    report(f"proof of {model}: starting the local Triton")
    with TritonContainer.start(settings, folder=work / "container") as container:
        try:
            container.wait_ready(START_SECONDS)
            report(f"proof of {model}: asking it")
            outputs = _ask(container, body, model)
        except WorkFailedError as error:
            text = str(error)
            for folder in (SINGLE_MODEL_REPOSITORY, f"{data.resolve()}/"):  # the second without a namespace
                text = text.replace(folder, f"{repository.resolve()}/")
            text = _FRAME.sub(r"\1:\2: ", text)
            reason = _NOT_LOADED.search(text)
            failure = f"proof of {model} failed: Triton does not load {reason[1]}: {reason[2]}" if reason else text
            if stood_in_for and (lacking := _NO_MODULE.search(text)):
                raise LackingModuleError(f"{stood_in_for[0].partition(': ')[2]}, which has no {lacking[1]}") from error
            raise WorkFailedError(failure) from error
        version = container.server_version or "unknown"
        peak = _peak_of_tree(container.pid)
        lines = container.log_path.read_text(errors="replace").splitlines()
    stood_in = sorted({line.partition(_STAND_IN)[2].strip() for line in lines if _STAND_IN in line})
    said = [line.partition(" (model ")[0] for line in stood_in]  # without the model that a line names at its end
    unsaid = [change for change in changes if not any(line in change for line in said)]
    return ContainerResponse(
        outputs=outputs, stand_ins=(*stood_in, *unsaid), tools={"tritonserver": version}, peak_bytes=peak
    )


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


def _ask(container: TritonContainer, body: Body, model: str) -> dict[str, np.ndarray[Any, Any]]:
    connection = http.client.HTTPConnection("container")
    connection.sock = container.connect()
    connection.sock.settimeout(ANSWER_SECONDS)
    try:
        connection.request("POST", "/invocations", body.content, {"Content-Type": body.content_type})
        response = connection.getresponse()
        content = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise WorkFailedError(f"proof of {model}: no response ({error!r})\n{container.log_tail()}") from error
    finally:
        connection.close()
    if response.status != http.client.OK:
        text = content.decode(errors="replace")
        with contextlib.suppress(ValueError, TypeError, KeyError):
            text = json.loads(text)["error"].strip()
        raise WorkFailedError(f"proof of {model} failed: Triton responded {response.status}: {text}")
    return decode(content, response.getheader("Content-Type") or "").outputs
