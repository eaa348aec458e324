"""What a pipeline adds to an app, beside the environments: its own stack, and one in each environment that it deploys.

It is synthesised apart from them and has a folder of snapshots of its own, for the environments' other stacks are the
same with a pipeline as without. A report tells of both as one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from tritonstack.review.snapshot import TOP_LEVEL, EnvironmentSnapshot, Findings, Snapshots

PIPELINE = "pipeline"
"""What a report calls the environment of the stack that stands in no stage: the pipeline's own."""
NOTHING = Snapshots(environments={})


def part_of(snapshots: Snapshots, stacks: Collection[str]) -> Snapshots:
    """The environments that have one of these stacks, with these stacks and their findings alone."""
    return _with_stacks(
        snapshots,
        {name: [each for each in one.stacks if each in stacks] for name, one in snapshots.environments.items()},
    )


def without(snapshots: Snapshots, part: Snapshots) -> Snapshots:
    """The snapshots without the stacks of a part of them; an environment of which nothing is left is out."""
    out = {name: each.stacks.keys() for name, each in part.environments.items()}
    return _with_stacks(
        snapshots,
        {
            name: [each for each in one.stacks if each not in out.get(name, ())]
            for name, one in snapshots.environments.items()
        },
    )


def joined(environments: Snapshots, added: Snapshots) -> Snapshots:
    """The environments with what a pipeline adds; its own stack is an environment beside them, ``pipeline``."""
    found = dict(environments.environments)
    for name, each in added.environments.items():
        known = PIPELINE if name == TOP_LEVEL else name
        found[known] = _both(found[known], each) if known in found else replace(each, name=known)
    return Snapshots(environments=dict(sorted(found.items())))


def same_but_open(one: Snapshots, other: Snapshots) -> bool:
    """Whether two have the same templates, and accept the same findings; what stands open is not looked at."""
    return _told(one) == _told(other)


def no_better_known(after: Snapshots, before: Snapshots) -> Snapshots:
    """The snapshots after a change, without the findings of environments whose findings before it are not known."""
    unknown = {name for name, each in before.environments.items() if each.findings is None}
    return Snapshots(
        environments={
            name: replace(each, findings=None) if name in unknown else each for name, each in after.environments.items()
        }
    )


def _told(snapshots: Snapshots) -> Mapping[str, object]:
    return {
        name: (each.stacks, None if each.findings is None else each.findings.accepted)
        for name, each in snapshots.environments.items()
    }


def _both(one: EnvironmentSnapshot, other: EnvironmentSnapshot) -> EnvironmentSnapshot:
    findings = one.findings
    if one.findings is not None and other.findings is not None:
        findings = Findings(
            open=tuple(sorted({*one.findings.open, *other.findings.open})),
            accepted=tuple(sorted({*one.findings.accepted, *other.findings.accepted})),
        )
    return replace(one, stacks=dict(sorted({**one.stacks, **other.stacks}.items())), findings=findings)


def _with_stacks(snapshots: Snapshots, kept: Mapping[str, Collection[str]]) -> Snapshots:
    return Snapshots(
        environments={
            name: replace(
                snapshots.environments[name],
                stacks={each: snapshots.environments[name].stacks[each] for each in stacks},
                findings=_of_stacks(snapshots.environments[name].findings, stacks),
            )
            for name, stacks in kept.items()
            if stacks
        }
    )


def _of_stacks(findings: Findings | None, stacks: Collection[str]) -> Findings | None:
    if findings is None:
        return None
    return Findings(
        open=tuple(each for each in findings.open if each.stack in stacks),
        accepted=tuple(each for each in findings.accepted if each.stack in stacks),
    )
