"""The dashboard of an environment: a section for each endpoint, and one for its builds."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.config import Environment
from tritonstack.monitoring.build_graphs import BuildProjects, build_graphs
from tritonstack.monitoring.cache_graphs import cache_graphs
from tritonstack.monitoring.call_graphs import call_graphs
from tritonstack.monitoring.graph import Dashboard, Section
from tritonstack.monitoring.instance_graphs import fleet_graphs, instance_graphs
from tritonstack.monitoring.variant import Variant, variant_of

BUILDS = "builds of the environment"
"""The key of that section; no endpoint's name has a space."""


def dashboard_of(environment: Environment, *, projects: BuildProjects | None) -> Dashboard:
    """What is shown of an environment. ``projects``: of its builds stack; None where it has none."""
    sections = [_endpoint_section(variant_of(environment, each)) for each in environment.endpoints]
    if projects is not None:
        note = "Builds that deployments start. An engine that SageMaker Processing builds shows in the archive's build."
        graphs = tuple(build_graphs(projects))
        sections.append(Section(key=BUILDS, title="Builds", notes=(note,), graphs=graphs))
    return Dashboard(name=f"tritonstack-{environment.environment}", region=environment.region, sections=tuple(sections))


def _endpoint_section(variant: Variant) -> Section:
    settings = variant.settings
    graphs = (*call_graphs(variant), *cache_graphs(variant), *instance_graphs(variant), *fleet_graphs(variant))
    title = f"{variant.endpoint_name}: {settings.mode}, {settings.instance_type}, Triton {settings.release}"
    return Section(key=settings.name, title=title, notes=tuple(_notes(variant)), graphs=graphs)


def _notes(variant: Variant) -> Iterator[str]:
    settings = variant.settings
    if variant.price is None:
        yield (
            f"No cost is shown: no source gives the price of {settings.instance_type} in this region. "
            "`tritonstack capacity prices update` asks AWS for it, and "
            f"`prices: {{{settings.instance_type}: …}}` in the environment's file sets it."
        )
    else:
        yield (
            f"Cost: {variant.price.usd_per_hour:g} USD an hour for an instance ({variant.price.source}). Instances and "
            "cost are known only while calls come."
        )
    if settings.multi_model and not variant.has_cache:
        yield "No hit ratio and no loaded models: the model cache is disabled, so that each call loads its model."
    if settings.instance.gpu_count > 1:
        yield (
            f"SageMaker adds the {settings.instance.gpu_count} GPUs of an instance up; shown is their average, in "
            "which one full GPU may hide."
        )
