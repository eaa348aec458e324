"""``ministack.services.s3``: buckets, objects, uploads and their encryption."""

from __future__ import annotations

from typing import Any

from ministack.services import s3

from tritonstack_local.emulator.ministack_adapter.private_names import Function, Replaceable, Value

buckets = Value(s3, "_buckets", "AccountScopedDict")
bucket_encryption = Value(s3, "_bucket_encryption", "AccountScopedDict")
"""Bucket → its encryption, as XML."""
bucket_default_sse_headers = Function(s3, "_bucket_default_sse_headers", "bucket_name")
bucket_owner_account = Function(s3, "_bucket_owner_account", "name")
multipart_uploads = Value(s3, "_multipart_uploads", "AccountScopedDict")
copy_object = Replaceable(s3, "_copy_object", "bucket_name dest_key headers")
check_put_preconditions = Function(s3, "_check_put_preconditions", "headers existing_obj")
merge_hoisted_amz_headers = Function(s3, "_merge_hoisted_amz_headers", "headers query_params")
fromstring = Function(s3, "fromstring", "text")
"""Parses the XML of a request's body."""


def object_record(bucket: str, key: str) -> dict[str, Any] | None:
    """MiniStack's record of an object; None where there is none."""
    found: dict[str, Any] | None = buckets().get(bucket, {}).get("objects", {}).get(key)
    return found
