"""``ministack.core``: the account and region of a request, tables of them, responses, ARNs, threads, routing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ministack.core import arn, concurrency, responses, router, sigv4

from tritonstack_local.emulator.ministack_adapter.private_names import Class, Function, Value

# --- The account and region of the request in progress ---

get_account_id = Function(responses, "get_account_id")
get_region = Function(responses, "get_region")
set_request_region = Function(responses, "set_request_region", "region")
request_scope = Function(responses, "request_scope", "account_id region")
"""A context manager: what runs in it is of that account and region."""
new_uuid = Function(responses, "new_uuid")

# --- Responses: status, headers, body ---

json_response = Function(responses, "json_response", "data * content_type")
error_response_json = Function(responses, "error_response_json", "code message status * content_type")

# --- ARNs, threads, routing, headers ---

parse_arn = Function(arn, "parse_arn", "value")
arn_parse_error = Value(arn, "ArnParseError", "type")
run_reentrant = Function(concurrency, "run_reentrant", "fn *args")
spawn_background = Function(concurrency, "spawn_background", "fn *args * thread_name")
detect_service = Function(router, "detect_service", "method path headers query_params")
service_patterns = Value(router, "SERVICE_PATTERNS", "dict")
decode_header_value = Function(sigv4, "decode_header_value", "value")


def is_ministacks(function: Callable[..., Any]) -> bool:
    """Whether a function is MiniStack's own, and none that the emulator put in its place."""
    return function.__module__.startswith("ministack.")


# --- Tables: mappings that show the rows of the request's account, or of its account and region ---

_MEMBERS = "_data get pop keys values items"
account_table = Class(responses, "AccountScopedDict", members=f"{_MEMBERS} get_scoped")
account_region_table = Class(
    responses, "AccountRegionScopedDict", members=f"{_MEMBERS} all_values all_items values_scoped items_scoped"
)


def places_of(table: Any) -> list[tuple[str, str]]:
    """The accounts and regions that a table has rows of, sorted."""
    return sorted({key[:2] for key in list(table._data)})


def rows_everywhere(table: Any) -> list[tuple[tuple[str, str, str], Any]]:
    """All rows of a table, by account, region and key."""
    return list(table._data.items())


def read_tables_whole() -> None:
    """Let threads, such as those that write logs, fill MiniStack's tables while others read them.

    ``list(rows.items())`` may collect garbage between two rows, which lets another thread in: then a stack's deletion
    fails with "dictionary changed size during iteration". The copy of a dictionary is made in one go.
    """

    def on_a_copy(read: Callable[..., Any]) -> Callable[..., Any]:
        def reading(table: Any, *arguments: Any) -> Any:
            whole = type(table)()
            whole._data = table._data.copy()
            return read(whole, *arguments)

        return reading

    for table in (account_table.current, account_region_table.current):
        for name in ("items", "values", "items_scoped", "values_scoped", "all_items"):
            if name in vars(table):
                setattr(table, name, on_a_copy(vars(table)[name]))
