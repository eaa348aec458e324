"""A real server: how it starts, who reaches it, and that nothing of it stays."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.tritonstack_local.container.conftest import write_files
from tritonstack.errors import WorkFailedError
from tritonstack_local.container import ContainerFailedError, ContainerSettings, TritonContainer, TritonFiles
from tritonstack_local.container.container import free_port
from tritonstack_local.container.isolation import Enclosure

SETTINGS = ContainerSettings(environment={"SAGEMAKER_TRITON_LOG_VERBOSE": "false"}, multi_model=True, release="24.09")
Files = dict[str, str | Path]
GONE_SECONDS = 20
BODY = {"inputs": [{"name": "raw", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}]}


def still_there(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Which of the processes do not end."""
    return psutil.wait_procs(processes, timeout=GONE_SECONDS)[1]


def family(container: TritonContainer) -> list[psutil.Process]:
    """The server and its Python backend's processes."""
    server = psutil.Process(container.pid)
    assert server.name() == "tritonserver"
    return [server, *server.children(recursive=True)]


def regions(container: TritonContainer) -> list[Path]:
    """The container's shared memory regions on this machine."""
    return list(Path("/dev/shm").glob(f"{container._enclosure.shm_prefix}*"))


def test_the_shared_container_serves_from_namespaces_of_its_own(sagemaker: Any) -> None:
    container: TritonContainer = sagemaker.container
    assert (container.ping(), container.exited.done(), container.server_version) == (200, False, "2.51.0")
    with container.connect() as one:
        assert (one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) > 0, one.gettimeout()) == (True, None)
    with pytest.raises(ContainerFailedError, match=r"/ping did not return 200 within 0 s"):
        container.wait_ready(0)
    if container.isolation != "namespace":
        pytest.skip(f"user namespaces are not permitted here: {container.isolation}")
    ours, theirs = (Path(f"/proc/{pid}/ns/net").readlink() for pid in ("self", container.pid))
    assert ours != theirs


def test_a_server_is_off_loopback_without_its_callers_variables_and_runs_below_any_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_sagemaker: Any, python_model: Callable[..., Files]
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a secret")
    port = free_port()
    settings = replace(SETTINGS, environment={**SETTINGS.environment, "SAGEMAKER_BIND_TO_PORT": str(port)})
    with TritonContainer.start(settings, folder=tmp_path / "a folder") as container:
        container.wait_ready(60)
        variables = psutil.Process(container.pid).environ()
        assert "AWS_SECRET_ACCESS_KEY" not in variables
        assert variables["SAGEMAKER_MULTI_MODEL"] == "true"
        if container.isolation != "namespace":
            pytest.skip(f"user namespaces are not permitted here: {container.isolation}")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=5)
        sagemaker = make_sagemaker(container)
        assert sagemaker.load("spaced", python_model()).status == 200
        assert sagemaker.invoke("spaced", raw=("FP32", [1, 3], [1, 2, 3])).outputs == {"x": [2.0, 3.0, 4.0]}


def test_the_next_start_removes_the_shared_memory_of_a_container_whose_launcher_was_killed(
    tmp_path: Path, *, make_sagemaker: Any, python_model: Callable[..., Files]
) -> None:
    container = TritonContainer.start(replace(SETTINGS, namespace=False), folder=tmp_path)
    container.wait_ready(60)
    assert make_sagemaker(container).load("plus", python_model()).status == 200
    processes, launcher = family(container), container._enclosure._launcher
    assert regions(container)
    launcher.send_signal(signal.SIGSTOP)  # so that neither it nor the backend's processes can remove anything
    for process in reversed(processes):
        process.kill()
    launcher.kill()
    assert container.exited.result(GONE_SECONDS) == 128 + signal.SIGKILL
    assert still_there(processes) == []
    # Its own processes have ended: the next process that starts on this machine removes them.
    with (tmp_path / "log").open("wb") as log:
        Enclosure.open(mounts={}, log=log, namespace=False).close()
    assert regions(container) == []


@pytest.mark.parametrize("namespace", [True, False])
def test_a_server_killed_by_its_process_id_leaves_nothing_and_an_open_port_is_an_error(
    namespace: bool,
    tmp_path: Path,
    *,
    make_sagemaker: Any,
    python_model: Callable[..., Files],
    caplog: pytest.LogCaptureFixture,
) -> None:
    container = TritonContainer.start(replace(SETTINGS, namespace=namespace), folder=tmp_path)
    container.wait_ready(60)
    if not namespace:
        assert container.isolation == "open port: asked for"
        assert "port is open to this machine's network" in caplog.text
        assert "WARNING: the SageMaker port is open" in container.log_path.read_text()
    assert make_sagemaker(container).load("plus", python_model()).status == 200
    processes = family(container)
    assert len(processes) == 2
    assert bool(regions(container)) == (not namespace), "in namespaces they are not this machine's"
    os.kill(container.pid, signal.SIGKILL)
    assert container.exited.result(GONE_SECONDS) == 128 + signal.SIGKILL
    assert container.exited.done()
    assert still_there(processes) == []
    assert regions(container) == []
    with pytest.raises(ConnectionError):
        container.connect()
    assert container.stop() == 128 + signal.SIGKILL


PARENT = """
import sys, threading, time
from pathlib import Path
from tritonstack_local.container import ContainerSettings, TritonContainer
settings = ContainerSettings(environment={}, multi_model=True, namespace=sys.argv[2] == "namespace")
def start():
    container = TritonContainer.start(settings, folder=Path(sys.argv[1]))
    container.wait_ready(60)
    print(container.pid, container._enclosure._launcher.pid, flush=True)
thread = threading.Thread(target=start)
thread.start()
thread.join()
threading.Event().wait()
"""


@pytest.mark.parametrize(("victim", "mode"), [("caller", "namespace"), ("launcher", "open")])
def test_a_server_does_not_outlive_its_caller_or_its_launcher(victim: str, mode: str, tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path), mode], stdout=subprocess.PIPE) as caller:
        assert caller.stdout
        # The thread that started the container has ended by now, and the server has not.
        server, launcher = map(psutil.Process, map(int, caller.stdout.readline().split()))
        assert server.is_running()
        (launcher if victim == "launcher" else caller).kill()
        assert still_there([server, launcher]) == []
        caller.kill()


def test_a_server_that_ends_while_it_is_waited_for_is_an_error_with_its_last_lines(tmp_path: Path) -> None:
    bad = {"SAGEMAKER_TRITON_ADDITIONAL_ARGS": "--no-such-flag=1"}
    container = TritonContainer.start(replace(SETTINGS, environment=bad), folder=tmp_path)
    with pytest.raises(ContainerFailedError, match=r"ended with exit code 1(.|\n)*no-such-flag"):
        container.wait_ready(60)
    assert container.stop() == 1


def test_a_single_model_responds_to_invocations_and_interrupted_work_kills_the_server(
    tmp_path: Path, make_sagemaker: Any, python_model: Callable[..., Files]
) -> None:
    files = {path: str(text).replace("KIND_GPU", "KIND_CPU") for path, text in python_model().items()}
    write_files(tmp_path / "data", files)
    settings = replace(SETTINGS, multi_model=False, model_data=tmp_path / "data")
    container = TritonContainer.start(settings, folder=tmp_path / "container")
    with pytest.raises(KeyboardInterrupt), container:
        container.wait_ready(60)
        assert make_sagemaker(container).call("POST", "/invocations", BODY).outputs == {"x": [2.0, 3.0, 4.0]}
        assert any("plus-one, is served" in note for note in container.notes)
        raise KeyboardInterrupt
    assert container.exited.result() == 128 + signal.SIGKILL, "told to end, it ends with 0 after seconds"


def test_a_missing_server_is_reported_with_what_to_install(tmp_path: Path) -> None:
    files = replace(TritonFiles.of_repository(), triton=tmp_path)
    with pytest.raises(WorkFailedError, match=r"setup\.py triton backends"):
        TritonContainer.start(SETTINGS, folder=tmp_path / "container", files=files)


def test_numpy_2_is_refused_since_the_servers_python_backend_reads_arrays_wrongly_with_it(tmp_path: Path) -> None:
    whole = TritonFiles.of_repository()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    (tmp_path / "pyvenv.cfg").write_text((whole.python / "pyvenv.cfg").read_text())
    site = tmp_path / "lib" / f"python{whole.python_version}" / "site-packages"
    (site / "numpy-1.26.4.dist-info").mkdir(parents=True)
    replace(whole, python=tmp_path).check()
    (site / "numpy-1.26.4.dist-info").rename(site / "numpy-2.4.6.dist-info")
    with pytest.raises(WorkFailedError, match=r"NumPy 2\.4\.6 .* Pin numpy==1\.26\.4 in requirements/backends\.in"):
        replace(whole, python=tmp_path).check()


def test_a_missing_shared_library_is_reported_with_the_package_that_brings_it(tmp_path: Path) -> None:
    whole = TritonFiles.of_repository()
    stub = tmp_path / "pytriton" / "tritonserver" / "python_backend_stubs" / whole.python_version / whole.stub.name
    stub.parent.mkdir(parents=True)
    library = f"libpython{whole.python_version}.so.1.0"
    stub.write_text(
        f"#!/bin/sh\necho 'stub: error while loading shared libraries: {library}: cannot open' >&2\nexit 127\n"
    )
    stub.chmod(0o755)
    (tmp_path / "pytriton" / "tritonserver" / "bin").mkdir()
    (tmp_path / "pytriton" / "tritonserver" / "bin" / "tritonserver").touch()
    with pytest.raises(WorkFailedError, match=rf"{library}(.|\n)*apt-get install libpython{whole.python_version}$"):
        replace(whole, triton=tmp_path).check()
