"""What a default job of Inference Recommender recommends, as the input of the load tests that follow it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_CONFIGURATIONS, MOST_PARAMETERS, MOST_AT_ONCE = 10, 5, 5
"""Of one job (API reference: EndpointConfigurations, EnvironmentParameterRanges); its load tests at once: ours."""


def fed(job: Mapping[str, Any], recommendations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The request of a load test with the recommended container parameters, and instance types if it has none.

    A job of its own types takes the parameters that are recommended for the type, else for the first type of all.
    Variables whose values the settings name keep them. Without a recommendation the request stays as it is.
    """
    request: dict[str, Any] = dict(job["request"])
    found = [one for one in recommendations if one["EndpointConfiguration"].get("InstanceType")]
    if not found:
        return request
    configurations = [dict(one) for one in request["InputConfig"]["EndpointConfigurations"]]
    if job["instance_type"] is None:
        types = dict.fromkeys(one["EndpointConfiguration"]["InstanceType"] for one in found)
        configurations = [{**configurations[0], "InstanceType": each} for each in list(types)[:MOST_CONFIGURATIONS]]
    for one in configurations:
        _add_parameters(one, _parameters(one["InstanceType"], found))
    tests = sum(combinations(one) for one in configurations)
    limits = {"MaxNumberOfTests": tests, "MaxParallelOfTests": min(tests, MOST_AT_ONCE)}
    given = {**request["InputConfig"], "EndpointConfigurations": configurations, "ResourceLimit": limits}
    return {**request, "InputConfig": given}


def combinations(configuration: Mapping[str, Any]) -> int:
    """The load tests of one endpoint configuration: one for each combination of its parameters' values."""
    ranges = configuration.get("EnvironmentParameterRanges", {}).get("CategoricalParameterRanges", [])
    return math.prod(len(each["Value"]) for each in ranges)


def parameters_of(recommendation: Mapping[str, Any]) -> dict[str, str]:
    """The container's environment variables that a recommendation was measured with."""
    found = recommendation.get("ModelConfiguration", {}).get("EnvironmentParameters") or ()
    return {str(each["Key"]): str(each["Value"]) for each in found}


def _parameters(instance_type: str, found: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    own = [one for one in found if one["EndpointConfiguration"]["InstanceType"] == instance_type]
    return parameters_of((own or found)[0])


def _add_parameters(configuration: dict[str, Any], recommended: Mapping[str, str]) -> None:
    ranges = list(configuration.get("EnvironmentParameterRanges", {}).get("CategoricalParameterRanges", []))
    named = {each["Name"] for each in ranges}
    ranges += [{"Name": name, "Value": [value]} for name, value in recommended.items() if name not in named]
    if ranges:
        configuration["EnvironmentParameterRanges"] = {"CategoricalParameterRanges": ranges[:MOST_PARAMETERS]}
