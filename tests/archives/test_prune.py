"""Pruning: archives of the bucket, with their manifests, client files and inputs."""

from __future__ import annotations

import pytest

from tests.fake_aws import FakeAws
from tritonstack.archives.prune import Pruning

OLD = 100.0


def _digest(number: int) -> str:
    return f"{number:016x}"


def _archive(
    aws: FakeAws, number: int, *, endpoint: str = "numbers", platform: str = "24.09-t4", age: float = OLD
) -> str:
    key = f"endpoints/{endpoint}/{platform}/double.{_digest(number)}.tar.gz"
    aws.artifacts[key] = b"archive"
    aws.ages[key] = age
    aws.artifacts[f"manifests/{endpoint}/{platform}/double.{_digest(number)}.json"] = b"{}"
    aws.artifacts[f"inputs/{_digest(number)}.tar.gz"] = b"tar"
    return key


@pytest.fixture
def aws(aws: FakeAws) -> FakeAws:
    for number in range(1, 9):
        aws.put_by_hand("/tritonstack/dev/numbers/double", _digest(number))
    return aws


def test_the_current_digest_and_the_kept_history_stay(aws: FakeAws) -> None:
    keys = {number: _archive(aws, number) for number in range(10)}
    found = Pruning("dev", session=aws).find(history=5)
    going = [item.archive_key for item in found.unneeded]
    assert going == [keys[number] for number in (0, 1, 2, 9)]  # 8 is current, 3 to 7 are the history
    assert found.kept == 6


def test_finding_deletes_nothing_and_deletion_begins_with_archives(aws: FakeAws) -> None:
    keys = [_archive(aws, 99), _archive(aws, 99, platform="25.09-t4")]
    _archive(aws, 98, age=1.0)  # it may not be activated yet
    pruning, digest = Pruning("dev", session=aws), _digest(99)
    assert len(pruning.find(grace_hours=0.5).unneeded) == 3
    found = pruning.find(grace_hours=2)
    assert aws.deletes == []
    pruning.delete(found)
    assert aws.deletes[:2] == keys
    manifests = [f"manifests/numbers/{platform}/double.{digest}.json" for platform in ("24.09-t4", "25.09-t4")]
    assert sorted(aws.deletes[2:]) == [f"inputs/{digest}.tar.gz", *manifests]


def test_inputs_stay_while_another_platform_or_endpoint_needs_them(aws: FakeAws) -> None:
    _archive(aws, 8)
    _archive(aws, 8, endpoint="unrecorded")
    found = Pruning("dev", session=aws).find()
    assert [item.keys for item in found.unneeded] == [
        (
            f"endpoints/unrecorded/24.09-t4/double.{_digest(8)}.tar.gz",
            f"manifests/unrecorded/24.09-t4/double.{_digest(8)}.json",
        )
    ]


def test_an_archive_s_client_files_go_with_it_and_another_s_stay(aws: FakeAws) -> None:
    _archive(aws, 99)
    _archive(aws, 8)
    aws.artifacts["endpoints/numbers/24.09-t4/notes.txt"] = b"kept"
    aws.ages["endpoints/numbers/24.09-t4/notes.txt"] = OLD
    folder = f"manifests/numbers/24.09-t4/double.{_digest(99)}"
    for digest in (99, 8):
        aws.artifacts[f"manifests/numbers/24.09-t4/double.{_digest(digest)}/labels.txt"] = b"cat"
    pruning = Pruning("dev", session=aws)
    pruning.delete(pruning.find())
    assert f"{folder}/labels.txt" in aws.deletes
    assert not any(_digest(8) in key or "notes" in key for key in aws.deletes)
