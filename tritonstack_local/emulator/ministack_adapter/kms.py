"""``ministack.services.kms``: keys."""

from __future__ import annotations

from ministack.services import kms

from tritonstack_local.emulator.ministack_adapter.private_names import Function

resolve_key = Function(kms, "_resolve_key", "key_id_or_arn")
