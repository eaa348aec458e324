"""CopyObject: MiniStack ignores ``If-None-Match`` there and answers without the copy's checksum.

Conditional copies and the checksum in ``CopyObjectResult`` are S3's (API reference, CopyObject).
"""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import SubElement, fromstring, register_namespace, tostring

from ministack.services import s3

_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"


def install() -> None:
    """Put the condition before MiniStack's copy, and the checksum behind it."""
    copy = s3._copy_object

    def copy_object(bucket: str, key: str, headers: dict[str, str]) -> Any:
        destination = s3._buckets.get(bucket, {}).get("objects", {}).get(key)
        refused = s3._check_put_preconditions(headers, destination)
        if refused is not None:
            return refused
        algorithm = headers.get("x-amz-checksum-algorithm")
        if algorithm:  # CopyObject's spelling; MiniStack reads the one that SDKs send with PutObject
            headers = {**headers, "x-amz-sdk-checksum-algorithm": algorithm}
        status, answer_headers, body = copy(bucket, key, headers)
        if status == 200:
            body = _with_checksums(body, s3._buckets[bucket]["objects"][key].get("checksums") or {})
        return status, answer_headers, body

    s3._copy_object = copy_object


def _with_checksums(body: bytes, checksums: dict[str, str]) -> bytes:
    register_namespace("", _NAMESPACE)
    root = fromstring(body)  # noqa: S314  MiniStack's own answer
    for algorithm, value in checksums.items():
        SubElement(root, f"{{{_NAMESPACE}}}Checksum{algorithm.upper()}").text = value
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root)
