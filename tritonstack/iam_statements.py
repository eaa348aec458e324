"""IAM statements of the roles, in the groups of ``iam_statements.yaml``."""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tritonstack import aws_names, naming
from tritonstack.arns import AccountRegion

Value = str | Sequence[str] | None
"""What stands for a name in braces: ARNs, key prefixes, names; they may be tokens of a template."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The one written in C, where PyYAML has it: the file is read in every synthesis."""
_OWN_NAMES: Mapping[str, Value] = {
    "archives": naming.ARCHIVES,
    "manifests": naming.MANIFESTS,
    "inputs": naming.INPUTS,
    "timing_caches": naming.TIMING_CACHES,
    "orders": naming.ORDERS,
    "waits": naming.WAITS,
    "jobs": naming.JOBS,
    "tests": naming.load_test_prefix(),
    "release_set": naming.RELEASE_SET_SUFFIX,
    "build_set": naming.BUILD_SET_SUFFIX,
    "processing_jobs": aws_names.PROCESSING_JOBS,
    "recommendation_jobs": aws_names.RECOMMENDATION_JOBS,
    "variant_instance_count": aws_names.VARIANT_INSTANCE_COUNT,
    "endpoint_namespaces": [aws_names.SAGEMAKER, aws_names.INSTANCES],
    "load_test_namespaces": [aws_names.SAGEMAKER, aws_names.INSTANCES, aws_names.RECOMMENDATION_JOBS],
}
"""Names in braces that every group may use."""


@dataclass(frozen=True, kw_only=True)
class StatementTemplate:
    """One statement as the file has it, with names in braces.

    Attributes:
        sid: its purpose, in CamelCase: reviewers read it in the difference of two templates.
        actions: each spelled out; a wildcard in an action would grant what is added to the service later.
        resources: ARNs, or short forms of them (``AccountRegion.expanded``).
        conditions: operator → condition key → value or values.
        wildcard: why resources with a wildcard are no wider than needed, of all or by resource.
    """

    sid: str
    actions: Sequence[str]
    resources: Sequence[str]
    conditions: Mapping[str, Mapping[str, str | Sequence[str]]] | None = None
    wildcard: str | Mapping[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One statement of a policy."""

    sid: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]  # ARNs
    conditions: Mapping[str, Mapping[str, Any]] | None  # operator → condition key → value or values
    wildcards: Mapping[str, str]  # resource with a wildcard → why it is no wider than needed; not of every one

    @property
    def document(self) -> dict[str, Any]:
        """As IAM writes it."""
        found = {"Sid": self.sid, "Effect": "Allow", "Action": [*self.actions], "Resource": [*self.resources]}
        return found if self.conditions is None else {**found, "Condition": self.conditions}


@cache
def groups() -> Mapping[str, tuple[StatementTemplate, ...]]:
    """Every group of the file, by its name."""
    text = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
    document: dict[str, list[dict[str, Any]]] = yaml.load(text, Loader=_LOADER)  # noqa: S506 - safe, in C or not
    return {name: tuple(StatementTemplate(**each) for each in entries) for name, entries in document.items()}


def statements(group: str, *, at: AccountRegion, **values: Value) -> Iterator[Statement]:
    """The statements of a group with these values, in the order of the file.

    Args:
        group: its name in the file.
        at: account and region of resources that are named by a short form.
        values: name in braces → value; a list gives one text of each. None: statements on it alone are left out.
            Of ``prefixes`` follows ``listed``: what a caller may name to list the objects below each.

    A shared subnet's ARN carries the account of its owner; interfaces and security groups in it are the participant's
    (VPC user guide, "Responsibilities and permissions for owners and participants").
    """
    values = {**_OWN_NAMES, **values}
    if isinstance(prefixes := values.get("prefixes"), Sequence):
        values["listed"] = list(listed_below(prefixes))
    for each in groups()[group]:
        if any(values.get(text.strip("{}"), "") is None for text in each.resources):
            continue
        resources = {text: [at.expanded(whole) for whole in _filled(text, values)] for text in each.resources}
        yield Statement(
            sid=each.sid,
            actions=tuple(each.actions),
            resources=tuple(whole for wholes in resources.values() for whole in wholes),
            conditions=None if each.conditions is None else _conditions(each.conditions, values),
            wildcards={
                whole: reason.format_map(values)
                for text, wholes in resources.items()
                if (reason := _reason(each.wildcard, text)) is not None
                for whole in wholes
                if "*" in whole
            },
        )


def listed_below(prefixes: Iterable[str]) -> Iterator[str]:
    """Values of ``s3:prefix`` by which the objects below key prefixes are listed; each prefix ends with a slash.

    A caller may name the folder without it (``aws s3 ls s3://bucket/folder``, SageMaker for ``S3Prefix`` data).
    """
    for prefix in prefixes:
        yield from (f"{prefix}*", prefix.removesuffix("/"))


def _conditions(
    conditions: Mapping[str, Mapping[str, str | Sequence[str]]], values: Mapping[str, Value]
) -> dict[str, dict[str, str | list[str]]]:
    return {
        operator: {
            key: given.format_map(values)
            if isinstance(given, str)
            else [whole for text in given for whole in _filled(text, values)]
            for key, given in tests.items()
        }
        for operator, tests in conditions.items()
    }


def _reason(wildcard: str | Mapping[str, str] | None, resource: str) -> str | None:
    return wildcard.get(resource) if isinstance(wildcard, Mapping) else wildcard


def _filled(text: str, values: Mapping[str, Value]) -> Iterator[str]:
    """The text with its values; one text for each value of a list, of which it may name one."""
    names = {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}
    several = [name for name in sorted(names) if not isinstance(values[name], str)]
    if not several:
        yield text.format_map(values)
        return
    [name] = several
    for value in values[name] or ():
        yield text.format_map({**values, name: value})
