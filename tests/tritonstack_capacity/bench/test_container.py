"""The container of a local endpoint: which one serves, what it is asked, and its metrics over a socket of its own."""

from __future__ import annotations

import os
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from tests.tritonstack_capacity.bench.world import subject
from tritonstack.client.body import Body
from tritonstack.errors import WorkFailedError
from tritonstack_capacity.bench.container import LocalContainer, local_container, name_hash_of, serving_fleet

BODY = Body(content=b"{}", content_type="application/json")


def fleet(pid: int | None, *, serving: bool = True, share: float = 1.0) -> dict[str, Any]:
    models = [{"target_model": "bert.0123456789abcdef.tar.gz", "hash": "f" * 32}]
    told = {"isolation": "open port", "server_version": "2.51.0", "models": models}
    return {"pid": pid, "serving": serving, "share": share, **told}


def status(*fleets: dict[str, Any]) -> dict[str, Any]:
    return {
        "endpoints": [{"name": "local-other", "fleets": [fleet(1)]}, {"name": "local-bert", "fleets": list(fleets)}]
    }


def test_the_fleet_with_most_of_the_traffic_is_the_one() -> None:
    fleets = (fleet(2, share=0.1), fleet(3, share=0.9), fleet(4, serving=False, share=1.0), fleet(None))

    assert serving_fleet(status(*fleets), "local-bert")["pid"] == 3


@pytest.mark.parametrize("fleets", [(), (fleet(4, serving=False),), (fleet(None),)])
def test_where_none_serves_it_is_told(fleets: tuple[dict[str, Any], ...]) -> None:
    with pytest.raises(WorkFailedError, match="no container serves endpoint local-bert"):
        serving_fleet(status(*fleets), "local-bert")


def test_an_archive_has_the_name_that_the_container_gave_it() -> None:
    assert name_hash_of(fleet(1), "bert.0123456789abcdef.tar.gz") == "f" * 32
    with pytest.raises(WorkFailedError, match="has not loaded"):
        name_hash_of(fleet(1), "bert.ffffffffffffffff.tar.gz")


def test_ports_are_the_servers_own_unless_its_command_says_others() -> None:
    with local_container(status(fleet(os.getpid())), "local-bert") as found:
        assert (found.port, found.metrics_port, found.enter, found.server_version) == (8080, 8002, (), "2.51.0")


@pytest.mark.parametrize(
    ("name_hash", "path"), [("f" * 32, f"/models/{'f' * 32}/invoke"), (None, "/invocations")], ids=["multi", "single"]
)
def test_it_is_asked_as_sagemaker_asks(name_hash: str | None, path: str) -> None:
    with local_container(status(fleet(os.getpid())), "local-bert") as found:
        request = found.request(subject().target, BODY, name_hash=name_hash)

    assert request.url == f"http://127.0.0.1:8080{path}"
    assert request.headers["X-Amzn-SageMaker-Target-Model"] == "bert.0123456789abcdef.tar.gz"
    assert request.body == b"{}"


class Metrics(BaseHTTPRequestHandler):
    """Answers with the path."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.path.encode())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


def container(port: int) -> LocalContainer:
    return LocalContainer(
        open_socket=lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
        enter=(),
        port=8080,
        metrics_port=port,
        server_version=None,
    )


def test_metrics_are_read_over_its_own_sockets() -> None:
    with HTTPServer(("127.0.0.1", 0), Metrics) as server:
        serving = threading.Thread(target=server.handle_request)
        serving.start()
        text = container(server.server_port).metrics()
        serving.join()

    assert text == "/metrics"


def test_metrics_that_are_off_are_told_with_their_port() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and listens to nobody
        port = bound.getsockname()[1]
        with pytest.raises(WorkFailedError, match=f"metrics port {port} does not answer"):
            container(port).metrics()
