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
