"""Instance pools in templates: one Model for each GPU, its archive checked, readable and verified."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.constructs_lib.templates import flat, of_type, only, properties, statements
from tests.stacks.environments import SINGLE, serving_template

POOLS = {
    **{name: value for name, value in SINGLE.items() if name != "instance_type"},
    "instance_types": ["ml.g5.xlarge", "ml.g4dn.xlarge", "ml.g5.2xlarge"],
    "provision_seconds": 1800,
}
PREFIXES = ("endpoints/single/24.09-a10g/", "endpoints/single/24.09-t4/")


@pytest.fixture(scope="module")
def pooled() -> dict[str, Any]:
    return serving_template(POOLS)


def variant(template: dict[str, Any]) -> dict[str, Any]:
    [found] = properties(template, "AWS::SageMaker::EndpointConfig")["ProductionVariants"]
    return dict(found)


def model_data(template: dict[str, Any]) -> dict[str, str]:
    """Logical id of each Model → where its archive lies in the bucket."""
    urls = {
        name: flat(each["Properties"]["PrimaryContainer"]["ModelDataUrl"])
        for name, each in of_type(template, "AWS::SageMaker::Model").items()
    }
    return {name: url.partition("}/")[2] for name, url in urls.items()}


def test_pools_are_in_order_of_preference_and_another_gpu_runs_a_model_of_its_own(pooled: dict[str, Any]) -> None:
    data, found = model_data(pooled), variant(pooled)
    t4, a10g = (next(name for name, key in data.items() if f"-{gpu}/" in key) for gpu in ("t4", "a10g"))
    assert [data[a10g].rpartition("/")[0], data[t4].rpartition("/")[0]] == [each.rstrip("/") for each in PREFIXES]
    assert data[a10g].rpartition("/")[2] == data[t4].rpartition("/")[2]
    assert "InstanceType" not in found
    assert found["ModelName"] == {"Fn::GetAtt": [a10g, "ModelName"]}
    assert found["InstancePools"] == [
        {"InstanceType": "ml.g5.xlarge", "Priority": 1},
        {"InstanceType": "ml.g4dn.xlarge", "Priority": 2, "ModelNameOverride": {"Fn::GetAtt": [t4, "ModelName"]}},
        {"InstanceType": "ml.g5.2xlarge", "Priority": 3},
    ]
    assert found["VariantInstanceProvisionTimeoutInSeconds"] == 1800
    assert found["RoutingConfig"] == {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}


def test_pools_of_one_gpu_have_one_model_and_no_override() -> None:
    template = serving_template({**POOLS, "instance_types": ["ml.g5.xlarge", "ml.g5.2xlarge"]})
    assert len(model_data(template)) == 1
    assert [each.keys() for each in variant(template)["InstancePools"]] == [{"InstanceType", "Priority"}] * 2
    assert len(of_type(template, "Custom::PublishedArchives")) == 1


def test_every_platforms_archives_are_checked_before_any_model_is_made(pooled: dict[str, Any]) -> None:
    checks = of_type(pooled, "Custom::PublishedArchives")
    by_prefix = {each["Properties"]["ArchivePrefix"]: name for name, each in checks.items()}
    assert set(by_prefix) == set(PREFIXES)
    first, last = by_prefix[PREFIXES[1]], by_prefix[PREFIXES[0]]
    assert first in checks[last]["DependsOn"]
    for each in of_type(pooled, "AWS::SageMaker::Model").values():
        assert last in each["DependsOn"]


def test_the_role_reads_the_archives_of_each_gpu_and_of_no_other(pooled: dict[str, Any]) -> None:
    policies = of_type(pooled, "AWS::IAM::Policy")
    [policy] = [each["Properties"] for name, each in policies.items() if name.startswith("ExecutionRole")]
    found = statements(policy)
    assert [flat(each).partition("/")[2] for each in found["ReadArchives"]["Resource"]] == [
        f"{each}*" for each in PREFIXES
    ]
    listed = found["ListArchives"]["Condition"]["StringLike"]["s3:prefix"]
    assert {each.rstrip("*").rstrip("/") for each in listed} == {each.rstrip("/") for each in PREFIXES}


def test_verification_gets_the_manifests_of_each_type_and_returns_what_landed(pooled: dict[str, Any]) -> None:
    name, verified = only(pooled, "Custom::VerifiedEndpoint")
    manifests = {"a10g": "manifests/single/24.09-a10g/", "t4": "manifests/single/24.09-t4/"}
    assert json.loads(verified["Properties"]["Pools"]) == {
        "ml.g5.xlarge": manifests["a10g"],
        "ml.g4dn.xlarge": manifests["t4"],
        "ml.g5.2xlarge": manifests["a10g"],
    }
    assert pooled["Outputs"]["Landed"]["Value"] == {"Fn::GetAtt": [name, "Landed"]}
    policies = of_type(pooled, "AWS::IAM::Policy")
    [policy] = [each["Properties"] for name, each in policies.items() if name.startswith("Verification")]
    read = [flat(each) for each in statements(policy)["ReadManifests"]["Resource"]]
    assert [each.partition("/")[2] for each in read] == [f"{each}*" for each in manifests.values()]


def test_another_list_is_another_variant_for_a_scalable_target_takes_no_other_types() -> None:
    names = [
        variant(serving_template({**POOLS, "instance_types": types}))["VariantName"]
        for types in (["ml.g5.xlarge", "ml.g4dn.xlarge"], ["ml.g5.xlarge", "ml.g5.2xlarge"])
    ]
    assert [name.rpartition("-")[0] for name in names] == ["g5-xlarge-pool"] * 2
    assert len(set(names)) == 2
    assert variant(serving_template({**POOLS, "variant": "AllTraffic"}))["VariantName"] == "AllTraffic"


def test_a_change_of_a_fallbacks_model_is_a_change_of_a_scaled_endpoint() -> None:
    template = serving_template({**POOLS, "scaling": {"minimum": 1, "maximum": 3, "concurrency": 4.0}})
    _, before = only(template, "Custom::ScalingBefore")
    assert all(f"${{{name}.ModelName}}" in flat(before["Properties"]["Model"]) for name in model_data(template))
    assert "pools=('ml.g5.xlarge'" in before["Properties"]["Fleet"]
