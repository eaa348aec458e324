"""What jobs make and may leave behind: endpoints, their configs, models.

Their names begin with the job's, cut to forty characters (API reference: CreateInferenceRecommendationsJob,
``JobName``); a job's name is shorter than that. Inference Recommender removes its endpoints itself; what is still
there once no job runs is removed here, for an endpoint that is left costs as long as it stands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .jobs import delete
from .plan import jobs_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .plan import Plan
    from .services import Clients

KINDS = (
    ("Endpoint", "list_endpoints", "delete_endpoint"),
    ("EndpointConfig", "list_endpoint_configs", "delete_endpoint_config"),
    ("Model", "list_models", "delete_model"),
)
"""Noun, the call that lists, the call that deletes; in the order in which they are deleted."""


def remove(plan: Plan, clients: Clients) -> list[str]:
    """Delete what the jobs of a plan left; ``Endpoint <name>`` and so on. None of them may run any more."""
    removed = []
    sagemaker: Any = clients.sagemaker
    for noun, listing, deletion in KINDS:
        for job in jobs_of(plan):
            for name in list(_names(noun, listing, job, clients)):
                if delete(getattr(sagemaker, deletion), **{f"{noun}Name": name}):
                    removed.append(f"{noun} {name}")
    return removed


def _names(noun: str, listing: str, job: str, clients: Clients) -> Iterator[str]:
    sagemaker: Any = clients.sagemaker
    for page in sagemaker.get_paginator(listing).paginate(NameContains=job):
        for one in page[f"{noun}s"]:
            name = str(one[f"{noun}Name"])
            if name.lower().startswith(job.lower()):  # NameContains also finds it elsewhere in a name
                yield name
