"""Which deployed stacks left an environment's file, what they cost, and in which order they may be deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.deployed.account import BUCKET, EMPTIED, NOT_AUTHORIZED, Account, deployed, part, stack_row
from tests.stacks.environments import DIGITS, environment
from tritonstack.aws.read_only import NotKnownError, ReadOnlyCalls
from tritonstack.config import Environment
from tritonstack.deployed.deletion import deletion_of
from tritonstack.deployed.left import Deployed, deployed_and_left, deployed_without_file, lines_of
from tritonstack.deployed.stacks import left_stacks, of_environment
from tritonstack.naming import serving_part, stack_name

REGION = "us-east-1"
EVERY_PART = ("observability", "load-test", "serving-digits", "serving-old", "builds", "network", "artifacts")
NAT = {
    "Gateway": {"Type": "AWS::EC2::NatGateway"},
    "Old": {"Type": "AWS::EC2::NatGateway", "Status": "DELETE_COMPLETE"},
}


def look(account: Account, settings: Environment | None = None, **known: Any) -> Deployed:
    """What left, of environment ``dev`` unless ``settings`` has another."""
    calls = ReadOnlyCalls(account)
    return deployed_and_left(calls, settings or environment(), project=known.get("project", Path("/nowhere")))


def left(*rows: dict[str, Any], settings: Environment | None = None, builds: bool | None = False) -> list[str]:
    found = left_stacks(deployed(*rows), settings or environment(), builds=lambda: builds)
    return [each.name for each in found]


def test_what_the_file_no_longer_has_left_in_the_order_of_its_deletion() -> None:
    rows = [part("dev", name) for name in EVERY_PART]
    assert left(*rows) == ["dev-observability", "dev-load-test", "dev-serving-old", "dev-builds", "dev-network"]
    vpc = {"vpc_id": "vpc-1", "subnets": {"us-east-1a": "subnet-1", "us-east-1b": "subnet-2"}}
    whole = environment(DIGITS, dashboard=True, load_test={}, network={"imported": vpc})
    assert left(*rows, settings=whole, builds=True) == ["dev-serving-old"]
    assert "dev-builds" not in left(*rows, builds=None), "where it is not known, the stack is taken to belong"


def test_the_second_observability_stack_depends_on_many_endpoints_pipelines_access_on_none() -> None:
    rows = [part("dev", name) for name in ("observability-2", "pipeline-access")]
    many = ({**DIGITS, "name": f"e{number}"} for number in range(16))
    assert left(*rows, settings=environment(*many, dashboard=True)) == []
    assert left(*rows, settings=environment(DIGITS, dashboard=True)) == ["dev-observability-2"]
    assert left(*rows) == ["dev-observability-2"]


def test_a_stack_without_the_tags_or_with_another_name_is_not_of_the_environment() -> None:
    rows = (
        stack_row("dev-network"),
        stack_row("dev-serving-old", environment="dev"),
        stack_row("dev-own-stack", environment="dev"),
        stack_row("dev-b-network", environment="dev"),
        part("dev-b", "network"),
    )
    assert left(*rows) == []


NAME = st.text("ab-", min_size=1, max_size=6).filter(lambda text: text[0] != "-" and text[-1] != "-")


@given(st.lists(st.tuples(NAME, NAME), min_size=1, max_size=8, unique=True), NAME)
def test_names_with_dashes_are_never_taken_for_another_environments(pairs: list[tuple[str, str]], wanted: str) -> None:
    rows = [part(owner, serving_part(endpoint)) for owner, endpoint in pairs]
    rows += [part(owner, "network") for owner in {owner for owner, _ in pairs}]
    found = {(each.environment, each.part) for each in of_environment(deployed(*rows), wanted)}
    expected = {(owner, serving_part(endpoint)) for owner, endpoint in pairs if owner == wanted}
    assert found == expected | ({(wanted, "network")} if expected else set())


def test_a_left_endpoint_costs_its_instances_of_now_and_a_network_its_gateways() -> None:
    account = Account(
        rows=[part("dev", "serving-old"), part("dev", "network"), part("dev", "artifacts")],
        templates={"dev-network": NAT},
        instances={"dev-old": 3},
    )
    found = look(account, environment(prices={"ml.g4dn.xlarge": 0.5}, region=REGION))
    serving, network = found.left
    assert (serving.instances, serving.endpoint) == ("3 of ml.g4dn.xlarge", "dev-old")
    assert "environments/dev.yaml has no endpoint old" in serving.sentence
    assert float(network.cost.known) == pytest.approx(0.045)
    assert "tritonstack leftovers -e dev" in list(lines_of(found, command="tritonstack leftovers -e dev"))[-1]


def test_an_unknown_price_is_unknown_and_never_zero() -> None:
    account = Account(
        rows=[part("dev", "serving-old")],
        templates={"dev-serving-old": {"New": {"Type": "AWS::Unheard::Of"}}},
        instances={"dev-old": 1},
    )
    [found] = look(account).left
    assert found.cost.usd_per_hour is None
    assert "AWS::Unheard::Of" in " ".join(found.cost.unknown)
    hidden = Account(rows=account.rows, refused={"DescribeEndpoint": NOT_AUTHORIZED, "GetTemplate": NOT_AUTHORIZED})
    [found] = look(hidden).left
    assert found.cost.usd_per_hour is None
    assert "whose instances are not known" in found.sentence


def test_where_stacks_may_not_be_listed_the_permission_is_reported() -> None:
    account = Account(rows=[part("dev", "serving-old")], refused={"DescribeStacks": NOT_AUTHORIZED})
    with pytest.raises(NotKnownError) as caught:
        look(account)
    assert caught.value.permission == "cloudformation:DescribeStacks"


def going_and_kept(
    rows: list[dict[str, Any]], *, archives: bool = False, **more: Any
) -> tuple[list[str], dict[str, str]]:
    """What is deleted, and what is kept with the reason, where the file of ``dev`` is gone."""
    calls = ReadOnlyCalls(Account(rows=rows, **more))
    found = deployed_without_file(calls, "dev", region=REGION, why="it is gone", project=Path("/nowhere"))
    made = deletion_of(found, archives=archives)
    return [each.stack.name for each in made.stacks], {each.stack.name: why for each, why in made.kept}


def test_without_a_file_everything_goes_and_the_artifacts_last() -> None:
    names, kept = going_and_kept([part("dev", name) for name in EVERY_PART])
    assert names == [stack_name(environment="dev", part=each) for each in EVERY_PART]
    assert kept == {}


def test_a_network_or_a_bucket_that_a_stack_still_reads_stays_whatever_that_stack_is_of() -> None:
    for path, kind in (
        ("_network/vpc-id", "network"),
        ("_artifacts/bucket-name", "artifacts"),
        ("_outputs/builds", "builds"),
    ):
        reader = stack_row("other-app", reads=(f"/tritonstack/dev/{path}",))
        names, kept = going_and_kept([part("dev", kind), reader])
        assert names == []
        assert "other-app" in kept[f"dev-{kind}"]
    neighbour = part("dev-b", "serving-x", reads=("/tritonstack/dev-b/_network/vpc-id",))
    assert going_and_kept([part("dev", "network"), neighbour]) == (["dev-network"], {})


def test_archives_are_deleted_only_on_request_and_a_retained_bucket_is_named() -> None:
    rows = [part("dev", "artifacts")]
    names, kept = going_and_kept(rows, templates={"dev-artifacts": EMPTIED})
    assert (names, list(kept)) == ([], ["dev-artifacts"])
    assert "--archives" in kept["dev-artifacts"]
    assert going_and_kept(rows, templates={"dev-artifacts": EMPTIED}, archives=True) == (["dev-artifacts"], {})
    account = Account(rows=rows, templates={"dev-artifacts": {"Bucket": BUCKET}})
    [found] = deployed_without_file(
        ReadOnlyCalls(account), "dev", region=REGION, why="gone", project=Path("/nowhere")
    ).left
    assert found.retained == ("AWS::S3::Bucket dev-artifacts-bucket",)
    assert found.emptied == ()


def test_a_stack_at_work_or_protected_stays_and_so_does_what_it_reads() -> None:
    reads = ("/tritonstack/dev/_network/vpc-id",)
    busy = part("dev", "serving-old", reads=reads, StackStatus="UPDATE_IN_PROGRESS")
    names, kept = going_and_kept([busy, part("dev", "network"), part("dev", "artifacts")])
    assert names == []
    assert "UPDATE_IN_PROGRESS" in kept["dev-serving-old"]
    assert "dev-serving-old" in kept["dev-network"]
    assert "dev-serving-old" in kept["dev-artifacts"]
    guarded = part("dev", "observability", EnableTerminationProtection=True)
    _, kept = going_and_kept([guarded])
    assert "update-termination-protection" in kept["dev-observability"]
