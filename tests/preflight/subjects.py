"""Environments for the checks to look at, with an account that a test makes up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.fake_aws import FakeAws, Response
from tests.models.folders import write_double
from tritonstack.aws.read_only import ReadOnlyCalls
from tritonstack.config import load_environment
from tritonstack.preflight.runner import CHECKS
from tritonstack.preflight.subject import PreflightResult, Subject
from tritonstack.served import Served, served_by

ACCOUNT, REGION = "123456789012", "us-east-1"
ENDPOINT = {"mode": "multi-model", "release": "24.09", "instance_type": "ml.g4dn.xlarge", "models": ["double"]}


def served(
    folder: Path, *endpoints: Mapping[str, Any], files: Mapping[Path, str] | None = None, **environment: Any
) -> Served:
    """An environment ``test``, whose endpoints ``e0``, ``e1`` … serve ``double``, with further fields of its own.

    ``files``: contents in the place of the model folder's own.
    """
    write_double(folder)
    for path, text in (files or {}).items():
        path.write_text(text)
    document = {
        "environment": "test",
        "account": ACCOUNT,
        "region": REGION,
        "production": False,
        **environment,
        "endpoints": [{**ENDPOINT, "name": f"e{number}", **more} for number, more in enumerate(endpoints or ({},))],
    }
    file = folder / "test.yaml"
    file.write_text(yaml.safe_dump(document))
    return served_by(load_environment(file), folder / "model_repos", file=file)


def subject_of(
    what: Served, responses: Mapping[str, Response], *, project: Path = Path("/nowhere"), at_once: int = 1
) -> Subject:
    """A subject whose account has these responses."""
    calls = ReadOnlyCalls(FakeAws(responses=responses))
    return Subject(served=what, calls=calls, project=project, local=False, at_once=at_once)


def results_of(
    check: Callable[[Subject], Iterator[PreflightResult]],
    what: Served,
    responses: Mapping[str, Response],
    *,
    project: Path = Path("/nowhere"),
    at_once: int = 1,
) -> dict[str, PreflightResult]:
    """The results of a check by their subjects; each carries the name that the runner lists the check by."""
    [name] = [each.name for each in CHECKS if each.run is check]
    results = list(check(subject_of(what, responses, project=project, at_once=at_once)))
    assert {result.check for result in results} <= {name}
    by_subject = {result.subject: result for result in results}
    assert len(by_subject) == len(results), "two results have one subject"
    return by_subject
