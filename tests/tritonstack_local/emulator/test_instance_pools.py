"""Instance pools of the local AWS: refusals, the type that instances land on, scaling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.tritonstack_local.emulator.running import IMAGE, ROLE_ARN, Emulator, make_role
from tests.tritonstack_local.emulator.test_faults import send

A10G, T4 = "ml.g5.xlarge", "ml.g4dn.xlarge"
POOLS = [{"InstanceType": A10G, "Priority": 1}, {"InstanceType": T4, "Priority": 2}]


@pytest.fixture
def short(aws: Emulator) -> Iterator[Emulator]:
    """An emulator whose faults are removed afterwards."""
    yield aws
    send(aws, "DELETE")


def lacks(aws: Emulator, kind: str, *, what: str = "capacity", times: int = 1) -> None:
    """Make AWS refuse the next instances of a type."""
    status, response = send(aws, "POST", {"instance_type": kind, "short_of": what, "times": times})
    assert status == 200, response


def make_config(aws: Emulator, name: str, *, mode: str = "SingleModel", **variant: Any) -> None:
    """A config with instance pools, one of which has a Model of its own."""
    make_role(aws)
    sagemaker = aws.client("sagemaker")
    for model in (name, f"{name}-t4"):
        key = "prefix/" if mode == "MultiModel" else f"{model}.tar.gz"
        container = {"Image": IMAGE, "Mode": mode, "ModelDataUrl": f"s3://bucket/{key}"}
        sagemaker.create_model(ModelName=model, ExecutionRoleArn=ROLE_ARN, PrimaryContainer=container)
    pools = [POOLS[0], {**POOLS[1], "ModelNameOverride": f"{name}-t4"}]
    members = {"VariantName": "main", "ModelName": name, "InitialInstanceCount": 2, "InstancePools": pools}
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[{**members, **variant}])


def landed(aws: Emulator, name: str) -> dict[str, int]:
    """Instance type → live instances, as DescribeEndpoint shows them."""
    [variant] = aws.client("sagemaker").describe_endpoint(EndpointName=name)["ProductionVariants"]
    assert sum(pool["CurrentInstanceCount"] for pool in variant["InstancePools"]) == variant["CurrentInstanceCount"]
    return {pool["InstanceType"]: pool["CurrentInstanceCount"] for pool in variant["InstancePools"]}


@pytest.mark.parametrize(
    ("variant", "mode", "message"),
    [
        ({"InstanceType": A10G}, "SingleModel", "InstanceType and InstancePools cannot both be specified"),
        ({"InstancePools": POOLS[:1]}, "SingleModel", "must have 2 pools or more"),
        (
            {"InstancePools": [POOLS[0], {**POOLS[0], "Priority": 2}]},
            "SingleModel",
            "types of InstancePools must differ",
        ),
        ({"InstancePools": [POOLS[0], {**POOLS[1], "Priority": 1}]}, "SingleModel", "priorities of InstancePools must"),
        ({"InstancePools": [POOLS[0], {**POOLS[1], "Priority": 6}]}, "SingleModel", "less than or equal to 5"),
        (
            {"InstancePools": [POOLS[0], {**POOLS[1], "ModelNameOverride": "none"}]},
            "SingleModel",
            "Could not find model",
        ),
        ({"InstancePools": POOLS}, "MultiModel", "not supported for multi-model endpoints"),
    ],
)
def test_pools_that_sagemaker_refuses_are_refused(
    aws: Emulator, name: str, variant: dict[str, Any], mode: str, message: str
) -> None:
    with pytest.raises(ClientError, match=message):
        make_config(aws, name, mode=mode, **variant)


def test_a_shortage_lands_on_the_second_type_and_of_both_fails(short: Emulator, name: str) -> None:
    make_config(short, name)
    sagemaker = short.client("sagemaker")
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    assert landed(short, name) == {A10G: 2, T4: 0}
    sagemaker.delete_endpoint(EndpointName=name)
    lacks(short, A10G)
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    assert landed(short, name) == {A10G: 0, T4: 2}
    sagemaker.delete_endpoint(EndpointName=name)
    lacks(short, A10G)
    lacks(short, T4)
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    found = sagemaker.describe_endpoint(EndpointName=name)
    assert (found["EndpointStatus"], "InsufficientInstanceCapacity" in found["FailureReason"]) == ("Failed", True)


def test_scaling_goes_out_by_priority_and_in_from_the_lowest(short: Emulator, name: str) -> None:
    make_config(short, name)
    sagemaker = short.client("sagemaker")
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)

    def scaled(count: int) -> dict[str, int]:
        wanted = [{"VariantName": "main", "DesiredInstanceCount": count}]
        sagemaker.update_endpoint_weights_and_capacities(EndpointName=name, DesiredWeightsAndCapacities=wanted)
        return landed(short, name)

    lacks(short, A10G)
    assert scaled(4) == {A10G: 2, T4: 2}
    assert scaled(5) == {A10G: 3, T4: 2}
    assert scaled(4) == {A10G: 3, T4: 1}
    assert scaled(2) == {A10G: 2, T4: 0}


def test_a_quota_of_any_pools_type_refuses_the_request(short: Emulator, name: str) -> None:
    make_config(short, name)
    lacks(short, T4, what="limit")
    with pytest.raises(ClientError, match=f"'{T4} for endpoint usage'"):
        short.client("sagemaker").create_endpoint(EndpointName=name, EndpointConfigName=name)


def test_another_list_under_a_scalable_target_is_refused(aws: Emulator, name: str) -> None:
    make_config(aws, name)
    sagemaker, scaling = aws.client("sagemaker"), aws.client("application-autoscaling")
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    scaling.register_scalable_target(
        ServiceNamespace="sagemaker",
        ResourceId=f"endpoint/{name}/variant/main",
        ScalableDimension="sagemaker:variant:DesiredInstanceCount",
        MinCapacity=1,
        MaxCapacity=4,
    )
    other = f"{name}-other"
    make_config(aws, other, InstancePools=[POOLS[1], {**POOLS[0], "Priority": 3}])
    with pytest.raises(ClientError, match="must be deregistered"):
        sagemaker.update_endpoint(EndpointName=name, EndpointConfigName=other)
