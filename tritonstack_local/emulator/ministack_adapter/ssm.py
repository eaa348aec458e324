"""``ministack.services.ssm``: parameters."""

from __future__ import annotations

from ministack.services import ssm

from tritonstack_local.emulator.ministack_adapter.private_names import Replaceable

resolve_parameter_value = Replaceable(ssm, "resolve_parameter_value", "name_or_arn version decrypt")
