"""Environments whose graphs and alarms are looked at."""

from __future__ import annotations

from typing import Any

from tritonstack.config import Environment, Thresholds
from tritonstack.monitoring.alarms import Alarm, build_alarms, endpoint_alarms, load_test_alarm
from tritonstack.monitoring.graphs import BuildProjects, variants_of

DIGITS: dict[str, Any] = {
    "name": "digits",
    "mode": "multi-model",
    "release": "24.09",
    "instance_type": "ml.g4dn.xlarge",
    "models": ["onnx", "ensemble"],
}
SINGLE: dict[str, Any] = {
    "name": "single",
    "mode": "single-model",
    "release": "24.09",
    "instance_type": "ml.g5.12xlarge",
    "models": ["bert"],
}
POOLS = ["ml.g5.xlarge", "ml.g4dn.xlarge"]
SCALING = {"minimum": 1, "maximum": 4, "invocations_per_instance": 600.0}
EVERYTHING = Thresholds(no_traffic_minutes=10, budget_usd_per_hour=5.0)
PROJECTS = BuildProjects(build="archives-project", engines="engines-project")
ENDPOINTS: dict[str, dict[str, Any]] = {
    "multi-model": DIGITS,
    "multi-model without cache": {**DIGITS, "model_cache": "disabled"},
    "single-model, four GPUs": SINGLE,
    "single-model, one GPU": {**SINGLE, "instance_type": "ml.g5.xlarge"},
    "enhanced metrics, four GPUs": {**SINGLE, "metrics": {"enhanced": True, "seconds": 10}},
    "scaled": {**DIGITS, "scaling": SCALING},
    "pools": {**{name: SINGLE[name] for name in SINGLE if name != "instance_type"}, "instance_types": POOLS},
    "no price": {**DIGITS, "instance_type": "ml.g6.xlarge", "accept_unlisted_instance_type": True},
}
"""One of each kind that has graphs of its own; of the last no source gives the price in us-east-1."""


def environment(*endpoints: dict[str, Any], **changes: Any) -> Environment:
    """Environment ``dev`` with these endpoints; ``digits`` where none is given."""
    settings = {
        "environment": "dev",
        "account": "123456789012",
        "region": "us-east-1",
        "production": False,
        "endpoints": list(endpoints) or [DIGITS],
    }
    return Environment.model_validate({**settings, **changes})


def alarms_of(environment: Environment, *, thresholds: Thresholds = EVERYTHING) -> list[Alarm]:
    """Every alarm of an environment whose scaled endpoints have rules."""
    found: list[Alarm] = []
    for endpoint in environment.endpoints:
        variants = variants_of(environment, endpoint)
        scaled = [each.settings for each in variants if each.settings.scaling is not None]
        rules = {each.variant_name: "at-maximum-rule" for each in scaled}
        found += endpoint_alarms(variants, thresholds, at_maximum_rules=rules)
    found += build_alarms(environment.environment, PROJECTS, undelivered_queue="undelivered")
    return [*found, load_test_alarm(environment.environment, undelivered_queue="load-tests-undelivered")]
