"""``ministack.services.sns``: topics."""

from __future__ import annotations

from ministack.services import sns

from tritonstack_local.emulator.ministack_adapter.private_names import Function, Value

topics = Value(sns, "_topics", "AccountRegionScopedDict")
topic_by_arn_any_scope = Function(sns, "_topic_by_arn_any_scope", "topic_arn")
fanout = Function(sns, "_fanout", "topic_arn msg_id message subject")
