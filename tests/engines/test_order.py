"""Build sets and orders: what synthesis writes is what a build reads, and a wrong document names its fields."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.config.environment_file import write_environment
from tests.models.folders import write, write_double
from tritonstack.config import load_environment
from tritonstack.engines.order import JobNetwork, Order, OrderedArchive, build_set, read_order, served_by
from tritonstack.errors import InputError
from tritonstack.models.source import BuildChoice
from tritonstack.naming import Platform

names = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
archives = st.builds(
    OrderedArchive,
    model=names,
    digest=st.from_regex(r"[0-9a-f]{16}", fullmatch=True),
    dependency=st.sampled_from(["none", "python", "engine", None]),
)
orders = st.builds(
    Order,
    schema=st.just(1),
    environment=names,
    endpoint=names,
    region=st.just("us-east-1"),
    platform=st.builds(Platform, release=st.just("24.09"), gpu=st.sampled_from(["T4", "A10G"])),
    image=st.just("785573368785.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:24.09-py3"),
    engine_builder=st.sampled_from([None, "codebuild", "processing"]),
    size=st.sampled_from(["full", "tiny"]),
    weights=st.sampled_from(["random", "pretrained"]),
    parallel_engines=st.integers(1, 9),
    engine_timeout_minutes=st.integers(5, 700),
    network=st.sampled_from([None, JobNetwork(subnet_ids=("subnet-1",), security_group_ids=("sg-1", "sg-2"))]),
    archives=st.lists(archives, max_size=4, unique_by=lambda row: row.name),
    tags=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
)


@given(orders)
def test_what_is_written_is_read_again(order: Order) -> None:
    assert read_order(order.to_json(), file="order.json") == order


def test_the_build_set_of_an_endpoint_names_every_archive_that_it_serves(tmp_path: Path) -> None:
    folder = write_double(tmp_path)
    with (folder / "recipe.yaml").open("a") as recipe:
        recipe.write("dependency: python\noverlays: {b: {config: [b.pbtxt]}, a: {}}\n")
    write(folder, {"b.pbtxt": "max_batch_size: 2"})
    file = write_environment(
        tmp_path,
        endpoint="models: [double]",
        header="builds: {size: tiny, engine_timeout_minutes: 30}\ntags: {team: platform}",
    )
    served = served_by(load_environment(file), folder.parent, file=file)
    (endpoint,) = served.environment.endpoints
    order = build_set(served, endpoint)
    assert {row.name.model: row.name.digest for row in order.archives} == served.release_sets[endpoint.name]
    assert [row.name.model for row in order.archives] == ["double-a", "double-b"]
    assert {row.dependency for row in order.archives} == {"python"}
    assert (order.platform, order.image) == (endpoint.platform, endpoint.image_uri(served.environment.region))
    assert (order.parallel_engines, order.engine_timeout_minutes, order.network) == (2, 30, None)
    assert order.choice == BuildChoice(size="tiny")
    assert order.tags == {"team": "platform", "tritonstack:environment": served.environment.environment}


def document(**changes: Any) -> str:
    """A sound document, with some fields changed; None removes one."""
    archive = {"model": "bert", "digest": "0" * 16, "dependency": "engine"}
    plain = {
        "schema": 1, "environment": "dev", "endpoint": "text", "region": "us-east-1",
        "platform": {"release": "24.09", "gpu": "t4"}, "image": "image", "engine_builder": None, "size": "full",
        "weights": "pretrained", "parallel_engines": 2, "engine_timeout_minutes": 240, "network": None,
        "archives": [archive],
    }  # fmt: skip
    return json.dumps({name: value for name, value in {**plain, **changes}.items() if value != "gone"})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"region": "gone"}, ["region", "nothing"]),
        ({"more": 1}, ["more", "no such field"]),
        ({"schema": 2}, ["schema", "found:   2"]),
        ({"engine_builder": "ec2"}, ["engine_builder", '"ec2"', "codebuild, processing, or null"]),
        ({"archives": [{"model": "bert", "digest": "x"}]}, ["archives[0].digest", '"x"']),
        ({"archives": [{"model": "Bert", "digest": "0" * 16}]}, ["archives[0].model"]),
        ({"archives": [{"model": "a", "digest": "0" * 16}] * 2}, ["archives", "each archive once, not a twice"]),
        ({"platform": {"release": "24.09"}}, ["platform.gpu"]),
        ({"network": {"subnet_ids": []}}, ["network.subnet_ids", "network.security_group_ids"]),
        ({"parallel_engines": 0, "size": "huge"}, ["parallel_engines", "size", "full, tiny"]),
    ],
)
def test_a_wrong_document_is_refused_with_its_fields(changes: dict[str, Any], said: list[str]) -> None:
    with pytest.raises(InputError) as refused:
        read_order(document(**changes), file="s3://bucket/order.json")
    for words in ["s3://bucket/order.json", *said]:
        assert words in str(refused.value)


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(InputError, match="a JSON document of a build set or an order"):
        read_order("{", file="order.json")


def test_an_order_of_a_version_without_tags_is_read() -> None:
    assert read_order(document(), file="order.json").tags == {}


def test_a_recorded_digest_has_no_dependency() -> None:
    (row,) = read_order(document(archives=[{"model": "bert", "digest": "0" * 16}]), file="order.json").archives
    assert row.dependency is None


def test_synthesis_imports_no_boto3_with_it() -> None:
    code = "import sys, tritonstack.engines.order; sys.exit(any(m.startswith('boto') for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
