"""Lines that Triton writes when it loads or unloads a model: as CloudWatch metrics, and as a Logs Insights query.

Triton's core writes ``successfully loaded 'NAME'`` and ``successfully unloaded 'NAME' version 1`` with its log of
information, which ``serve`` leaves on (``SAGEMAKER_TRITON_LOG_INFO``).
An ensemble is a line for itself and one for each of its models. On a multi-model endpoint NAME begins with the folder
that SageMaker unpacked the archive into.
"""

from __future__ import annotations

from dataclasses import dataclass

from tritonstack import naming
from tritonstack.config import EndpointSettings, Environment


@dataclass(frozen=True, kw_only=True)
class LogMetric:
    """A metric that counts the lines with a phrase."""

    name: str
    phrase: str
    label: str  # in the graph

    @property
    def pattern(self) -> str:
        """The filter pattern (CloudWatch Logs user guide, "Filter pattern syntax": a phrase in double quotes)."""
        return f'"{self.phrase}"'


LOADED = LogMetric(name="ModelsLoaded", phrase="successfully loaded '", label="loaded")
UNLOADED = LogMetric(name="ModelsUnloaded", phrase="successfully unloaded '", label="unloaded")
LOG_METRICS = (LOADED, UNLOADED)
QUERY = """fields @timestamp, @logStream, @message
| filter @message like /successfully (un)?loaded '/
| parse @message /successfully (?<event>(un)?loaded) '(?<model>[^']+)'/
| display @timestamp, event, model, @logStream
| sort @timestamp desc
| limit 1000"""
"""Each load and unload, the newest first, with the instance's log stream."""


def counts_log_lines(environment: Environment, endpoint: EndpointSettings) -> bool:
    """Whether the lines of an endpoint are counted.

    A metric filter needs the log group: it certainly exists, before the endpoint, where ``logs.endpoint_days`` is set.
    A single-model endpoint loads its model once.
    """
    return environment.logs.endpoint_days is not None and endpoint.multi_model


def log_metrics_namespace(environment: Environment, endpoint: EndpointSettings) -> str:
    """The namespace of an endpoint's counts: a filter pattern of words cannot give a metric dimensions."""
    return naming.log_metrics_namespace(endpoint.sagemaker_name(environment.environment))
