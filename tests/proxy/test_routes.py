"""Which paths lead where, with the paths that tritonclient itself makes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonstack.proxy.server import NoRouteError, Route, read_route

NAMES = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True).filter(
    lambda name: name not in ("ready", "config", "infer", "stats", "versions", "generate")
)


@pytest.mark.parametrize(
    ("method", "path", "route"),
    [
        ("GET", "/v2", Route(what="server")),
        ("GET", "/v2/", Route(what="server")),
        ("GET", "/v2/health/live", Route(what="live")),
        ("GET", "/v2/health/ready", Route(what="ready")),
        ("POST", "/v2/repository/index", Route(what="index")),
        ("GET", "/v2/models/stats", Route(what="statistics")),
        ("GET", "/v2/models/m", Route(what="model", model="m")),
        ("GET", "/v2/models/m?verbose=1", Route(what="model", model="m")),
        ("GET", "/v2/models/m/ready", Route(what="model-ready", model="m")),
        ("GET", "/v2/models/m/versions/2/config", Route(what="config", model="m", version="2")),
        ("GET", "/v2/models/m/versions/2", Route(what="model", model="m", version="2")),
        ("GET", "/v2/models/m/versions/2/stats", Route(what="statistics", model="m", version="2")),
        ("POST", "/v2/models/e/m/infer", Route(what="infer", model="e/m")),
        ("POST", "/v2/models/e%2Fm/infer", Route(what="infer", model="e/m")),
        ("POST", "/v2/models/e/m/versions/1/infer", Route(what="infer", model="e/m", version="1")),
        ("GET", "/v2/models/versions/m", Route(what="model", model="versions/m")),
    ],
)
def test_a_path_leads_to_what_it_asks_for(method: str, path: str, route: Route) -> None:
    assert read_route(method.encode(), path.encode()) == route


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", "/", 404, "begin with /v2"),
        ("GET", "/metrics", 404, "begin with /v2"),
        ("GET", "/v2/models", 404, "no path"),
        ("GET", "/v2/models//ready", 404, "no path"),
        ("GET", "/v2/models/a/b/c/ready", 404, "no path"),
        ("GET", "/v2/models/m/infer", 405, "takes POST, not GET"),
        ("POST", "/v2/models/m", 405, "takes GET, not POST"),
        ("POST", "/v2/models/a/b/generate", 501, "generate extension"),
        ("POST", "/v2/repository/models/m/load", 501, "model repository control"),
        ("POST", "/v2/systemsharedmemory/region/r/register", 501, "shared memory"),
        ("GET", "/v2/trace/setting", 501, "trace"),
        ("GET", "/v2/logging", 501, "logging"),
    ],
)
def test_any_other_path_is_refused_with_the_reason(method: str, path: str, status: int, words: str) -> None:
    with pytest.raises(NoRouteError, match=words) as raised:
        read_route(method.encode(), path.encode())
    assert raised.value.status == status


@given(endpoint=st.none() | NAMES, model=NAMES, version=st.none() | st.integers(1, 10**9), config=st.booleans())
def test_every_name_and_version_is_found_in_its_path(
    endpoint: str | None, model: str, version: int | None, config: bool
) -> None:
    name = f"{endpoint}/{model}" if endpoint else model
    path = f"/v2/models/{name}" + (f"/versions/{version}" if version else "") + ("/config" if config else "")
    expected = Route(what="config" if config else "model", model=name, version=str(version or ""))
    assert read_route(b"GET", path.encode()) == expected


@given(path=st.binary(max_size=60), method=st.sampled_from([b"GET", b"POST", b"PUT", b"\xff"]))
def test_no_path_is_a_fault_of_ours(path: bytes, method: bytes) -> None:
    for given_path in (path, b"/v2/" + path, b"/v2/models/" + path):
        try:
            read_route(method, given_path)
        except NoRouteError as error:
            assert error.status in (404, 405, 501)
