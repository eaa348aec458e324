"""Pruning removes what no record and no kept history names, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.models import fake_aws
from tests.models.fake_aws import FakeAws
from tritonstack.models.prune import Pruning

OLD = 100.0


def _digest(number: int) -> str:
    return f"{number:016x}"


def _archive(
    aws: FakeAws, number: int, *, endpoint: str = "numbers", platform: str = "24.09-t4", age: float = OLD
) -> str:
    key = f"endpoints/{endpoint}/{platform}/double.{_digest(number)}.tar.gz"
    aws.objects[key] = b"archive"
    aws.ages[key] = age
    aws.objects[f"manifests/{endpoint}/{platform}/double.{_digest(number)}.json"] = b"{}"
    aws.objects[f"inputs/{_digest(number)}.zip"] = b"zip"
    return key


@pytest.fixture
def aws() -> Iterator[FakeAws]:
    with fake_aws.running() as running:
        running.parameters["/tritonstack/dev/numbers/double"] = [_digest(number) for number in range(1, 9)]
        yield running


def test_the_current_digest_and_the_kept_history_stay(aws: FakeAws) -> None:
    keys = {number: _archive(aws, number) for number in range(10)}
    plan = Pruning("dev", session=aws).plan(history=5)
    going = [item.archive_key for item in plan.unneeded]
    assert going == [keys[number] for number in (0, 1, 2, 9)]  # 8 is current, 3 to 7 are the history
    assert plan.kept == 6


def test_planning_deletes_nothing_and_carrying_out_deletes_archives_first(aws: FakeAws) -> None:
    key = _archive(aws, 99)
    pruning = Pruning("dev", session=aws)
    plan = pruning.plan()
    assert aws.deletes == []
    pruning.carry_out(plan)
    digest = _digest(99)
    assert aws.deletes == [key, f"manifests/numbers/24.09-t4/double.{digest}.json", f"inputs/{digest}.zip"]


def test_an_archive_that_may_not_be_activated_yet_stays(aws: FakeAws) -> None:
    _archive(aws, 99, age=1.0)
    assert Pruning("dev", session=aws).plan(grace_hours=2).unneeded == ()
    assert len(Pruning("dev", session=aws).plan(grace_hours=0.5).unneeded) == 1


def test_inputs_stay_while_another_platform_or_endpoint_needs_them(aws: FakeAws) -> None:
    _archive(aws, 8)
    _archive(aws, 8, endpoint="unrecorded")
    plan = Pruning("dev", session=aws).plan()
    assert [item.keys for item in plan.unneeded] == [
        (
            f"endpoints/unrecorded/24.09-t4/double.{_digest(8)}.tar.gz",
            f"manifests/unrecorded/24.09-t4/double.{_digest(8)}.json",
        )
    ]


def test_inputs_go_once_with_the_last_of_several_archives(aws: FakeAws) -> None:
    _archive(aws, 99)
    _archive(aws, 99, platform="25.09-t4")
    pruning = Pruning("dev", session=aws)
    pruning.carry_out(pruning.plan())
    assert aws.deletes.count(f"inputs/{_digest(99)}.zip") == 1
    assert aws.objects == {}


def test_other_objects_below_the_prefix_stay(aws: FakeAws) -> None:
    aws.objects["endpoints/numbers/24.09-t4/notes.txt"] = b"kept"
    aws.ages["endpoints/numbers/24.09-t4/notes.txt"] = OLD
    assert Pruning("dev", session=aws).plan().unneeded == ()


def test_an_archive_s_client_files_go_with_it_and_another_s_stay(aws: FakeAws) -> None:
    _archive(aws, 99)
    _archive(aws, 8)
    folder = f"manifests/numbers/24.09-t4/double.{_digest(99)}"
    for digest in (99, 8):
        aws.objects[f"manifests/numbers/24.09-t4/double.{_digest(digest)}/labels.txt"] = b"cat"
    pruning = Pruning("dev", session=aws)
    pruning.carry_out(pruning.plan())
    assert f"{folder}/labels.txt" in aws.deletes
    assert not any(_digest(8) in key for key in aws.deletes)
