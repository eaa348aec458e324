"""Endpoints with two production variants through the API: weights, counts, rollouts, and what SageMaker refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.tritonstack_local.emulator.cloudwatch.watching import Watching
from tests.tritonstack_local.emulator.running import IMAGE, ROLE_ARN, Emulator, make_role, serving
from tests.tritonstack_local.emulator.scaled_variants import Tracked, refused, target
from tests.tritonstack_local.emulator.test_faults import send
from tests.tritonstack_local.emulator.test_rollouts import TERMINATION, WAIT, Rollout, deployment_config, rolling_config

T4, A10G = "ml.g4dn.xlarge", "ml.g5.xlarge"
SINGLE = {"Mode": "SingleModel", "ModelDataUrl": "s3://bucket/one.tar.gz"}


def pair(
    name: str, *, weights: tuple[float, float] = (3, 1), counts: tuple[int, int] = (1, 1), second: str = "other"
) -> list[dict[str, Any]]:
    """Variants ``main`` and ``second``, on a type each."""
    return [
        {
            "VariantName": variant,
            "ModelName": name,
            "InstanceType": kind,
            "InitialInstanceCount": count,
            "InitialVariantWeight": weight,
        }
        for variant, kind, count, weight in zip(("main", second), (T4, A10G), counts, weights, strict=True)
    ]


def make_pair(emulator: Emulator, name: str, **settings: Any) -> None:
    """A single-model container and a config with two variants of it."""
    make_role(emulator)
    sagemaker = emulator.client("sagemaker")
    container = {"Image": IMAGE, **SINGLE}
    sagemaker.create_model(ModelName=name, ExecutionRoleArn=ROLE_ARN, PrimaryContainer=container)
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=pair(name, **settings))


def make_endpoint(aws: Emulator, name: str, **settings: Any) -> Any:
    """An endpoint in service with two variants; the client of SageMaker."""
    make_pair(aws, name, **settings)
    sagemaker = aws.client("sagemaker")
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    return sagemaker


def described(sagemaker: Any, name: str, *members: str) -> dict[str, tuple[Any, ...]]:
    """Variant → members of its summary."""
    found = sagemaker.describe_endpoint(EndpointName=name)["ProductionVariants"]
    return {variant["VariantName"]: tuple(variant[member] for member in members) for variant in found}


WEIGHTS = ("CurrentWeight", "DesiredWeight")
COUNTS = ("CurrentInstanceCount", "DesiredInstanceCount")


def test_each_variant_is_described_with_its_weight_count_and_image(aws: Emulator, name: str) -> None:
    sagemaker = make_endpoint(aws, name, counts=(1, 2))
    assert described(sagemaker, name, *WEIGHTS, *COUNTS) == {"main": (3, 3, 1, 1), "other": (1, 1, 2, 2)}
    [[[image]], _] = described(sagemaker, name, "DeployedImages").values()
    assert image["SpecifiedImage"] == IMAGE
    config = sagemaker.describe_endpoint_config(EndpointConfigName=name)
    assert config["ProductionVariants"] == pair(name, counts=(1, 2))


def test_variants_that_cannot_share_an_endpoint_are_refused(aws: Emulator, name: str) -> None:
    make_pair(aws, name)
    sagemaker = aws.client("sagemaker")
    container = {"Image": IMAGE, "Mode": "MultiModel", "ModelDataUrl": "s3://bucket/prefix/"}
    sagemaker.create_model(ModelName=f"{name}-many", ExecutionRoleArn=ROLE_ARN, PrimaryContainer=container)
    main, other = pair(name)
    for variants, words in (
        (pair(name, second="main"), "names of production variants must differ: main, main"),
        (pair(name, weights=(0, 0)), "must be greater than 0"),
        ([main, {**other, "ModelName": f"{name}-many"}], "of variant other is a multi-model container"),
        ([main, {**other, "ModelName": "gone"}], "Could not find model"),
        ([main, {"VariantName": "other", "ModelName": name}], "Variant other must have InitialInstanceCount"),
    ):
        request = {"EndpointConfigName": f"{name}-2", "ProductionVariants": variants}
        assert words in refused(sagemaker.create_endpoint_config, **request)
    sagemaker.create_endpoint_config(EndpointConfigName=f"{name}-2", ProductionVariants=pair(name, weights=(1, 0)))


def test_weights_change_together_and_the_count_of_one_variant(aws: Emulator, name: str) -> None:
    sagemaker = make_endpoint(aws, name)

    def change(*wanted: dict[str, Any]) -> Any:
        return sagemaker.update_endpoint_weights_and_capacities(
            EndpointName=name, DesiredWeightsAndCapacities=list(wanted)
        )

    change({"VariantName": "main", "DesiredWeight": 0}, {"VariantName": "other", "DesiredWeight": 2})
    change({"VariantName": "other", "DesiredInstanceCount": 3})
    now = {"main": (0, 0, 1, 1), "other": (2, 2, 3, 3)}
    assert described(sagemaker, name, *WEIGHTS, *COUNTS) == now
    for wanted, words in (
        ([{"VariantName": "other", "DesiredWeight": 0}], "must be greater than 0"),
        ([{"VariantName": "third", "DesiredWeight": 1}], "has no variant third; it has main, other"),
        ([{"VariantName": each, "DesiredInstanceCount": 2} for each in now], "capacity of one variant"),
    ):
        with pytest.raises(ClientError, match=words):
            change(*wanted)
    assert described(sagemaker, name, *WEIGHTS, *COUNTS) == now


@pytest.mark.parametrize(
    ("retain", "excluded", "weight_and_count"),
    [
        (False, [], (8, 1)),
        (True, [], (5, 4)),
        (True, ["DesiredWeight"], (8, 4)),
        (True, ["DesiredInstanceCount"], (5, 1)),
    ],
)
def test_an_update_retains_the_properties_of_an_existing_variant_that_it_lists(
    aws: Emulator, name: str, retain: bool, excluded: list[str], weight_and_count: tuple[int, int]
) -> None:
    sagemaker = make_endpoint(aws, name)
    sagemaker.update_endpoint_weights_and_capacities(
        EndpointName=name,
        DesiredWeightsAndCapacities=[{"VariantName": "main", "DesiredWeight": 5, "DesiredInstanceCount": 4}],
    )
    make_pair(aws, f"{name}-2", weights=(8, 2), second="new")
    sagemaker.update_endpoint(
        EndpointName=name,
        EndpointConfigName=f"{name}-2",
        RetainAllVariantProperties=retain,
        ExcludeRetainedVariantProperties=[{"VariantPropertyType": each} for each in excluded],
    )
    found = described(sagemaker, name, "DesiredWeight", "DesiredInstanceCount")
    assert found == {"main": weight_and_count, "new": (2, 1)}


class PairRollout(Rollout):
    """The update of an endpoint with two variants, of four and of two instances."""

    def __init__(self, emulator: Emulator, name: str) -> None:
        self.emulator, self.name, self.new = emulator, name, f"{name}-2"
        self.sagemaker = make_endpoint(emulator, name, counts=(4, 2))
        assert emulator.report(name, name, "in_service") == 200
        make_pair(emulator, self.new, counts=(4, 2), weights=(1, 1))
        config = deployment_config(size=50, unit="CAPACITY_PERCENT")
        self.sagemaker.update_endpoint(EndpointName=name, EndpointConfigName=self.new, DeploymentConfig=config)

    def stage(self) -> tuple[str, int]:
        """The status of both variants and the first one's instances with traffic, of which the other has half."""
        main, other = self.described()["PendingDeploymentSummary"]["ProductionVariants"]
        assert main["VariantStatus"] == other["VariantStatus"]
        assert main["CurrentInstanceCount"] == 2 * other["CurrentInstanceCount"]
        return main["VariantStatus"][0]["Status"], main["CurrentInstanceCount"]


def test_a_canary_moves_both_variants_and_brings_the_new_weights(fleets: Emulator, name: str) -> None:
    rollout = PairRollout(fleets, name)
    assert rollout.stage() == ("Creating", 0)
    rollout.report("in_service")
    rollout.shifted(2)
    assert described(rollout.sagemaker, name, *WEIGHTS) == {"main": (3, 3), "other": (1, 1)}
    fleets.advance(WAIT + 1)
    rollout.shifted(4)
    fleets.advance(TERMINATION + 1)
    assert rollout.settled()["EndpointConfigName"] == rollout.new
    assert described(rollout.sagemaker, name, *WEIGHTS) == {"main": (1, 1), "other": (1, 1)}


def test_a_failed_update_leaves_both_variants_as_they_were(fleets: Emulator, name: str) -> None:
    rollout = PairRollout(fleets, name)
    rollout.report("failed", reason="other: no /ping")
    after = rollout.settled()
    assert (after["EndpointConfigName"], after["FailureReason"]) == (name, "other: no /ping")
    assert described(rollout.sagemaker, name, *WEIGHTS) == {"main": (3, 3), "other": (1, 1)}


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (rolling_config(), "rolling deployment cannot be used for an endpoint with several production variants"),
        (deployment_config(size=1), "CanarySize must be less than or equal to 50% .* total instance count, which is 1"),
    ],
    ids=["rolling", "a step of one variant's only instance"],
)
def test_guardrails_that_do_not_fit_every_variant_are_refused_and_leave_nothing(
    aws: Emulator, name: str, config: dict[str, Any], words: str
) -> None:
    sagemaker = make_endpoint(aws, name, counts=(4, 1))
    make_pair(aws, f"{name}-2", counts=(4, 1))
    for call, of in ((sagemaker.update_endpoint, name), (sagemaker.create_endpoint, f"{name}-3")):
        with pytest.raises(ClientError, match=words):
            call(EndpointName=of, EndpointConfigName=f"{name}-2", DeploymentConfig=config)
    [only] = sagemaker.list_endpoints(NameContains=name)["Endpoints"]
    assert (only["EndpointName"], only["EndpointStatus"]) == (name, "InService")


class TrackedPair(Tracked):
    """An endpoint with two scaled variants, of which ``main`` has a policy."""

    def __init__(self, aws: Emulator, name: str) -> None:
        Watching.__init__(self, aws, name)
        self.sagemaker = make_endpoint(aws, name)
        self.scaling = aws.client("application-autoscaling")
        for variant in ("main", "other"):
            self.scaling.register_scalable_target(**target(name, variant), MinCapacity=1, MaxCapacity=4)
        self.of = {"EndpointName": name, "VariantName": "main"}
        self.put_policy()

    @property
    def instances(self) -> int:
        """Of the variant with a policy; the other one keeps its own."""
        found = described(self.sagemaker, self.name, "DesiredInstanceCount", "DesiredWeight")
        assert found["other"] == (1, 1)
        return int(found["main"][0])


@pytest.fixture
def short(aws: Emulator) -> Iterator[Emulator]:
    """An emulator whose faults are removed afterwards."""
    yield aws
    send(aws, "DELETE")


def test_one_variant_is_scaled_whatever_the_other_one_s_type_lacks(short: Emulator, name: str) -> None:
    tracked = TrackedPair(short, name)
    for what in ("limit", "capacity"):
        send(short, "POST", {"instance_type": A10G, "short_of": what, "times": 9})
    assert tracked.invoked(1100, minutes=3) == 2
    [activity] = tracked.scaling.describe_scaling_activities(ServiceNamespace="sagemaker", **resource(name, "main"))[
        "ScalingActivities"
    ]
    assert activity["StatusCode"] == "Successful"
    wanted = [{"VariantName": "other", "DesiredInstanceCount": 2}]
    lacks = refused(
        tracked.sagemaker.update_endpoint_weights_and_capacities, EndpointName=name, DesiredWeightsAndCapacities=wanted
    )
    assert f"'{A10G} for endpoint usage' is " in lacks
    assert "a request delta of 1 Instances" in lacks


def resource(name: str, variant: str) -> dict[str, str]:
    return {"ResourceId": target(name, variant)["ResourceId"]}


def test_a_scaled_variant_keeps_the_endpoint_from_losing_it_while_the_other_may_go(aws: Emulator, name: str) -> None:
    sagemaker = make_endpoint(aws, name)
    aws.client("application-autoscaling").register_scalable_target(
        **target(name, "other"), MinCapacity=1, MaxCapacity=2
    )
    make_pair(aws, f"{name}-2", second="new")
    update = {"EndpointName": name, "EndpointConfigName": f"{name}-2"}
    assert 'The variant(s) "[other]" must be deregistered' in refused(sagemaker.update_endpoint, **update)
    only_other = [{**pair(name)[1], "ModelName": name}]
    sagemaker.create_endpoint_config(EndpointConfigName=f"{name}-3", ProductionVariants=only_other)
    sagemaker.update_endpoint(EndpointName=name, EndpointConfigName=f"{name}-3")
    assert described(sagemaker, name, "DesiredInstanceCount") == {"other": (1,)}


def test_a_stack_has_both_variants_and_a_wrong_weight_is_refused_by_name(aws: Emulator, name: str) -> None:
    def stack(*weights: float) -> dict[str, Any]:
        found = serving(name, container={"Mode": "SingleModel", "ModelDataUrl": "s3://bucket/one.tar.gz"})
        variants = pair(name, weights=weights)  # type: ignore[arg-type]
        for variant in variants:
            variant["ModelName"] = {"Fn::GetAtt": ["Model", "ModelName"]}
            variant["InitialVariantWeight"] = str(variant["InitialVariantWeight"])
        found["Config"]["Properties"]["ProductionVariants"] = variants
        return found

    assert aws.deploy(name, stack(0.9, 0.1)) == "CREATE_COMPLETE", aws.failures(name)
    sagemaker = aws.client("sagemaker")
    assert described(sagemaker, name, *WEIGHTS) == {"main": (0.9, 0.9), "other": (0.1, 0.1)}
    assert aws.deploy(name, stack(0.9, -0.1)) == "UPDATE_ROLLBACK_COMPLETE"
    assert "Member must have value greater than or equal to 0" in aws.failures(name)
    assert aws.deploy(name, stack(0, 1)) == "UPDATE_COMPLETE"
    assert described(sagemaker, name, *WEIGHTS) == {"main": (0, 0), "other": (1, 1)}
