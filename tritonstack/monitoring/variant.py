"""The production variant that graphs and alarms are about, and the metrics that both read of it."""

from __future__ import annotations

from dataclasses import dataclass

from tritonstack import aws_names
from tritonstack.config import Endpoint, Environment
from tritonstack.monitoring.metric import Metric


@dataclass(frozen=True, kw_only=True)
class Price:
    """USD an hour of one instance, and who says so."""

    usd_per_hour: float
    source: str


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One endpoint's production variant.

    Attributes:
        settings: the endpoint's.
        endpoint_name: at SageMaker.
        price: of one of its instances; None where no source gives it.
    """

    settings: Endpoint
    endpoint_name: str
    price: Price | None

    @property
    def dimensions(self) -> tuple[tuple[str, str], ...]:
        """EndpointName and VariantName: strings, so that no stack refers to another."""
        return tuple(aws_names.variant_dimensions(self.endpoint_name, self.settings.variant_name).items())

    @property
    def has_cache(self) -> bool:
        """Whether models stay loaded between calls, so that a hit ratio says something."""
        return self.settings.model_cache_setting == "Enabled"

    def calls(self, name: str, statistic: str) -> Metric:
        """A metric that SageMaker writes about calls and about loading models."""
        return Metric(namespace=aws_names.SAGEMAKER, name=name, dimensions=self.dimensions, statistic=statistic)

    def instance(self, name: str, statistic: str) -> Metric:
        """A metric that each instance writes once a minute."""
        return Metric(namespace=aws_names.INSTANCES, name=name, dimensions=self.dimensions, statistic=statistic)


def variant_of(environment: Environment, endpoint: Endpoint) -> Variant:
    """The variant of one endpoint of an environment."""
    known = environment.price(endpoint.instance_type)
    price = None if known is None else Price(usd_per_hour=known.usd_per_hour, source=known.short)
    return Variant(settings=endpoint, endpoint_name=endpoint.sagemaker_name(environment.environment), price=price)


def number(value: float) -> str:
    """A number as metric math reads it: no exponent, no digits that say nothing."""
    return f"{value:.10f}".rstrip("0").rstrip(".")
