"""``ministack.services.sqs``: queues."""

from __future__ import annotations

from ministack.services import sqs

from tritonstack_local.emulator.ministack_adapter.private_names import Function, Value

queues = Value(sqs, "_queues", "AccountRegionScopedDict")
refresh_counts = Function(sqs, "_refresh_counts", "q")
