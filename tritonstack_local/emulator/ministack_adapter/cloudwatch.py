"""``ministack.services.cloudwatch``: metrics, alarms, dashboards, and the evaluation that the emulator replaces."""

from __future__ import annotations

from ministack.services import cloudwatch

from tritonstack_local.emulator.ministack_adapter.private_names import Function, Replaceable, ReplacedModule, Value

handle_request = Replaceable(cloudwatch, "handle_request", "method path headers body query_params")
system_time = ReplacedModule(cloudwatch, "time", functions="time")
resource_tags = Value(cloudwatch, "_resource_tags", "AccountScopedDict")
"""ARN → tags."""
put_dashboard = Function(cloudwatch, "cloudformation_put_dashboard", "name body")

# --- Metrics ---

metrics = Value(cloudwatch, "_metrics", "AccountRegionScopedDict")
metric_bucket = Replaceable(cloudwatch, "_metric_bucket", "key")
evict_old_metrics = Replaceable(cloudwatch, "_evict_old_metrics")
record_metric = Function(cloudwatch, "record_metric", "namespace metric_name value unit dimensions")
put_metric_data = Function(cloudwatch, "_put_metric_data", "params cbor_data is_cbor is_json")
list_metrics = Function(cloudwatch, "_list_metrics", "params cbor_data is_cbor is_json")
dims_key = Function(cloudwatch, "_dims_key", "dims")
point_stats = Function(cloudwatch, "_point_stats", "pt")
calc_stats = Function(cloudwatch, "_calc_stats", "points")
stat_value = Function(cloudwatch, "_stat_value", "stats stat_name points")

# --- Alarms ---

alarms = Value(cloudwatch, "_alarms", "AccountRegionScopedDict")
composite_alarms = Value(cloudwatch, "_composite_alarms", "AccountRegionScopedDict")
put_composite_alarm = Function(cloudwatch, "_put_composite_alarm", "params cbor_data is_cbor is_json")
delete_alarms = Function(cloudwatch, "_delete_alarms", "params cbor_data is_cbor is_json")
describe_alarms = Function(cloudwatch, "_describe_alarms", "params cbor_data is_cbor is_json")
evaluate_all_alarms = Replaceable(cloudwatch, "_evaluate_all_alarms")
evaluate_parent_alarms = Function(cloudwatch, "_evaluate_parent_alarms", "child")
dispatch_alarm_actions = Replaceable(cloudwatch, "_dispatch_alarm_actions", "alarm old_state new_state reason")
record_history = Replaceable(
    cloudwatch, "_record_history", "alarm_name old_state new_state reason alarm_type reason_data"
)
