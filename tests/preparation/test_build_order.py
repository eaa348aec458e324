"""The order of an endpoint: its build set, its document, and what reading refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cases import cases
from tests.config.environment_file import write_environment
from tests.models.folders import write, write_double
from tritonstack.archives.wanted import wanted_archives
from tritonstack.config import load_environment
from tritonstack.errors import InputError
from tritonstack.models.source import BuildChoice
from tritonstack.preparation.build_order import JobNetwork, build_set, read_order
from tritonstack.preparation.deployed_builds import deployed_builds
from tritonstack.served import served_by


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
    network = JobNetwork(subnet_ids=("subnet-1",), security_group_ids=("sg-1", "sg-2"))
    for each in (order, order.model_copy(update={"network": network, "engine_builder": "processing"})):
        assert read_order(each.to_json(), file="order.json") == each


def test_instance_pools_have_a_build_set_for_each_gpu_with_the_same_archives(tmp_path: Path) -> None:
    folder = write_double(tmp_path)
    types = "instance_types: [ml.g5.xlarge, ml.g4dn.xlarge, ml.g5.2xlarge]"
    lines = f"mode: single-model\nmodels: [double]\n{types}"
    file = write_environment(tmp_path, endpoint=lines, without=["instance_type"])
    served = served_by(load_environment(file), folder.parent, file=file)
    documents = deployed_builds(served, folder.parent).build_sets["digits"]
    a10g, t4 = (read_order(each, file="order.json") for each in documents)
    assert (str(a10g.platform), str(t4.platform)) == ("24.09-a10g", "24.09-t4")
    assert a10g.model_copy(update={"platform": t4.platform}) == t4
    wanted = wanted_archives(served.environment, folder.parent, local=False)
    assert [(str(each.platform), each.source.name) for each in wanted] == [
        ("24.09-a10g", "double"),
        ("24.09-t4", "double"),
    ]


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


@cases("changes, expected")
def test_a_wrong_document_is_refused_with_its_fields(changes: dict[str, Any], expected: list[str]) -> None:
    with pytest.raises(InputError) as refused:
        read_order(document(**changes), file="s3://bucket/order.json")
    for words in ["s3://bucket/order.json", *expected]:
        assert words in str(refused.value)


def test_an_order_of_a_version_without_tags_or_of_a_recorded_digest_is_read() -> None:
    order = read_order(document(archives=[{"model": "bert", "digest": "0" * 16}]), file="order.json")
    assert (order.tags, order.archives[0].dependency) == ({}, None)


def test_synthesis_imports_no_boto3_with_it() -> None:
    code = "import sys, tritonstack.preparation.build_order; sys.exit(any(m.startswith('boto') for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
