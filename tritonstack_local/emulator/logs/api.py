"""CloudWatch Logs: metric filters, evaluated on each line that is written, and Logs Insights.

MiniStack keeps metric filters and evaluates none, takes most of a filter pattern for words, and ignores what it does
not have of a query. Here the patterns of metric filters, subscription filters and FilterLogEvents are CloudWatch's
(``filter_pattern``), and StartQuery runs a query (``insights``) or refuses it with the reason.
"""

from __future__ import annotations

import contextlib
import json
import re
import uuid
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.cloudformation.provisioning import Properties, Provisioned, complete, register
from tritonstack_local.emulator.logs import filter_pattern, insights
from tritonstack_local.emulator.logs.filter_pattern import FilterPattern, Values
from tritonstack_local.emulator.logs.reader import SyntaxProblemError
from tritonstack_local.emulator.ministack_adapter import logs
from tritonstack_local.emulator.ministack_adapter.cloudwatch import record_metric
from tritonstack_local.emulator.ministack_adapter.core import get_account_id, get_region
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.services import JsonService, call

_API = "CloudWatch Logs API reference"


def pattern_of(text: str) -> FilterPattern:
    """A filter pattern. Raises RefusedError where it is none, or not evaluated here."""
    try:
        return filter_pattern.parse(text)
    except SyntaxProblemError as error:
        raise RefusedError("InvalidParameterException", str(error), source="tritonstack_local.emulator.logs") from error


def _answer(response: Any) -> dict[str, Any]:
    """MiniStack's response as a document. Raises RefusedError for an error."""
    status, _, body = response
    document: dict[str, Any] = json.loads(body or b"{}")
    if status >= 400:
        code = str(document.get("__type", "InvalidParameterException")).rpartition("#")[2]
        raise RefusedError(code, str(document.get("message", "")), source="MiniStack's logs", status=status)
    return document


# --- Metric filters ---


def put_metric_filter(request: dict[str, Any]) -> dict[str, Any]:
    """Keep a filter whose pattern is evaluated here, and gives the values that its metrics use."""
    _check_filter(request["filterPattern"], request["metricTransformations"])
    return _answer(logs.put_metric_filter(request))


def _check_filter(pattern: str, transformations: list[dict[str, Any]]) -> None:
    read = pattern_of(pattern)
    for each in transformations:
        dimensions = each.get("dimensions", {})
        used = [*dimensions.values(), *([each["metricValue"]] if each["metricValue"].startswith("$") else [])]
        problems = [f"{name} is not taken from a line by {pattern}" for name in used if not read.takes(name)]
        if not each["metricValue"].startswith("$") and _number(each["metricValue"]) is None:
            problems.append(f"metricValue {each['metricValue']} is neither a number nor $… of the pattern")
        if len(dimensions) > 3:
            problems.append(f"{len(dimensions)} dimensions: a metric has at most 3 here")
        if dimensions and "defaultValue" in each:
            problems.append("a metric with dimensions has no defaultValue")
        if problems:
            source = "CloudWatch Logs user guide, Configuring metric values for a metric filter"
            raise RefusedError("InvalidParameterException", "; ".join(problems), source=source)


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text, re.ASCII) else None


def test_metric_filter(request: dict[str, Any]) -> dict[str, Any]:
    """The lines of a request that a pattern matches, by their number from 1, and the values that it takes of them."""
    pattern = pattern_of(request["filterPattern"])
    lines = enumerate(request["logEventMessages"], start=1)
    return {
        "matches": [
            {"eventNumber": number, "eventMessage": line, "extractedValues": dict(values)}
            for number, line in lines
            if (values := pattern.match(line)) is not None
        ]
    }


class MetricFilters:
    """What the filters of log groups count."""

    def __init__(self) -> None:
        """Nothing was counted."""
        self._counted: dict[tuple[str, ...], int] = {}  # metric of a filter → its last minute with a value

    def put_log_events(self, request: dict[str, Any]) -> dict[str, Any]:
        """Keep the lines, and write the metrics of the log group's filters for them."""
        answer = _answer(logs.put_log_events(request))
        group, lines = request["logGroupName"], [event["message"] for event in request["logEvents"]]
        for (of_group, name), each in list(logs.metric_filters().items()):
            if of_group == group:
                pattern = pattern_of(each["filterPattern"])
                matches = [values for line in lines if (values := pattern.match(line)) is not None]
                for to in each["metricTransformations"]:
                    self._write(matches, to, filter_name=f"{group} {name}")
        return answer

    def _write(self, matches: list[Values], to: Mapping[str, Any], *, filter_name: str) -> None:
        """A value for each line, or the default one for a minute with lines none of which matches."""
        key = (get_account_id(), get_region(), filter_name, to["metricNamespace"], to["metricName"])
        minute = int(clock.now() // 60)
        data = [datum for values in matches if (datum := _datum(values, to)) is not None]
        if not data and "defaultValue" in to and self._counted.get(key) != minute:
            data = [(float(to["defaultValue"]), {})]
        for value, dimensions in data:
            record_metric(to["metricNamespace"], to["metricName"], value, to.get("unit", "None"), dimensions)
            self._counted[key] = minute


def _datum(values: Values, to: Mapping[str, Any]) -> tuple[float, dict[str, str]] | None:
    """A line's value and dimensions; None where it lacks one of them, or its value is no number."""
    value = _number(values.get(to["metricValue"], "") if to["metricValue"].startswith("$") else to["metricValue"])
    dimensions = {name: values[of] for name, of in to.get("dimensions", {}).items() if of in values}
    return None if value is None or len(dimensions) < len(to.get("dimensions", {})) else (value, dimensions)


# --- Other uses of filter patterns ---


def filter_log_events(request: dict[str, Any]) -> dict[str, Any]:
    """The lines of a log group that a pattern matches."""
    pattern_of(request.get("filterPattern", ""))  # refused here, before MiniStack reads it with _matcher
    return _answer(logs.filter_log_events(request))


def put_subscription_filter(request: dict[str, Any]) -> dict[str, Any]:
    """Keep a subscription filter whose pattern is evaluated here."""
    pattern_of(request["filterPattern"])
    return _answer(logs.put_subscription_filter(request))


def _matcher(pattern: str) -> Any:
    """MiniStack's ``_compile_filter_pattern``."""
    match = pattern_of(pattern or "").match
    return lambda line: match(line) is not None


def _subscribed(pattern: str, line: str) -> bool:
    """MiniStack's ``_subscription_pattern_matches``."""
    return pattern_of(pattern or "").match(line or "") is not None


# --- Logs Insights ---


class Queries:
    """Saved queries, and those that were run, by account and region."""

    def __init__(self) -> None:
        """None is saved, and none was run."""
        self._saved: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._run: dict[tuple[str, str, str], dict[str, Any]] = {}

    def put_query_definition(self, request: dict[str, Any]) -> dict[str, Any]:
        """Save a query, or change the one with its id. It is read when it is run."""
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

    def start_query(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run a query; it is complete at once."""
        if (language := request.get("queryLanguage", "CWLI")) != "CWLI":
            sentence = f"queryLanguage {language} is not in the local AWS; it has CWLI, Logs Insights' own"
            raise RefusedError("InvalidParameterException", sentence, source="tritonstack_local.emulator.logs")
        groups = _log_groups(request)
        try:
            query = insights.parse(request["queryString"])
        except SyntaxProblemError as error:
            raise RefusedError(
                "MalformedQueryException", str(error), source="tritonstack_local.emulator.logs"
            ) from error
        lines = [
            line for group in groups for line in _lines(group, since=request["startTime"], until=request["endTime"])
        ]
        rows, matched = query.run(lines, limit=request.get("limit"))
        made = str(uuid.uuid4())
        self._run[self._key(made)] = {
            "queryLanguage": language,
            "status": "Complete",
            "results": [[{"field": name, "value": text} for name, text in row.items()] for row in rows],
            "statistics": {
                "recordsMatched": float(matched),
                "recordsScanned": float(len(lines)),
                "bytesScanned": float(sum(len(line.message.encode()) for line in lines)),
            },
        }
        return {"queryId": made}

    def get_query_results(self, request: dict[str, Any]) -> dict[str, Any]:
        """The rows of a query that was run."""
        found = self._run.get(self._key(request["queryId"]))
        if found is None:
            raise _no_query(request["queryId"])
        return found

    def stop_query(self, request: dict[str, Any]) -> dict[str, Any]:
        """Refuse: a query here is complete once it has started."""
        if self._key(request["queryId"]) not in self._run:
            raise _no_query(request["queryId"])
        sentence = f"The specified query is not running: {request['queryId']}"
        raise RefusedError("InvalidParameterException", sentence, source=_API)

    @staticmethod
    def _key(query: str) -> tuple[str, str, str]:
        return get_account_id(), get_region(), query


def _no_query(query: str) -> RefusedError:
    return RefusedError("ResourceNotFoundException", f"The specified query does not exist: {query}", source=_API)


def _log_groups(request: dict[str, Any]) -> list[str]:
    """The log groups of a query, in one of three members. Raises RefusedError where one is not there."""
    given = [name for name in ("logGroupName", "logGroupNames", "logGroupIdentifiers") if request.get(name)]
    if len(given) != 1:
        sentence = "one of logGroupName, logGroupNames and logGroupIdentifiers is needed"
        raise RefusedError("InvalidParameterException", sentence, source=_API)
    names = request[given[0]]
    # An identifier is a name or an ARN, arn:aws:logs:REGION:ACCOUNT:log-group:NAME.
    groups = [
        re.sub(r"^arn:[^:]*:logs:[^:]*:[^:]*:log-group:", "", each)
        for each in ([names] if isinstance(names, str) else names)
    ]
    for group in groups:
        if group not in logs.log_groups():
            sentence = f"The specified log group does not exist: {group}"
            raise RefusedError("ResourceNotFoundException", sentence, source=_API)
    return list(dict.fromkeys(groups))


_SECONDS = 10**11
"""Greater times of StartQuery are milliseconds since the epoch."""


def _lines(group: str, *, since: int, until: int) -> Iterator[insights.Line]:
    """The lines of a log group between two times, both included; seconds or milliseconds since the epoch."""
    first = since if since > _SECONDS else since * 1000
    last = until if until > _SECONDS else until * 1000 + 999
    for stream, kept in list(logs.log_groups()[group]["streams"].items()):
        for event in list(kept["events"]):
            if first <= event["timestamp"] <= last:
                yield insights.Line(
                    pointer=str(event["eventId"]),
                    milliseconds=event["timestamp"],
                    ingested=event["ingestionTime"],
                    message=event["message"],
                    stream=stream,
                    log=f"{get_account_id()}:{group}",
                )


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


def _check_subscription_resource(properties: Properties) -> None:
    pattern_of(properties["FilterPattern"])


def _check_filter_resource(properties: Properties) -> None:
    transformations = [_request(each) for each in properties["MetricTransformations"]]
    for each in transformations:
        if "dimensions" in each:  # a list of Key and Value in a template, a map in the API
            each["dimensions"] = {pair["Key"]: pair["Value"] for pair in each["dimensions"]}
    _check_filter(properties["FilterPattern"], transformations)


def install() -> None:
    """Serve these operations in the place of MiniStack's, and provision their resource types."""
    logs.compile_filter_pattern.replace(_matcher)
    logs.subscription_pattern_matches.replace(_subscribed)
    owner = SimpleNamespace(
        put_metric_filter=put_metric_filter,
        test_metric_filter=test_metric_filter,
        filter_log_events=filter_log_events,
        put_subscription_filter=put_subscription_filter,
    )
    JsonService(owner, MetricFilters(), Queries(), service="logs").serve_first(logs.handle_request)
    complete(
        "AWS::Logs::MetricFilter",
        check=_check_filter_resource,
        apply=lambda _made, _new, _old: None,
    )
    complete(
        "AWS::Logs::SubscriptionFilter",
        check=_check_subscription_resource,
        apply=lambda _made, _new, _old: None,
    )
    register("AWS::Logs::QueryDefinition", _QueryResource())
