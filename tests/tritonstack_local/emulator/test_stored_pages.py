"""Pages that the local AWS serves, as objects of a bucket, and other bodies that come from outside."""

from __future__ import annotations

import gzip
import http.client
import threading
import urllib.parse
from pathlib import Path

import psutil
import pytest

from tests.chromium import needs_chromium, open_page
from tests.local_keys import KEYS
from tests.tritonstack_local.emulator.running import Emulator
from tritonstack.loopback.guard import refusal
from tritonstack.monitoring.page import make_server

SCOPE = f"X-Amz-Credential={KEYS.access_key_id}/20260101/us-east-1/iam/aws4_request"


def send(port: int, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, response.read().decode(errors="replace")
    finally:
        connection.close()


@pytest.mark.parametrize("site", ["same-origin", "SAME-ORIGIN", "same-site", "cross-site", "", "of-a-later-standard"])
def test_a_page_of_a_server_itself_is_a_page(aws: Emulator, name: str, site: str) -> None:
    create = f"/?Action=CreateUser&Version=2010-05-08&UserName={name}&{SCOPE}"
    status, text = send(aws.port, "GET", create, {"Sec-Fetch-Site": site})
    assert (status, "Sec-Fetch-Site" in text) == (403, True)
    assert name not in [each["UserName"] for each in aws.client("iam").list_users()["Users"]]
    assert refusal(host="localhost", origin=None, fetch_site="none") is None, "an address that a person typed"


def test_the_dashboard_loads_itself_again() -> None:
    server = make_server(lambda: "the page", port=0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        assert send(server.server_port, "GET", "/", {"Sec-Fetch-Site": "same-origin"}) == (200, "the page")
        assert send(server.server_port, "GET", "/", {"Sec-Fetch-Site": "same-site"})[0] == 403
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


STORED = """<body>stored<script>
const key = new URLSearchParams(location.search).get("X-Amz-Credential").split("/")[0];
const path = "/?Action=CreateUser&Version=2010-05-08&X-Amz-Credential=" + key + "/20260101/us-east-1/iam/aws4_request";
fetch(path + "&UserName=%(name)s-fetch").catch(() => 0);
new Image().src = path + "&UserName=%(name)s-image";
</script>"""


@needs_chromium
def test_a_stored_page_opened_by_a_presigned_url_does_nothing_with_the_key_in_it(
    aws: Emulator, name: str, tmp_path: Path
) -> None:
    s3 = aws.client("s3")
    s3.create_bucket(Bucket=name)
    s3.put_object(Bucket=name, Key="page.html", Body=(STORED % {"name": name}).encode(), ContentType="text/html")
    url = s3.generate_presigned_url("get_object", Params={"Bucket": name, "Key": "page.html"})
    if "X-Amz-Credential" not in url:  # a URL of the former signature names its key otherwise
        url += "&X-Amz-Credential=" + urllib.parse.quote(f"{KEYS.access_key_id}/20260101/us-east-1/s3/aws4_request")
    shown = open_page("", tmp_path, "--virtual-time-budget=5000", "--dump-dom", address=url)
    assert "stored" in shown, "the person who typed the address sees the page"
    users = [each["UserName"] for each in aws.client("iam").list_users()["Users"]]
    assert [each for each in users if each.startswith(name)] == []


def test_a_response_of_a_custom_resource_is_read_up_to_a_bound(aws: Emulator) -> None:
    path = f"/_ministack/cfn-response/{'0' * 36}"
    assert send(aws.port, "PUT", path, {}, b"{}")[0] == 200
    assert send(aws.port, "PUT", path, {}, bytes(2 << 20))[0] == 413


@pytest.mark.parametrize("target", ["AmazonSSM.GetParameter", "GraniteServiceVersion20100801.PutMetricData"])
def test_what_expands_beyond_the_bound_or_nests_too_deeply_is_refused(aws: Emulator, target: str) -> None:
    service = "ssm" if "SSM" in target else "monitoring"
    signed = f"AWS4-HMAC-SHA256 Credential={KEYS.access_key_id}/20260101/us-east-1/{service}/aws4_request, Signature=0"
    headers = {"Authorization": signed, "X-Amz-Target": target, "Content-Type": "application/x-amz-json-1.1"}
    nested = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    assert 400 <= send(aws.port, "POST", "/", headers, nested)[0] < 500
    packed = {**headers, "Content-Encoding": "gzip"}
    bomb = gzip.compress(bytes(400 << 20), 1)
    status = Path(f"/proc/{psutil.Process(aws.process.pid).pid}/status")

    def peak() -> int:
        return int(status.read_text(encoding="ascii").partition("VmHWM:")[2].split()[0]) * 1024

    before = peak()
    assert send(aws.port, "POST", "/", packed, bomb)[0] >= 400
    assert peak() - before < 300 << 20
