"""Strangers at the local servers: pages in a browser, rebound names, programs without the keys."""

from __future__ import annotations

import gzip
import http.client
import http.server
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.chromium import needs_chromium, open_page
from tests.client.fakes import FakeEndpoint
from tests.local_keys import KEYS, OWN
from tests.proxy.world import World
from tests.tritonstack_local.emulator.running import REPOSITORY, START_SECONDS, Emulator, free_port
from tritonstack.monitoring.page import make_server

SIGNED = "AWS4-HMAC-SHA256 Credential={}/20260101/us-east-1/{}/aws4_request, SignedHeaders=host, Signature=0"
SCOPE = "testing/20260101/us-east-1/iam/aws4_request"
CREATE_USER = f"/?Action=CreateUser&Version=2010-05-08&X-Amz-Credential={SCOPE}&UserName="
ROUTES = {
    "gateway": [
        ("GET", "/_tritonstack/health"), ("POST", "/_tritonstack/clock"),
        ("GET", "/_tritonstack/iam/credentials?role=any"),
        ("POST", CREATE_USER + "evil"), ("GET", "/bucket/key"), ("PUT", "/bucket"), ("OPTIONS", "/bucket"),
        ("POST", "/endpoints/e/invocations"), ("GET", "/_ministack/health"), ("POST", "/_ministack/reset"),
        ("POST", "/_ministack/config"), ("PUT", f"/_ministack/cfn-response/{'0' * 36}"),
    ],
    "runtime": [
        ("GET", "/_tritonstack/status"), ("POST", "/endpoints/e/invocations"), ("OPTIONS", "/"), ("GET", "/other"),
    ],
    "proxy": [("GET", "/v2/health/live"), ("POST", "/v2/models/digits-onnx/infer"), ("OPTIONS", "/v2")],
    "dashboard": [("GET", "/")],
}  # fmt: skip
FOREIGN = [
    {"Host": "evil.example"}, {"Host": "evil.example:4566"}, {"Host": "127.0.0.1.evil.example"},
    {"Host": "evil.localhost"}, {"Host": "localhost.evil.example:80"}, {"Host": "192.168.0.7:4566"},
    {"Host": "127.0.0.1@evil"}, {"Origin": "http://evil.example"}, {"Origin": "null"},
    {"Origin": "http://localhost:3000"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
]  # fmt: skip
AT_HOME = ["127.0.0.1", "localhost", "LOCALHOST", "127.0.0.1:{}", "localhost:{}", "[::1]:{}"]


@pytest.fixture(scope="module")
def ports(aws: Emulator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    """The four servers that listen on loopback, each as its users start it."""
    page = make_server(lambda: "the page", port=0)
    threading.Thread(target=page.serve_forever, daemon=True).start()
    port, state = free_port(), tmp_path_factory.mktemp("runtime")
    runtime = subprocess.Popen(
        [
            sys.executable, "-m", "tritonstack_local.runtime",
            "--port", str(port), "--emulator", aws.url, "--state", state,
        ],
        env={**os.environ, **KEYS.variables()}, cwd=REPOSITORY, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        with FakeEndpoint().running() as endpoint:
            world = World(endpoint)
            with world.serving():
                found = {"gateway": aws.port, "runtime": port, "proxy": world.port, "dashboard": page.server_port}
                until = time.monotonic() + START_SECONDS
                while time.monotonic() < until:
                    try:
                        response_of(port, "GET", "/_tritonstack/health", OWN)
                        break
                    except OSError:
                        time.sleep(0.05)
                yield found
    finally:
        runtime.terminate()
        runtime.wait(timeout=30)
        page.shutdown()
        page.server_close()


def response_of(
    port: int, method: str, path: str, headers: dict[str, str], body: bytes | None = None
) -> tuple[int, dict[str, str], str]:
    """Status, headers in lower case, text."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        text = response.read().decode(errors="replace")
        return response.status, {name.lower(): value for name, value in response.getheaders()}, text
    finally:
        connection.close()


def allowing_headers(headers: dict[str, str]) -> list[str]:
    return [name for name in headers if name.startswith("access-control-")]


@pytest.mark.parametrize(("server", "method", "path"), [(name, *each) for name in ROUTES for each in ROUTES[name]])
def test_no_route_serves_a_page_s_request_even_with_the_keys(
    ports: dict[str, int], server: str, method: str, path: str
) -> None:
    with_keys = {**OWN, "Authorization": SIGNED.format(KEYS.access_key_id, "s3")}
    for foreign in FOREIGN:
        status, headers, text = response_of(ports[server], method, path, {**with_keys, **foreign})
        [name] = foreign
        assert (status, name in text, allowing_headers(headers)) == (403, True, []), (foreign, text)


@pytest.mark.parametrize("server", ROUTES)
def test_programs_that_call_by_a_loopback_name_get_past_the_check(ports: dict[str, int], server: str) -> None:
    method, path = ROUTES[server][0]
    for host in AT_HOME:
        status, headers, text = response_of(ports[server], method, path, {**OWN, "Host": host.format(ports[server])})
        assert (status, allowing_headers(headers)) == (200, []), (host, text)


def test_a_link_may_lead_to_the_dashboard_but_no_frame_holds_it(ports: dict[str, int]) -> None:
    for wanted, kind in ((200, "document"), (403, "iframe"), (403, "empty")):
        headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": kind}
        assert response_of(ports["dashboard"], "GET", "/", headers)[0] == wanted


def test_a_bucket_is_reached_at_its_name_below_localhost(aws: Emulator, name: str) -> None:
    aws.client("s3").create_bucket(Bucket=name)
    signed = {"Authorization": SIGNED.format(KEYS.access_key_id, "s3")}
    for host in (f"{name}.localhost:{aws.port}", f"{name}.s3.localhost:{aws.port}"):
        status, headers, text = response_of(aws.port, "GET", "/", {**signed, "Host": host})
        assert (status, allowing_headers(headers)) == (200, []), text
        assert f"<Name>{name}</Name>" in text
        assert response_of(aws.port, "GET", "/", {**signed, "Host": host, "Origin": "http://evil.example"})[0] == 403


@pytest.mark.parametrize("server", ["gateway", "runtime"])
@pytest.mark.parametrize("token", [{}, {"X-Tritonstack-Token": "another"}, {"X-Tritonstack-Token": ""}])
def test_routes_of_our_own_want_the_token(ports: dict[str, int], server: str, token: dict[str, str]) -> None:
    for path in ("health", "status", "iam", "clock", "faults", "mark", "nothing"):
        status, _, text = response_of(ports[server], "GET", f"/_tritonstack/{path}", token)
        assert (status, "tritonstack local up" in text) == (403, True)


@pytest.mark.parametrize("path", ["health", "ready", "config", "lambda-code/x", "cfn-response/short", "rds/iam-auth"])
def test_ministack_s_own_routes_are_closed(aws: Emulator, path: str) -> None:
    for method in ("GET", "POST", "PUT"):
        assert response_of(aws.port, method, f"/_ministack/{path}", OWN)[0] == 404


@pytest.mark.parametrize("iam", ["aws", "guarded"])
def test_an_access_key_that_was_not_given_out_is_refused_also_without_iam(
    iam: str, name: str, request: pytest.FixtureRequest
) -> None:
    emulator: Emulator = request.getfixturevalue(iam)
    for key in ("test", "000000000000", "123456789012", "AKIAIOSFODNN7EXAMPLE", ""):
        path = f"/?Action=CreateUser&Version=2010-05-08&UserName={name}"
        headers = {"Authorization": SIGNED.format(key, "iam")} if key else {}
        assert response_of(emulator.port, "POST", path, headers)[0] == 403, key
    names = [each["UserName"] for each in emulator.client("iam").list_users()["Users"]]
    assert name not in names


def test_an_emulator_hands_its_keys_to_no_process_that_it_starts(aws: Emulator) -> None:
    code = "import os; from tritonstack_local.emulator.settings import EmulatorSettings as S; S.read(os.environ); "
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TRITONSTACK")}
    ran = subprocess.run(
        [sys.executable, "-c", f"{code}print([name for name in os.environ if name.startswith('TRITONSTACK')])"],
        env={**inherited, **KEYS.variables()}, cwd=REPOSITORY, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ran.stdout.strip() == "[]"
    assert KEYS.token not in aws.log.read_text()


def test_a_compressed_body_is_expanded_within_bounds(aws: Emulator) -> None:
    packed = gzip.compress(bytes(400 << 20), compresslevel=1)
    headers = {
        "Authorization": SIGNED.format(KEYS.access_key_id, "monitoring"), "Content-Encoding": "gzip",
        "X-Amz-Target": "GraniteServiceVersion20100801.PutMetricData", "Content-Type": "application/x-amz-json-1.0",
    }  # fmt: skip
    process = psutil.Process(aws.process.pid)
    before = process.memory_info().rss
    status, _, _ = response_of(aws.port, "POST", "/", headers, packed)
    assert status >= 400
    peak = int(Path(f"/proc/{aws.process.pid}/status").read_text().split("VmHWM:")[1].split()[0]) * 1024
    assert peak - before < 300 << 20, "of 400 MB in 2 MB"


PAGE = """<script>
const at = "http://127.0.0.1:%(port)s";
const form = document.createElement("form");
form.method = "POST"; form.action = at + "%(path)s"; form.target = "frame"; form.enctype = "text/plain";
document.write('<iframe name="frame"></iframe>'); document.body.append(form); form.submit();
fetch(at + "%(path)s", {method: "POST", mode: "no-cors"}).catch(() => 0);
navigator.sendBeacon(at + "%(path)s");
new Image().src = at + "%(path)s";
fetch(at + "/_tritonstack/health", {headers: {"X-Tritonstack-Token": "%(token)s"}})
  .then(answer => answer.text()).then(text => document.title = "read: " + text).catch(() => document.title = "unread");
</script>"""


@needs_chromium
def test_a_page_in_chromium_that_has_the_keys_can_change_and_read_nothing(
    aws: Emulator, name: str, tmp_path: Path
) -> None:
    def users() -> list[str]:
        return [each["UserName"] for each in aws.client("iam").list_users()["Users"]]

    path = CREATE_USER + name
    page = PAGE % {"port": aws.port, "path": path, "token": KEYS.token}
    seen = open_page(page, tmp_path, "--virtual-time-budget=5000", "--dump-dom")
    assert "<title>unread</title>" in seen
    assert name not in users()
    assert response_of(aws.port, "POST", path, {})[0] == 200, "a program's same request is carried out"
    assert name in users()
