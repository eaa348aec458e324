"""``ministack.services.cloudformation``: stacks, operations, resource types, custom resources, wait conditions."""

from __future__ import annotations

from ministack.services import cloudformation
from ministack.services.cloudformation import (
    changesets,
    custom_resource,
    engine,
    handlers,
    helpers,
    provisioners,
    stacks,
    wait_conditions,
)

from tritonstack_local.emulator.ministack_adapter.private_names import Function, Replaceable, Value

# --- Stacks and change sets ---

stacks_by_name = Value(cloudformation, "_stacks", "AccountRegionScopedDict")
stack_events = Value(cloudformation, "_stack_events", "AccountRegionScopedDict")
"""Events by the stack's id, the oldest first."""
find_change_set = Function(changesets, "_find_change_set", "cs_name stack_name")

# --- Requests ---

action_handlers = Value(
    handlers,
    "_ACTION_HANDLERS",
    "dict",
    keys="CreateStack UpdateStack DeleteStack CancelUpdateStack ContinueUpdateRollback RollbackStack CreateChangeSet"
    " ExecuteChangeSet DescribeStacks DescribeStackEvents",
)
parameter = Function(handlers, "_p", "params key")
resolve_stack = Function(handlers, "_resolve_stack", "stack_name")
resolve_template = Replaceable(handlers, "_resolve_template", "params", also=(changesets,), left_in=(helpers,))
error_response = Function(handlers, "_error", "code message")
xml_response = Function(handlers, "_xml", "status root_tag inner")
evaluate_conditions = Replaceable(
    engine, "_evaluate_conditions", "template params", also=(stacks, handlers, changesets)
)

# --- Operations on a stack ---

add_event = Replaceable(
    stacks,
    "_add_event",
    "stack_id stack_name logical_id resource_type status reason physical_id detailed_status",
    left_in=(changesets, handlers),  # which add events of the stack itself
)
client_request_token = Value(stacks, "CLIENT_REQUEST_TOKEN", "ContextVar")
resolve_stack_outputs = Replaceable(
    stacks, "_resolve_stack_outputs", "outputs_defs conditions resources param_values mappings stack_name stack_id"
)
roll_back_operation = Replaceable(
    stacks, "_roll_back_operation", "stack_name stack_id stack operation reason_override", also=(handlers,)
)
continue_update_rollback = Replaceable(
    stacks, "_continue_update_rollback_async", "stack_name stack_id resources_to_skip", also=(handlers,)
)
revert_update = Replaceable(
    stacks,
    "_revert_update",
    "stack_id stack_name logical_id rtype physical_id applied_props previous_props attrs record",
)
update_keeping_seed = Replaceable(stacks, "_update_keeping_seed", "*args")
"""Gets what ``update_resource`` gets."""
delete_stack = Function(stacks, "_delete_stack_async", "stack_name stack_id")
runs_on_worker_thread = Replaceable(stacks, "_runs_on_worker_thread", "resource_type")
sends_back_failed_update = Replaceable(stacks, "_sends_back_failed_update", "resource_type")

# --- Resources and their types ---

provision_resource = Replaceable(
    provisioners, "_provision_resource", "resource_type logical_id props stack_name", also=(stacks,)
)
update_resource = Replaceable(
    provisioners,
    "_update_resource",
    "resource_type physical_id old_props new_props stack_name logical_id old_attrs",
    also=(stacks,),
)
delete_resource = Replaceable(
    provisioners, "_delete_resource", "resource_type physical_id props stack_name logical_id", also=(stacks,)
)
delete_resource_of_stack = Replaceable(
    stacks, "_delete_resource", "resource_type physical_id props stack_name logical_id", left_in=(provisioners,)
)
"""The same, but for the deletion of what a replacement replaced."""
replacing_change = Function(provisioners, "_replacing_change", "resource_type old_props new_props")
resource_handlers = Value(
    provisioners,
    "_RESOURCE_HANDLERS",
    "dict",
    keys="AWS::CodeBuild::Project AWS::EC2::SecurityGroup AWS::EC2::Subnet AWS::IAM::ManagedPolicy AWS::IAM::Role"
    " AWS::Lambda::Function AWS::S3::Bucket AWS::SNS::Topic AWS::StepFunctions::StateMachine",
)
"""Type → ``create``, ``update`` and ``delete``."""
replacing_properties = Value(provisioners, "_REPLACING_PROPERTIES", "dict")
conditionally_replacing_properties = Value(provisioners, "_CONDITIONALLY_REPLACING_PROPERTIES", "dict")
stack_tag_property = Value(provisioners, "_STACK_TAG_PROPERTY", "dict")
physical_name = Function(provisioners, "_physical_name", "stack_name logical_id * max_len")
with_stack_tags = Replaceable(
    provisioners,
    "_with_stack_tags",
    "resource_type props stack_tags stack_name stack_id logical_id",
    also=(stacks,),
)

# --- Custom resources and wait conditions ---

invoke_custom_resource = Replaceable(
    custom_resource,
    "invoke_custom_resource",
    "request_type logical_id props stack_name stack_id resource_type physical_id old_props",
)
response_url = Function(custom_resource, "_response_url", "token")
normalise_resource_properties = Function(custom_resource, "_normalise_resource_properties", "value")
pending_responses = Value(custom_resource, "_pending", "dict")
"""Token → an event that is set when the response is there, and the response."""
wait_for_signals = Replaceable(
    wait_conditions, "wait_for", "token stack_id stack_name logical_id resource_type count timeout_s"
)
wait_condition_lock = Value(wait_conditions, "_lock", "lock")
wait_condition_changed = Value(wait_conditions, "_changed", "Condition")
wait_condition_handles = Value(wait_conditions, "_handles", "dict")
"""Token → the signals that came to it."""
wait_conditions_waiting = Value(wait_conditions, "_waiting", "dict")
