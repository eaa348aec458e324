"""S3 and SSM as far as publishing and pruning use them, over real HTTP, so that the real boto3 is what is tested."""

from __future__ import annotations

import datetime as dt
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import boto3
from botocore.config import Config

BUCKET = "artifacts"


@dataclass
class FakeAws:
    """One bucket and some parameters. ``before_put`` runs before each conditional write: a place for a rival."""

    url: str = ""
    objects: dict[str, bytes] = field(default_factory=dict)
    metadata: dict[str, dict[str, str]] = field(default_factory=dict)  # key or upload → x-amz-meta-…
    ages: dict[str, float] = field(default_factory=dict)  # key → hours
    parameters: dict[str, list[str]] = field(default_factory=dict)  # name → values, the newest last
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)
    deletes: list[str] = field(default_factory=list)
    before_put: Callable[[str], None] = lambda _key: None
    conflicts: int = 0
    refused: str = ""  # the key that S3 answers 403 for, there or not
    account: str = "123456789012"  # whose credentials callers have
    regions: set[str] = field(default_factory=set)  # of the requests' signatures
    answers_left: int | None = None  # before the caller's credentials end; None: they do not
    lock: threading.Lock = field(default_factory=threading.Lock)

    def client(self, service_name: str, **_: Any) -> Any:
        """A real client that talks to this server."""
        return boto3.client(
            service_name,
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
            config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
        )


@contextmanager
def running() -> Iterator[FakeAws]:
    aws = FakeAws(parameters={"/tritonstack/dev/_artifacts/bucket-name": [BUCKET]})
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"aws": aws}))
    aws.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield aws
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _signed(method: Callable[[Any], None]) -> Callable[[Any], None]:
    """A request's method, but for credentials that have ended: as S3 and as the JSON services say it."""

    def checked(self: Any) -> None:
        with self.aws.lock:
            if self.aws.answers_left is not None:
                self.aws.answers_left -= 1
            ended = self.aws.answers_left is not None and self.aws.answers_left < 0
        if not ended:
            method(self)
            return
        self.body()
        if self.headers.get("X-Amz-Target"):
            self.answer(400, b'{"__type": "ExpiredTokenException", "message": "The security token is expired"}')
        else:
            self.refuse(400, "ExpiredToken")  # without its body where it is a HEAD

    return checked


class _Handler(BaseHTTPRequestHandler):
    aws: FakeAws
    protocol_version = "HTTP/1.1"

    @property
    def key(self) -> str:
        return unquote(urlsplit(self.path).path).removeprefix(f"/{BUCKET}").lstrip("/")

    @property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.path).query, keep_blank_values=True)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the base class's name)
        pass

    def answer(self, status: int, body: bytes = b"", *, metadata: dict[str, str] | None = None, **headers: str) -> None:
        self.send_response(status)
        for name, value in {**headers, **(metadata or {})}.items():
            self.send_header(name.replace("_", "-"), value)
        if self.command != "HEAD" and "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status: int, code: str) -> None:
        self.answer(status, f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode())

    def told(self) -> dict[str, str]:
        return {name: value for name, value in self.headers.items() if name.lower().startswith("x-amz-meta-")}

    def body(self) -> bytes:
        if "chunked" in (self.headers.get("Transfer-Encoding") or ""):
            raw = self._chunks()
        else:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "aws-chunked" in (self.headers.get("Content-Encoding") or ""):
            return _unframed(raw)
        return raw

    def _chunks(self) -> bytes:
        data = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    @_signed
    def do_HEAD(self) -> None:
        found = self.aws.objects.get(self.key)
        if found is None or self.key == self.aws.refused:
            self.answer(403 if self.key == self.aws.refused else 404)
        else:
            self.answer(200, Content_Length=str(len(found)), metadata=self.aws.metadata.get(self.key))

    @_signed
    def do_GET(self) -> None:
        if not self.key:
            self.list_objects()
        elif self.key == self.aws.refused:
            self.refuse(403, "AccessDenied")
        elif self.key in self.aws.objects:
            self.answer(200, self.aws.objects[self.key])
        else:
            self.refuse(404, "NoSuchKey")

    def list_objects(self) -> None:
        prefix, now = self.query["prefix"][0], dt.datetime.now(dt.UTC)
        entries = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(content)}</Size>"
            f"<LastModified>{now - self.age(key):%Y-%m-%dT%H:%M:%SZ}</LastModified></Contents>"
            for key, content in sorted(self.aws.objects.items())
            if key.startswith(prefix)
        )
        self.answer(200, f"<ListBucketResult><IsTruncated>false</IsTruncated>{entries}</ListBucketResult>".encode())

    def age(self, key: str) -> dt.timedelta:
        return dt.timedelta(hours=self.aws.ages.get(key, 0))

    @_signed
    def do_PUT(self) -> None:
        content = self.body()
        if "uploadId" in self.query:
            self.aws.uploads[self.query["uploadId"][0]][int(self.query["partNumber"][0])] = content
            self.answer(200, ETag='"part"')
        else:
            self.commit(content)

    def commit(self, content: bytes, body: bytes = b"") -> None:
        conditional = self.headers.get("If-None-Match") == "*"
        if conditional:
            self.aws.before_put(self.key)
        with self.aws.lock:
            if conditional and self.aws.conflicts:
                self.aws.conflicts -= 1
                self.refuse(409, "ConditionalRequestConflict")
            elif conditional and self.key in self.aws.objects:
                self.refuse(412, "PreconditionFailed")
            else:
                self.aws.objects[self.key] = content
                started = self.query.get("uploadId", [""])[0]
                self.aws.metadata[self.key] = self.aws.metadata.pop(started, {}) or self.told()
                self.aws.writes.append(self.key)
                self.answer(200, body, ETag='"whole"')

    @_signed
    def do_POST(self) -> None:
        content = self.body()
        self.aws.regions |= set(re.findall(r"Credential=[^/]+/\d+/([^/]+)/", self.headers.get("Authorization") or ""))
        if b"Action=GetCallerIdentity" in content:
            result = f"<GetCallerIdentityResult><Account>{self.aws.account}</Account></GetCallerIdentityResult>"
            self.answer(200, f"<GetCallerIdentityResponse>{result}</GetCallerIdentityResponse>".encode())
        elif self.headers.get("X-Amz-Target"):
            self.ssm(self.headers["X-Amz-Target"].split(".")[1], json.loads(content))
        elif "uploads" in self.query:
            identity = f"upload-{len(self.aws.uploads)}"
            self.aws.uploads[identity] = {}
            self.aws.metadata[identity] = self.told()
            result = f"<InitiateMultipartUploadResult><UploadId>{identity}</UploadId></InitiateMultipartUploadResult>"
            self.answer(200, result.encode())
        elif "uploadId" in self.query:
            parts = self.aws.uploads[self.query["uploadId"][0]]
            self.commit(b"".join(parts[number] for number in sorted(parts)), b"<CompleteMultipartUploadResult/>")
        elif "delete" in self.query:
            for key in re.findall(r"<Key>(.*?)</Key>", content.decode()):
                self.aws.objects.pop(key, None)
                self.aws.deletes.append(key)
            self.answer(200, b"<DeleteResult/>")

    @_signed
    def do_DELETE(self) -> None:
        self.aws.uploads.pop(self.query["uploadId"][0])
        self.answer(204)

    def ssm(self, operation: str, request: dict[str, Any]) -> None:
        values = self.aws.parameters.get(request["Name"])
        if values is None:
            self.answer(400, b'{"__type": "ParameterNotFound", "message": "no"}')
        elif operation == "GetParameter":
            self.answer(200, json.dumps({"Parameter": {"Name": request["Name"], "Value": values[-1]}}).encode())
        else:
            versions = [{"Name": request["Name"], "Value": v, "Version": i + 1} for i, v in enumerate(values)]
            self.answer(200, json.dumps({"Parameters": versions}).encode())


def _unframed(raw: bytes) -> bytes:
    """The content of an ``aws-chunked`` body: size in hexadecimal, CRLF, bytes, CRLF …, then a trailer."""
    content, position = b"", 0
    while True:
        end = raw.index(b"\r\n", position)
        size = int(raw[position:end].split(b";")[0], 16)
        if not size:
            return content
        content += raw[end + 2 : end + 2 + size]
        position = end + 2 + size + 2
