"""``ministack.services.cloudwatch_logs``: log groups, streams and events."""

from __future__ import annotations

from ministack.services import cloudwatch_logs

from tritonstack_local.emulator.ministack_adapter.private_names import Function, Replaceable, Value

handle_request = Replaceable(cloudwatch_logs, "handle_request", "method path headers body query_params")
log_groups = Value(cloudwatch_logs, "_log_groups", "AccountRegionScopedDict")
metric_filters = Value(cloudwatch_logs, "_metric_filters", "AccountRegionScopedDict")
create_log_group = Function(cloudwatch_logs, "_create_log_group", "data")
create_log_stream = Function(cloudwatch_logs, "_create_log_stream", "data")
put_log_events = Function(cloudwatch_logs, "_put_log_events", "data")
put_metric_filter = Function(cloudwatch_logs, "_put_metric_filter", "data")
put_subscription_filter = Function(cloudwatch_logs, "_put_subscription_filter", "data")
filter_log_events = Function(cloudwatch_logs, "_filter_log_events", "data")
compile_filter_pattern = Replaceable(cloudwatch_logs, "_compile_filter_pattern", "raw")
subscription_pattern_matches = Replaceable(cloudwatch_logs, "_subscription_pattern_matches", "pattern message")
