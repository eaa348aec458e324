"""The state machine of a load test, in the Amazon States Language, from its data file."""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

FILE = Path(__file__).parent / "data" / "load_test.asl.json"
SHORT_NAME = 12
"""Of an environment's name, so much stands in the names of jobs: a job's own name must stay below forty characters,
for what it makes is named after it and cut there (API reference: CreateInferenceRecommendationsJob)."""


class Definition(TypedDict):
    """The top of a definition (Amazon States Language, "Top-level fields")."""

    Comment: str
    StartAt: str
    TimeoutSeconds: int
    States: dict[str, dict[str, Any]]


def definition(*, at_once: int, partition: str = "aws") -> Definition:
    """The state machine, with ``${Function}`` left for DefinitionSubstitutions.

    Args:
        at_once: jobs at once (``MaxConcurrency`` of its Map).
        partition: of AWS, in the ARN of the integration with Lambda.
    """
    document: Definition = json.loads(_text().replace("arn:aws:", f"arn:{partition}:"))
    document["States"]["Measure"]["MaxConcurrency"] = at_once
    return document


def job_prefix(environment: str) -> str:
    """How the names of an environment's jobs begin, and of all that they make: at most 16 characters.

    A longer name than ``SHORT_NAME`` is cut, and ends in its own digest, so that two environments never share it.
    """
    if len(environment) > SHORT_NAME:
        digest = hashlib.sha256(environment.encode()).hexdigest()[:5]
        environment = f"{environment[: SHORT_NAME - 6].rstrip('-')}-{digest}"
    return f"{environment}-lt-"


@functools.cache
def _text() -> str:
    return FILE.read_text(encoding="utf-8")
