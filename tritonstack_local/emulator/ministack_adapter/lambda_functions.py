"""``ministack.services.lambda_svc`` and ``ministack.core.lambda_runtime``: functions, and how they are run."""

from __future__ import annotations

from ministack.core import lambda_runtime
from ministack.services import lambda_svc

from tritonstack_local.emulator.ministack_adapter.private_names import Function, Replaceable, Value

functions = Value(lambda_svc, "_functions", "AccountRegionScopedDict")
create_function = Replaceable(lambda_svc, "_create_function", "data")
update_config = Replaceable(lambda_svc, "_update_config", "name data")
put_event_invoke_config = Replaceable(lambda_svc, "_put_event_invoke_config", "func_name qualifier data")
get_func_record_for_ref = Function(lambda_svc, "_get_func_record_for_ref", "function_ref")
execution_record_for_config = Function(lambda_svc, "_execution_record_for_config", "func config")
execute_function = Function(lambda_svc, "_execute_function_with_config_scope", "func event")
route_async_failure = Function(lambda_svc, "_route_async_failure", "target_arn func_name event result")
emit_lambda_logs = Replaceable(
    lambda_svc, "_emit_lambda_logs", "func request_id log_text error duration_ms * log_source"
)
execution_credentials = Replaceable(lambda_runtime, "execution_credentials", "config", also=(lambda_svc,))
invalidate_worker = Function(lambda_svc, "invalidate_worker", "func_name")
