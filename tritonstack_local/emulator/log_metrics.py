"""CloudWatch Logs: metric filters, evaluated on each line that is written, and saved queries.

MiniStack keeps metric filters and evaluates none. Here a pattern of words and of phrases in double quotes is evaluated
(user guide, "Filter pattern syntax for metric filters": all of them must be in the message, in any order, case
matters); every other syntax is refused, for its metric would stay empty. Saved queries are kept, and none is run.
"""

from __future__ import annotations

import contextlib
import json
import re
import uuid
from types import SimpleNamespace
from typing import Any

from tritonstack_local.emulator.cloudformation.provisioning import Properties, Provisioned, complete, register
from tritonstack_local.emulator.ministack_adapter import logs
from tritonstack_local.emulator.ministack_adapter.cloudwatch import record_metric
from tritonstack_local.emulator.ministack_adapter.core import get_account_id, get_region
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.services import JsonService, call

_TERM = re.compile(r'"((?:[^"\\]|\\.)+)"|([\w.\'/:@-]+)')
_UNSUPPORTED = ("?", "-", "%", "{", "[")
"""Beginnings of optional and excluded terms, regular expressions, and patterns for JSON and space-delimited lines."""


def terms_of(pattern: str) -> tuple[str, ...]:
    """The words and phrases that a message must have. Raises RefusedError where it is another syntax."""
    terms: list[str] = []
    rest = pattern.strip()
    while rest:
        match = _TERM.match(rest)
        if match is None or rest.startswith(_UNSUPPORTED):
            sentence = (
                f"the local AWS evaluates words and phrases in double quotes alone, not the filter pattern {pattern}"
            )
            raise RefusedError("InvalidParameterException", sentence, source="tritonstack_local.emulator")
        terms.append(match[2] or re.sub(r"\\(.)", r"\1", match[1]))
        rest = rest[match.end() :].lstrip()
    return tuple(terms)


def count_lines(group: str, messages: list[str]) -> None:
    """Write the metrics of a log group's filters for new lines. Values that are no number write nothing, as on AWS."""
    for (name, _), each in list(logs.metric_filters().items()):
        if name != group:
            continue
        terms = terms_of(each["filterPattern"])
        matched = sum(all(term in message for term in terms) for message in messages)
        for to in each["metricTransformations"] if matched else ():
            try:
                value = float(to["metricValue"])
            except ValueError:  # a field of a pattern that is refused here
                continue
            for _ in range(matched):
                record_metric(to["metricNamespace"], to["metricName"], value, to.get("unit", "None"), {})


def _answer(response: Any) -> dict[str, Any]:
    """MiniStack's response as a document. Raises RefusedError for an error."""
    status, _, body = response
    document: dict[str, Any] = json.loads(body or b"{}")
    if status >= 400:
        code = str(document.get("__type", "InvalidParameterException")).rpartition("#")[2]
        raise RefusedError(code, str(document.get("message", "")), source="MiniStack's logs", status=status)
    return document


def put_log_events(request: dict[str, Any]) -> dict[str, Any]:
    """Keep the lines, and count them."""
    answer = _answer(logs.put_log_events(request))
    count_lines(request["logGroupName"], [event["message"] for event in request["logEvents"]])
    return answer


def put_metric_filter(request: dict[str, Any]) -> dict[str, Any]:
    """Keep a filter whose pattern is evaluated here."""
    terms_of(request["filterPattern"])
    return _answer(logs.put_metric_filter(request))


class QueryDefinitions:
    """Saved queries of Logs Insights, by account and region."""

    def __init__(self) -> None:
        """None is saved."""
        self._saved: dict[tuple[str, str, str], dict[str, Any]] = {}

    def put_query_definition(self, request: dict[str, Any]) -> dict[str, Any]:
        """Save a query, or change the one with its id."""
        found = request.get("queryDefinitionId")
        if found is not None and self._key(found) not in self._saved:
            raise _no_query(found)
        made = found or str(uuid.uuid4())
        kept = {name: value for name, value in request.items() if name != "clientToken"}
        self._saved[self._key(made)] = {**kept, "queryDefinitionId": made}
        return {"queryDefinitionId": made}

    def delete_query_definition(self, request: dict[str, Any]) -> dict[str, Any]:
        """Delete a saved query."""
        if self._saved.pop(self._key(request["queryDefinitionId"]), None) is None:
            raise _no_query(request["queryDefinitionId"])
        return {"success": True}

    def describe_query_definitions(self, request: dict[str, Any]) -> dict[str, Any]:
        """The saved queries, all on one page, whose names begin with a prefix."""
        here = self._key("")[:2]
        prefix = request.get("queryDefinitionNamePrefix", "")
        found = [each for key, each in self._saved.items() if key[:2] == here and each["name"].startswith(prefix)]
        return {"queryDefinitions": sorted(found, key=lambda each: str(each["name"]))}

    @staticmethod
    def _key(query: str) -> tuple[str, str, str]:
        return get_account_id(), get_region(), query


def _no_query(query: str) -> RefusedError:
    sentence = f"The specified query definition does not exist: {query}"
    return RefusedError("ResourceNotFoundException", sentence, source="CloudWatch Logs API reference")


class _QueryResource:
    """``AWS::Logs::QueryDefinition``."""

    def create(self, _logical_id: str, properties: Properties, _stack_name: str) -> Provisioned:
        made = call("logs", "PutQueryDefinition", _request(properties))["queryDefinitionId"]
        return made, {"QueryDefinitionId": made}

    def update(self, query: str, _old: Properties, new: Properties, _stack_name: str) -> Provisioned:
        try:
            call("logs", "PutQueryDefinition", {**_request(new), "queryDefinitionId": query})
        except RefusedError as refusal:
            if refusal.code != "ResourceNotFoundException":
                raise
            return self.create("", new, "")  # it was deleted outside of the stack, or the emulator began anew
        return query, {"QueryDefinitionId": query}

    def delete(self, query: str, _properties: Properties) -> None:
        with contextlib.suppress(RefusedError):
            call("logs", "DeleteQueryDefinition", {"queryDefinitionId": query})


def _request(properties: Properties) -> dict[str, Any]:
    return {f"{name[0].lower()}{name[1:]}": value for name, value in properties.items()}


def _check_pattern(properties: Properties) -> None:
    terms_of(properties["FilterPattern"])


def install() -> None:
    """Serve these operations in the place of MiniStack's, and provision their resource types."""
    owner = SimpleNamespace(put_log_events=put_log_events, put_metric_filter=put_metric_filter)
    JsonService(owner, QueryDefinitions(), service="logs").serve_first(logs.handle_request)
    complete(
        "AWS::Logs::MetricFilter",
        check=_check_pattern,
        apply=lambda _made, _new, _old: None,
    )
    register("AWS::Logs::QueryDefinition", _QueryResource())
