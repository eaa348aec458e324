"""Environments and what a pipeline adds to them, as one."""

from __future__ import annotations

from collections.abc import Mapping

from tests.review.small import resource, stack
from tritonstack.review.snapshot import (
    PIPELINE,
    TOP_LEVEL,
    EnvironmentSnapshot,
    Finding,
    Findings,
    Snapshots,
    joined,
    part_of,
    without,
)


def snapshots(environments: Mapping[str, tuple[str, ...]], *, known: bool = True) -> Snapshots:
    """Environments of these stacks, with a finding that is accepted and one that stands open in each."""
    return Snapshots(
        environments={
            name: EnvironmentSnapshot(
                name=name,
                stacks={each: stack({"A": resource("AWS::SNS::Topic")}, name=each) for each in stacks},
                findings=findings(*stacks) if known else None,
            )
            for name, stacks in environments.items()
        }
    )


def findings(*stacks: str) -> Findings:
    return Findings(
        open=tuple(Finding(stack=each, path="A", rule="B") for each in sorted(stacks)),
        accepted=tuple(Finding(stack=each, path="A", rule="C", accepted="So.") for each in sorted(stacks)),
    )


WHOLE = snapshots({TOP_LEVEL: ("pipeline",), "dev": ("access", "serving"), "local": ("serving",)})


def test_a_part_has_its_stacks_and_their_findings_and_the_rest_has_the_others() -> None:
    part = part_of(WHOLE, ("pipeline", "access"))
    assert part == snapshots({TOP_LEVEL: ("pipeline",), "dev": ("access",)})
    assert without(WHOLE, part) == snapshots({"dev": ("serving",), "local": ("serving",)})


def test_joined_they_are_one_again_and_the_pipeline_has_a_name() -> None:
    part = part_of(WHOLE, ("pipeline", "access"))
    both = joined(without(WHOLE, part), part)
    assert list(both.environments) == ["dev", "local", PIPELINE]
    assert both.environments["dev"] == WHOLE.environments["dev"]
    assert (both.environments[PIPELINE].name, list(both.environments[PIPELINE].stacks)) == (PIPELINE, ["pipeline"])
    assert both.environments[PIPELINE].findings == findings("pipeline")


def test_findings_of_one_part_alone_are_those_of_the_environments() -> None:
    own, unknown = snapshots({"dev": ("serving",)}), snapshots({"dev": ("access",)}, known=False)
    assert joined(own, unknown).environments["dev"].findings == findings("serving")
    assert joined(unknown, own).environments["dev"].findings is None
