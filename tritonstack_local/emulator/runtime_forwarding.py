"""InvokeEndpoint at the gateway: handed to the local runtime and its answer handed back, bytes and headers as they are.

So a client that knows nothing but ``AWS_ENDPOINT_URL`` can invoke; who wants the short way gives the runtime's own URL.
"""

from __future__ import annotations

import http.client
import json
import queue
import re
import urllib.parse

INVOCATION = re.compile(r"^/endpoints/[^/]+/(invocations|invocations-response-stream|async-invocations)$")
"""The paths of SageMaker Runtime's operations."""

_SECONDS = 90.0  # SageMaker gives a container 60 s; the runtime answers itself when those are over
_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer", "content-length"})
Answer = tuple[int, list[tuple[str, str]], bytes]


class RuntimeForwarder:
    """Connections to the runtime, kept open between calls. Thread-safe; ``forward`` blocks."""

    def __init__(self, url: str | None) -> None:
        """``url`` is the runtime's, None where there is none."""
        parts = urllib.parse.urlsplit(url or "")
        self._host, self._port = parts.hostname, parts.port
        self._idle: queue.LifoQueue[http.client.HTTPConnection] = queue.LifoQueue()

    def forward(self, path: str, headers: list[tuple[str, str]], body: bytes) -> Answer:
        """The runtime's answer: status, headers, body. Without a runtime the answer that SageMaker gives when down."""
        if self._host is None:
            return _unavailable("the local AWS was started without a runtime (TRITONSTACK_RUNTIME_URL)")
        try:
            return self._call(path, headers, body)
        except OSError as error:
            return _unavailable(f"the local runtime does not answer ({error}); see `tritonstack local status`")

    def _call(self, path: str, headers: list[tuple[str, str]], body: bytes) -> Answer:
        connection, reused = self._connection()
        try:
            answer = self._exchange(connection, path, headers, body)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            connection.close()
            if not reused:
                raise
            # The runtime closed an idle connection before it read anything of this request.
            connection = http.client.HTTPConnection(str(self._host), self._port, timeout=_SECONDS)
            answer = self._exchange(connection, path, headers, body)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise OSError(str(error)) from error
        self._idle.put(connection)
        return answer

    def _connection(self) -> tuple[http.client.HTTPConnection, bool]:
        try:
            return self._idle.get_nowait(), True
        except queue.Empty:
            return http.client.HTTPConnection(str(self._host), self._port, timeout=_SECONDS), False

    @staticmethod
    def _exchange(
        connection: http.client.HTTPConnection, path: str, headers: list[tuple[str, str]], body: bytes
    ) -> Answer:
        connection.request("POST", path, body, dict(_end_to_end(headers)))
        response = connection.getresponse()
        content = response.read()
        return response.status, _end_to_end(response.getheaders()), content


def _end_to_end(headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers if name.lower() not in _HOP_BY_HOP]


def _unavailable(reason: str) -> Answer:
    """SageMaker Runtime's ``ServiceUnavailable`` (503)."""
    body = json.dumps({"Message": f"The service is unavailable: {reason}."}).encode()
    return 503, [("Content-Type", "application/json"), ("x-amzn-ErrorType", "ServiceUnavailable")], body
