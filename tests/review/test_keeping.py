"""What is said of a resource that no longer outlives its deletion or its replacement."""

from __future__ import annotations

import pytest

from tritonstack.review.change import no_longer_kept
from tritonstack.review.snapshot import Resource


def kept(
    deletion: str | None = None,
    replacement: str | None = None,
    *,
    kind: str = "AWS::S3::Bucket",
    cluster: str | None = None,
) -> Resource:
    given = {"DeletionPolicy": deletion, "UpdateReplacePolicy": replacement}
    return Resource(
        logical_id="A",
        type=kind,
        path="A",
        properties={} if cluster is None else {"DBClusterIdentifier": cluster},
        attributes={name: value for name, value in given.items() if value is not None},
    )


@pytest.mark.parametrize(
    ("before", "after", "when"),
    [
        (kept("Retain"), kept("Delete"), ["deleted"]),
        (kept("Retain"), kept(), ["deleted"]),
        (kept("RetainExceptOnCreate"), kept("Delete"), ["deleted"]),
        (kept("Retain", "Retain"), kept("Delete", "Delete"), ["deleted", "replaced"]),
        (kept("Retain", "Retain"), kept("Retain"), ["replaced"]),
        (kept("Retain"), kept("Snapshot"), ["deleted"]),
        (kept("Snapshot", "Snapshot"), kept("Delete", "Snapshot"), ["deleted"]),
        (kept("Retain"), kept("RetainExceptOnCreate"), []),
        (kept("Delete"), kept(), []),
        (kept(), kept("Retain", "Retain"), []),
        (kept("Snapshot"), kept("Retain"), []),
    ],
)
def test_less_than_before_is_told(before: Resource, after: Resource, when: list[str]) -> None:
    assert list(no_longer_kept(before, after)) == when


def test_what_is_kept_of_it_is_told() -> None:
    told = no_longer_kept(kept("Retain", "Retain"), kept("Snapshot", "Snapshot"))
    assert told == {
        "deleted": "It is no longer kept, but for a snapshot, when its stack is deleted or has it no more.",
        "replaced": "Where it is replaced, only a snapshot of the old one is kept from now on.",
    }
    assert no_longer_kept(kept("Snapshot", "Snapshot"), kept())["replaced"].endswith("the old one is no longer kept.")


def test_a_database_is_kept_by_a_snapshot_where_nothing_is_said() -> None:
    """Template reference, "DeletionPolicy attribute": the default of clusters, and of instances outside one."""
    for kind, cluster in (("AWS::RDS::DBCluster", None), ("AWS::RDS::DBInstance", None)):
        before, after = kept(kind=kind, cluster=cluster), kept("Delete", kind=kind, cluster=cluster)
        assert list(no_longer_kept(before, after)) == ["deleted"]
    inside = {"kind": "AWS::RDS::DBInstance", "cluster": "c"}
    assert no_longer_kept(kept(**inside), kept("Delete", **inside)) == {}
