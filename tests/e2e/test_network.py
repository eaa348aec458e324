"""The network of an environment in a VPC is left for another one and for none.

``test_update_and_destroy.py`` shows what such an environment is.
"""

from __future__ import annotations

import json

import pytest

from tests.e2e.network_project import Walled, created
from tests.e2e.project import Project
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def walled(project: Project, local_aws: LocalAws) -> Walled:
    """The environment deployed into a VPC of two zones."""
    made = Walled(project, local_aws, "walled")
    made.make_boundary()
    made.write(network=created("a", "b"))
    made.deploy()
    return made


def test_preflight_says_that_a_network_cannot_be_taken_away_in_one_step(walled: Walled) -> None:
    imported, _ = walled.imported()
    joined = walled.live_model()["VpcConfig"]
    walled.write(network=f"{{imported: {imported}}}")
    [said] = left_network(walled, expect=1)
    assert (said["subject"], said["outcome"]) == (walled.endpoint, "fails")
    assert all(part in said["found"] for part in (*joined["Subnets"], *joined["SecurityGroupIds"]))
    zones = [zone[-1] for zone in walled.zones_of(joined["Subnets"])]
    walled.write(network=created(*zones, more=f"imported: {imported}, join: imported"))
    [said] = left_network(walled, expect=0)
    assert (said["subject"], said["outcome"]) == (f"{walled.name}-network", "passes")


def left_network(walled: Walled, *, expect: int) -> list[dict[str, str]]:
    """What preflight says of it; nothing else may fail."""
    said = walled.project.run("preflight", "-e", walled.name, "--local", "--json", expect=expect).stdout
    results = json.loads(said)["results"]
    assert {each["check"] for each in results if each["outcome"] != "passes"} <= {"left-network"}
    return [each for each in results if each["check"] == "left-network"]


def test_a_created_network_is_left_for_an_imported_one_while_a_caller_calls(walled: Walled) -> None:
    imported, taken = walled.imported()
    there = walled.inventory()
    walled.write(network=created("a", "b", more=f"imported: {imported}, join: imported"))
    with walled.calling():
        walled.deploy()
        assert walled.live_model()["VpcConfig"] == taken
        assert there["subnet"] <= walled.inventory()["subnet"], "the old fleet was in them to its end"
        walled.write(network=f"{{imported: {imported}}}")
        walled.deploy()
    now = walled.inventory()
    for kind in ("vpc", "subnet", "security group", "route table", "vpc endpoint", "flow log"):
        assert there[kind], kind
        assert now[kind] == set(), kind
    assert walled.live_model()["VpcConfig"] == taken


def test_an_environment_leaves_its_network_for_none(walled: Walled) -> None:
    walled.write(network="null")
    with walled.calling():
        walled.deploy()
        assert "VpcConfig" not in walled.live_model()
        cloudformation, stack = walled.aws.client("cloudformation"), f"{walled.name}-network"
        cloudformation.delete_stack(StackName=stack)  # as in docs/network.md: the app no longer contains it
        cloudformation.get_waiter("stack_delete_complete").wait(StackName=stack, WaiterConfig={"Delay": 1})
    assert not any("/_network/" in name for name in walled.inventory()["parameter"])
