"""``variants``: two production variants of a single-model endpoint, which share its requests by weight (A/B)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from tritonstack.catalogue import load_catalogue
from tritonstack.config.container import ContainerSettings
from tritonstack.config.fields import Name, SettingsModel, repeated
from tritonstack.config.scaling import Scaling
from tritonstack.errors import Location, Problem
from tritonstack.naming import NAME_PATTERN

if TYPE_CHECKING:
    from tritonstack.config.endpoint import EndpointSettings


class VariantSettings(SettingsModel):
    """One production variant. What it leaves out is the endpoint's."""

    name: Annotated[str, Field(pattern=NAME_PATTERN, max_length=40)] = Field(
        description="Name within the endpoint; at SageMaker it is <name>-<instance type>, current-g4dn-xlarge."
    )
    model: Name = Field(description="What it serves: one archive, or a folder under model_repos/ that has one.")
    weight: float = Field(
        ge=0, description="Its share of the requests is this divided by the sum of both; 0: only clients that name it."
    )
    instance_type: str | None = Field(
        default=None, description="Another size with the GPU of the endpoint's type; null: the endpoint's type."
    )
    initial_instance_count: int | None = Field(
        default=None,
        ge=1,
        description="Instances to start with; null: the minimum of its own scaling, else the endpoint's.",
    )
    scaling: Scaling | None = Field(
        default=None, description="How its number of instances follows its load; null: as the endpoint's."
    )
    container: ContainerSettings | None = Field(
        default=None, description="Settings of its Triton container; null: the endpoint's."
    )

    def of(self, endpoint: EndpointSettings) -> EndpointSettings:
        """The endpoint's settings as they hold for this variant, which is then its only one."""
        least = None if self.scaling is None else self.scaling.minimum
        own = {
            "instance_type": self.instance_type,
            "initial_instance_count": self.initial_instance_count or least,
            "scaling": self.scaling,
            "container": self.container,
        }
        given = {name: value for name, value in own.items() if value is not None}
        return endpoint.model_copy(update={**given, "models": (self.model,), "variants": (self,)})


def check_variants(*, endpoint: EndpointSettings, location: Location) -> Iterator[Problem]:
    """Check an endpoint's ``variants``, without the settings that each may have of its own."""
    variants, place = endpoint.variants, (*location, "variants")
    if not variants:
        return
    if len(variants) == 1:
        yield Problem(location=place, found="one variant", allowed="two, or none: `models` then names what is served")
    if endpoint.multi_model:
        yield Problem(
            location=place,
            found=f"{len(variants)} variants on a multi-model endpoint",
            allowed="nothing: there SageMaker has one variant (developer guide: Model Deployment Feature Matrix)",
            advice="Set mode: single-model, or serve both as `models` and let clients choose.",
        )
        return
    yield from repeated((each.name for each in variants), location=place)
    served = tuple(each.model for each in variants)
    if endpoint.models != served:
        yield Problem(
            location=(*location, "models"),
            found=f"{', '.join(endpoint.models)} together with variants of {', '.join(served)}",
            allowed="nothing: variants name the models",
            advice="Remove `models`.",
        )
    if not any(each.weight for each in variants):
        yield Problem(
            location=(*place, 0, "weight"), found="0, as of every other variant", allowed="one weight above 0"
        )
    if endpoint.rollout is not None and endpoint.rollout.kind == "rolling":
        yield Problem(
            location=(*location, "rollout", "kind"),
            found="rolling with several variants",
            allowed="all-at-once, canary or linear: SageMaker rolls no endpoint with several variants (developer "
            "guide, deployment guardrails: Exclusions)",
        )
    scaled = [each.scaling is not None for each in endpoint.variant_settings]
    if any(scaled) and not all(scaled):
        yield Problem(
            location=(*place, scaled.index(False), "scaling"),
            found="null, and the other variant is scaled",
            allowed="scaling of both or of none: an update keeps the live instance count of a scaled endpoint for all "
            "variants (RetainAllVariantProperties), so that initial_instance_count of this one would have no effect",
            advice="Set scaling for the endpoint, or for each variant.",
        )
    yield from _check_gpus(endpoint, location=place)


def _check_gpus(endpoint: EndpointSettings, *, location: Location) -> Iterator[Problem]:
    """The archives of an endpoint, its engines among them, are under one platform: one release, one GPU."""
    rows = load_catalogue().instances
    gpu = rows[endpoint.instance_type].gpu if endpoint.instance_type in rows else None
    for index, each in enumerate(endpoint.variants):
        own = rows.get(each.instance_type or "")
        if gpu is None or own is None or own.gpu == gpu:
            continue
        yield Problem(
            location=(*location, index, "instance_type"),
            found=f"{own.name} with {own.gpu}, and the endpoint's {endpoint.instance_type} has {gpu}",
            allowed=f"a type with {gpu}: {', '.join(row.name for row in rows.values() if row.gpu == gpu)}",
            advice="The archives of an endpoint, engines included, are built for one GPU. Serve the other GPU from an "
            "endpoint of its own.",
        )
