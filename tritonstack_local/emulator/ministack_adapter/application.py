"""``ministack.app``: the ASGI application, its services, and how it reads a request before a service does."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable
from typing import Any

from ministack import app

from tritonstack_local.emulator.ministack_adapter import core
from tritonstack_local.emulator.ministack_adapter.private_names import Function, Replaceable, Value

serve = Function(app, "app", "scope receive send")
service_handlers = Value(app, "SERVICE_HANDLERS", "dict", keys="cloudformation")
service_registry = Value(app, "SERVICE_REGISTRY", "dict")
loaded_modules = Value(app, "_loaded_modules", "dict")

# --- Reading of a request ---

decompress_request_body = Replaceable(app, "_decompress_request_body", "body headers")
decode_aws_chunked_body = Replaceable(app, "_decode_aws_chunked_body", "body headers")
incomplete_request_body = Value(app, "_IncompleteRequestBody", "type")
"""What it raises."""
routing_params = Replaceable(app, "_routing_params", "method path headers body query_params")
extract_s3_vhost_bucket = Function(app, "_extract_s3_vhost_bucket", "host")
non_s3_vhost_names = Value(app, "_NON_S3_VHOST_NAMES", "frozenset")
s3_vhost_exclude_re = Value(app, "_S3_VHOST_EXCLUDE_RE", "Pattern")


def register_service(service: str, *, handle: Callable[..., Any], target_prefix: str) -> None:
    """Add a service that MiniStack lacks: routed by target, host and credential scope, without persistence.

    Args:
        service: botocore's name.
        handle: gets method, path, headers, body and query.
        target_prefix: begins the ``X-Amz-Target`` header.
    """
    name = "tritonstack_" + service.replace("-", "_")
    module: Any = types.ModuleType(f"ministack.services.{name}")
    module.handle_request = handle
    module.reset = lambda: None
    module.get_state = dict
    module.restore_state = lambda _data: None
    sys.modules[module.__name__] = module
    service_registry()[service] = {"module": name}
    service_handlers()[service] = handle
    loaded_modules()[name] = module
    core.service_patterns()[service] = {
        "target_prefixes": [target_prefix + "."],
        "host_patterns": [rf"{re.escape(service)}\."],
        "credential_scope": service,
    }
