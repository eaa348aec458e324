"""``ministack.services.eventbridge``: events, their delivery to targets, and schedule expressions."""

from __future__ import annotations

from ministack.services import eventbridge

from tritonstack_local.emulator.ministack_adapter.private_names import Function, Replaceable

now_ts = Replaceable(eventbridge, "_now_ts")
ensure_default_bus = Function(eventbridge, "_ensure_default_bus")
put_events = Function(eventbridge, "_put_events", "data * allow_aws_source")
invoke_target = Replaceable(eventbridge, "_invoke_target", "target event rule view")
pattern_event_view = Function(eventbridge, "_pattern_event_view", "event")
dispatch_to_lambda = Replaceable(eventbridge, "_dispatch_to_lambda", "arn payload")
dispatch_to_sqs = Function(eventbridge, "_dispatch_to_sqs", "spec payload")
parse_rate_seconds = Function(eventbridge, "_parse_rate_seconds", "expr")
parse_cron_fields = Function(eventbridge, "_parse_cron_fields", "expr")
cron_next_fire = Function(eventbridge, "_cron_next_fire", "fields after_dt")
