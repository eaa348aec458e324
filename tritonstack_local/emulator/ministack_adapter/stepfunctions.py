"""``ministack.services.stepfunctions``: state machines, executions and their tasks."""

from __future__ import annotations

from ministack.services import stepfunctions

from tritonstack_local.emulator.ministack_adapter.private_names import Function, Replaceable, Value

state_machines = Value(stepfunctions, "_state_machines", "AccountRegionScopedDict")
executions = Value(stepfunctions, "_executions", "AccountRegionScopedDict")
create_state_machine = Replaceable(stepfunctions, "_create_state_machine", "data")
run_execution = Replaceable(stepfunctions, "_run_execution", "exec_arn")
call_lambda = Replaceable(stepfunctions, "_call_lambda", "func_ref event")
execution_error = Function(stepfunctions, "_ExecutionError", "error cause")
"""The exception of a task that failed."""
