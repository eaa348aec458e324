"""PutObject and CopyObject where MiniStack falls short of S3.

CopyObject ignores ``If-None-Match``, and neither answers with the checksum that was asked for (S3 API reference).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.etree.ElementTree import SubElement, fromstring, register_namespace, tostring

from ministack.services import s3

Answer = tuple[int, dict[str, str], Any]
_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"


def install() -> None:
    """Wrap MiniStack's two functions."""
    s3._put_object = _answering_checksums(s3._put_object)
    s3._copy_object = _conditional(s3._copy_object)


def _answering_checksums(put: Callable[..., Answer]) -> Callable[..., Answer]:
    def put_object(bucket: str, key: str, body: bytes, headers: dict[str, str]) -> Answer:
        status, answer_headers, answer = put(bucket, key, body, headers)
        if status == 200:
            sums = {f"x-amz-checksum-{name.lower()}": value for name, value in _checksums(bucket, key).items()}
            answer_headers = {**answer_headers, **sums, **({"x-amz-checksum-type": "FULL_OBJECT"} if sums else {})}
        return status, answer_headers, answer

    return put_object


def _conditional(copy: Callable[..., Answer]) -> Callable[..., Answer]:
    def copy_object(bucket: str, key: str, headers: dict[str, str]) -> Answer:
        destination = s3._buckets.get(bucket, {}).get("objects", {}).get(key)
        refused: Answer | None = s3._check_put_preconditions(headers, destination)
        if refused is not None:
            return refused
        algorithm = headers.get("x-amz-checksum-algorithm")
        if algorithm:  # CopyObject's spelling; MiniStack reads the one that SDKs send with PutObject
            headers = {**headers, "x-amz-sdk-checksum-algorithm": algorithm}
        status, answer_headers, body = copy(bucket, key, headers)
        if status == 200:
            body = _with_checksums(body, _checksums(bucket, key))
        return status, answer_headers, body

    return copy_object


def _checksums(bucket: str, key: str) -> dict[str, str]:
    """The checksums stored with an object just written, by algorithm (``SHA256``)."""
    return s3._buckets[bucket]["objects"][key].get("checksums") or {}


def _with_checksums(body: bytes, checksums: dict[str, str]) -> bytes:
    register_namespace("", _NAMESPACE)
    root = fromstring(body)  # noqa: S314  MiniStack's own answer
    for algorithm, value in checksums.items():
        SubElement(root, f"{{{_NAMESPACE}}}Checksum{algorithm.upper()}").text = value
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root)
