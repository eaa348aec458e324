"""What a request's method and path ask for.

The paths are those of KServe's predict protocol v2 and of Triton's extensions (triton-inference-server/server,
``docs/protocol`` and ``src/http_server.cc``). A model's name may be ``endpoint/model``, its slash as it is or as %2F.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote

What = Literal["live", "ready", "server", "index", "model", "model-ready", "config", "infer", "statistics"]

METHODS: dict[str, str] = {"infer": "POST", "index": "POST"}
"""What is asked with another method than GET."""

_HEALTH: dict[tuple[str, ...], What] = {
    (): "server",
    ("health", "live"): "live",
    ("health", "ready"): "ready",
    ("models", "stats"): "statistics",
    ("repository", "index"): "index",
}
_OF_MODELS: dict[str, What] = {
    "ready": "model-ready",
    "config": "config",
    "infer": "infer",
    "stats": "statistics",
}
_NOT_HERE = {
    "generate": "generate",
    "generate_stream": "generate",
    "trace": "trace",
    "logging": "logging",
    "systemsharedmemory": "shared memory",
    "cudasharedmemory": "shared memory",
    "repository": "model repository control",
}
"""A part of a path → the extension that it belongs to, which InvokeEndpoint has no way for."""


@dataclass(frozen=True, kw_only=True)
class Route:
    """What is asked for.

    Attributes:
        what: the question.
        model: ``[endpoint/]model`` as the client spells it; empty where the question is about no model.
        version: the model version in the path; empty where there is none.
    """

    what: What
    model: str = ""
    version: str = ""


class NoRouteError(Exception):
    """A path, or a method, that is nothing here."""

    def __init__(self, status: int, message: str) -> None:
        """``status`` is HTTP's: 404, 405, or 501 for what InvokeEndpoint has no way for."""
        self.status = status
        super().__init__(message)


def read_route(method: bytes, path: bytes) -> Route:
    """What a request asks for. Raises NoRouteError."""
    text = path.split(b"?", 1)[0].decode("latin-1")
    segments = text.strip("/").split("/")
    if segments[0] != "v2":
        raise NoRouteError(404, f"{_shown(text)} is no path of KServe's protocol v2; they begin with /v2")
    route = _route(tuple(segments[1:]))
    if route is None:
        raise _no_route(text, segments[1:])
    wanted = METHODS.get(route.what, "GET")
    given = method.decode("latin-1")
    if given != wanted:
        raise NoRouteError(405, f"{_shown(text)} takes {wanted}, not {given}")
    return route


def _route(segments: tuple[str, ...]) -> Route | None:
    if segments in _HEALTH:
        return Route(what=_HEALTH[segments])
    if len(segments) < 2 or segments[0] != "models":
        return None
    names = list(segments[1:])
    what: What = "model"
    if len(names) > 1 and names[-1] in _OF_MODELS:
        what = _OF_MODELS[names.pop()]
    version = ""
    if len(names) > 2 and names[-2] == "versions":
        version = unquote(names.pop())
        names.pop()
    model = "/".join(unquote(name) for name in names)
    return Route(what=what, model=model, version=version) if len(names) <= 2 and all(names) else None


def _no_route(text: str, segments: list[str]) -> NoRouteError:
    for segment in segments:
        if segment in _NOT_HERE:
            extension = _NOT_HERE[segment]
            return NoRouteError(501, f"{_shown(text)}: InvokeEndpoint has no way for Triton's {extension} extension")
    return NoRouteError(404, f"{_shown(text)} is no path of KServe's protocol v2 that this proxy knows")


def _shown(text: str) -> str:
    return text if len(text) <= 200 else text[:200] + "…"
