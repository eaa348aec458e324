"""``network``: imported or created, and what cannot be."""

from __future__ import annotations

from pathlib import Path

from tests.config.environment_file import write_environment
from tritonstack.config import Environment, load_environment

PREFIX_LIST = "s3_prefix_list_id: pl-1a"
CREATED = f"{{created: {{cidr: 10.20.0.0/16, zones: [us-east-1b, us-east-1a], nat: one}}, {PREFIX_LIST}}}"
SUBNETS = "subnets: {us-east-1a: subnet-1, us-east-1b: subnet-2}"
IMPORTED = f"{{imported: {{vpc_id: vpc-1a, {SUBNETS}, security_group_ids: [sg-1]}}}}"


def loaded(folder: Path, network: str, *, more: str = "", endpoint: str = "") -> Environment:
    return load_environment(write_environment(folder, header=f"network: {network}\n{more}", endpoint=endpoint))


def test_a_created_network_has_its_zones_in_the_order_of_their_names(tmp_path: Path) -> None:
    network = loaded(tmp_path, CREATED).network
    assert network is not None
    assert network.zones == ("us-east-1a", "us-east-1b")
    assert (network.makes_group, network.makes_endpoints, network.is_closed) == (True, True, False)


def created(inner: str, *, more: str = PREFIX_LIST) -> str:
    return f"{{created: {{{inner}}}, {more}}}"


ZONES = "zones: [us-east-1a, us-east-1b]"
BOTH = f"{IMPORTED[:-1]}, {PREFIX_LIST}, created: {{cidr: 10.0.0.0/16, {ZONES}, nat: one}}}}"


def joining(text: str, which: str) -> str:
    return f"{text[:-1]}, join: {which}}}"


def test_of_two_networks_the_joined_one_gives_zones_and_identity(tmp_path: Path) -> None:
    imported, made = (loaded(tmp_path, joining(BOTH, which)).network for which in ("imported", "created"))
    assert imported is not None
    assert made is not None
    assert (imported.joined, made.joined) == ("imported", "created")
    assert imported.identity.startswith("vpc-1a")
    assert made.identity.startswith("10.0.0.0/16")
    assert imported.makes_endpoints, "those of the created network stay"


def test_a_network_that_nothing_joins_is_none_to_containers(tmp_path: Path) -> None:
    environment = loaded(tmp_path, joining(CREATED, "nothing"))
    assert environment.network is not None
    assert environment.joined_network is None
    assert environment.network.zones == ()


def test_a_network_without_internet_access_is_accepted(tmp_path: Path) -> None:
    network = loaded(tmp_path, created(f"cidr: 10.20.0.0/16, {ZONES}")).network
    assert network is not None
    assert network.is_closed
