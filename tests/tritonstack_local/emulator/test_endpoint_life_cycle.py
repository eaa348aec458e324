"""Endpoints through the API, with the test as the runtime."""

from __future__ import annotations

import json

import pytest
from botocore.exceptions import ClientError

from tests.docs.pages import code_blocks
from tests.tritonstack_local.emulator.running import IMAGE, ROLE_ARN, Emulator, make_config
from tests.tritonstack_local.emulator.test_stack_operations import PAGE, run

VARIANT = {"VariantName": "main", "InstanceType": "ml.g4dn.xlarge", "InitialInstanceCount": 1}


def test_endpoint_is_creating_until_its_fleet_is_reported(fleets: Emulator, name: str) -> None:
    make_config(fleets, name)
    sagemaker = fleets.client("sagemaker")
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    before = sagemaker.describe_endpoint(EndpointName=name)
    assert (before["EndpointStatus"], before["PendingDeploymentSummary"]["EndpointConfigName"]) == ("Creating", name)
    assert fleets.report(name, name, "in_service") == 200
    after = sagemaker.describe_endpoint(EndpointName=name)
    assert after["EndpointStatus"] == "InService"
    assert "PendingDeploymentSummary" not in after
    variant = after["ProductionVariants"][0]
    assert (variant["VariantName"], variant["CurrentInstanceCount"]) == ("main", 1)


def test_failed_creation_leaves_a_failed_endpoint_that_can_only_be_deleted(fleets: Emulator, name: str) -> None:
    make_config(fleets, name)
    sagemaker = fleets.client("sagemaker")
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    fleets.report(name, name, "failed", "no /ping")
    endpoint = sagemaker.describe_endpoint(EndpointName=name)
    assert (endpoint["EndpointStatus"], endpoint["FailureReason"]) == ("Failed", "no /ping")
    with pytest.raises(ClientError, match="Cannot update failed endpoint"):
        sagemaker.update_endpoint(EndpointName=name, EndpointConfigName=name)
    sagemaker.delete_endpoint(EndpointName=name)
    with pytest.raises(ClientError, match='Could not find endpoint "arn:aws:sagemaker:us-east-1:123456789012:endpoint'):
        sagemaker.describe_endpoint(EndpointName=name)


def test_the_mark_changes_with_everything_the_runtime_reads_of_an_endpoint(fleets: Emulator, name: str) -> None:
    sagemaker = fleets.client("sagemaker")
    make_config(fleets, name)
    make_config(fleets, name + "-2")
    marks = [fleets.get("/_tritonstack/mark")["mark"]]
    arn = sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)["EndpointArn"]
    for change in (
        lambda: None,
        lambda: fleets.report(name, name, "in_service"),
        lambda: sagemaker.add_tags(
            ResourceArn=arn, Tags=[{"Key": "tritonstack:local-max-loaded-models", "Value": "2"}]
        ),
        lambda: sagemaker.update_endpoint(EndpointName=name, EndpointConfigName=name + "-2"),
        lambda: fleets.report(name, name + "-2", "failed", "no /ping"),
        lambda: sagemaker.delete_endpoint(EndpointName=name),
    ):
        change()
        marks.append(fleets.get("/_tritonstack/mark")["mark"])
        assert fleets.get("/_tritonstack/mark")["mark"] == marks[-1]
    assert marks[-1] == marks[0]
    assert len(set(marks)) == len(marks) - 1


def _in_service(fleets: Emulator, name: str) -> None:
    make_config(fleets, name)
    fleets.client("sagemaker").create_endpoint(EndpointName=name, EndpointConfigName=name)
    assert fleets.report(name, name, "in_service") == 200


def test_update_keeps_the_old_config_until_the_new_fleet_is_reported(fleets: Emulator, name: str) -> None:
    _in_service(fleets, name)
    make_config(fleets, name + "-2", InitialInstanceCount=2)
    sagemaker = fleets.client("sagemaker")
    sagemaker.update_endpoint(EndpointName=name, EndpointConfigName=name + "-2")
    during = sagemaker.describe_endpoint(EndpointName=name)
    assert (during["EndpointStatus"], during["EndpointConfigName"]) == ("Updating", name)
    pending = during["PendingDeploymentSummary"]
    assert pending["EndpointConfigName"] == name + "-2"
    assert pending["ProductionVariants"][0]["DesiredInstanceCount"] == 2
    assert fleets.report(name, name + "-2", "in_service") == 200
    after = sagemaker.describe_endpoint(EndpointName=name)
    assert (after["EndpointStatus"], after["EndpointConfigName"]) == ("InService", name + "-2")


def test_endpoint_in_progress_can_be_neither_updated_nor_deleted(fleets: Emulator, name: str) -> None:
    make_config(fleets, name)
    sagemaker = fleets.client("sagemaker")
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    with pytest.raises(ClientError, match="Cannot update in-progress endpoint"):
        sagemaker.update_endpoint(EndpointName=name, EndpointConfigName=name)
    with pytest.raises(ClientError, match="Cannot update in-progress endpoint"):
        sagemaker.delete_endpoint(EndpointName=name)


def test_report_for_a_config_that_is_not_pending_is_a_conflict(fleets: Emulator, name: str) -> None:
    _in_service(fleets, name)
    assert fleets.report(name, name, "in_service") == 409
    assert fleets.report("no-such-endpoint", name, "in_service") == 409
    assert fleets.report(name, name, "perhaps") == 400, "no outcome"


def test_an_endpoint_whose_config_was_deleted_serves_on_and_cannot_be_updated(fleets: Emulator, name: str) -> None:
    _in_service(fleets, name)
    make_config(fleets, name + "-2")
    sagemaker = fleets.client("sagemaker")
    sagemaker.delete_endpoint_config(EndpointConfigName=name)
    with pytest.raises(ClientError, match="Could not find endpoint configuration"):
        sagemaker.describe_endpoint_config(EndpointConfigName=name)
    with pytest.raises(ClientError, match=f'Could not find endpoint configuration ".*endpoint-config/{name.lower()}"'):
        sagemaker.update_endpoint(EndpointName=name, EndpointConfigName=name + "-2")
    after = sagemaker.describe_endpoint(EndpointName=name)
    assert (after["EndpointStatus"], after["EndpointConfigName"]) == ("InService", name)
    [recreate] = (block for block in code_blocks(PAGE) if block.heading == "An endpoint configuration that was deleted")
    variants = sagemaker.describe_endpoint_config(EndpointConfigName=name + "-2")["ProductionVariants"]
    run(recreate, fleets, ENDPOINT=name, VARIANTS=json.dumps(variants))
    sagemaker.update_endpoint(EndpointName=name, EndpointConfigName=name + "-2")
    assert sagemaker.describe_endpoint(EndpointName=name)["EndpointStatus"] == "Updating"
    assert fleets.report(name, name + "-2", "in_service") == 200


def test_without_fleets_an_endpoint_is_in_service_at_once_and_its_model_may_go(aws: Emulator, name: str) -> None:
    make_config(aws, name)
    sagemaker = aws.client("sagemaker")
    with pytest.raises(ClientError, match="Cannot create already existing model"):
        make_config(aws, name.upper())
    assert sagemaker.describe_model(ModelName=name.upper())["ModelName"] == name
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    sagemaker.delete_model(ModelName=name)
    assert sagemaker.describe_endpoint(EndpointName=name)["EndpointStatus"] == "InService"
    assert f"{name}: InService at once, NO CONTAINER WAS STARTED" in aws.log.read_text()


def test_metrics_are_published_at_the_documented_intervals_and_shown_with_their_defaults(
    aws: Emulator, name: str
) -> None:
    make_config(aws, name)
    sagemaker = aws.client("sagemaker")
    variant = {**VARIANT, "ModelName": name}

    def create(seconds: int) -> None:
        sagemaker.create_endpoint_config(
            EndpointConfigName=f"{name}-2",
            ProductionVariants=[variant],
            MetricsConfig={"MetricPublishFrequencyInSeconds": seconds},
        )

    with pytest.raises(ClientError, match="is 45; valid values: 10, 30, 60"):
        create(45)
    create(30)
    shown = [sagemaker.describe_endpoint_config(EndpointConfigName=each) for each in (name, f"{name}-2")]
    assert [each["MetricsConfig"] for each in shown] == [
        {"EnableDetailedObservability": True},
        {"EnableDetailedObservability": True, "MetricPublishFrequencyInSeconds": 30},
    ]


def test_model_needs_an_image_and_a_role_and_a_config_its_model(aws: Emulator, name: str) -> None:
    sagemaker = aws.client("sagemaker")
    for role, container, words in (
        (ROLE_ARN, {"Mode": "MultiModel"}, "must have an Image"),
        ("arn:aws:iam::123456789012:role/nobody", {"Image": IMAGE}, "Please ensure that the role exists"),
        ("arn:aws:iam::210987654321:role/any", {"Image": IMAGE}, "Please ensure that the role exists"),
    ):
        with pytest.raises(ClientError, match=words):
            sagemaker.create_model(ModelName=name, ExecutionRoleArn=role, PrimaryContainer=container)
    with pytest.raises(ClientError, match='Could not find model "arn:aws:sagemaker:us-east-1:123456789012:model/gone"'):
        sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[{**VARIANT, "ModelName": "gone"}])
    make_config(aws, name)
    with pytest.raises(ClientError, match=r"ml\.g4dn\.xlarge has local storage and takes no key"):
        sagemaker.create_endpoint_config(
            EndpointConfigName=f"{name}-2", KmsKeyId="key", ProductionVariants=[{**VARIANT, "ModelName": name}]
        )
    with pytest.raises(ClientError, match="sagemaker:ListTrainingJobs is not in the local AWS"):
        sagemaker.list_training_jobs()
    with pytest.raises(ClientError, match="NextToken is not valid"):
        sagemaker.list_models(NextToken="made-up")


@pytest.fixture(scope="module")
def many(aws: Emulator) -> list[str]:
    """Thirteen endpoints, in the order they were made."""
    names = [f"listed-{number:02}" for number in range(13)]
    make_config(aws, "listed")
    for name in names:
        aws.client("sagemaker").create_endpoint(EndpointName=name, EndpointConfigName="listed")
    return names


def test_pages_hold_ten_by_default_newest_first(aws: Emulator, many: list[str]) -> None:
    page = aws.client("sagemaker").list_endpoints(NameContains="listed-")
    assert [e["EndpointName"] for e in page["Endpoints"]] == many[::-1][:10]
    rest = aws.client("sagemaker").list_endpoints(NameContains="listed-", NextToken=page["NextToken"])
    assert [e["EndpointName"] for e in rest["Endpoints"]] == many[::-1][10:]
    assert "NextToken" not in rest


def test_a_capacity_reservation_is_kept_shown_with_its_use_and_one_for_all_variants(aws: Emulator, name: str) -> None:
    make_config(aws, name)
    sagemaker, plan = aws.client("sagemaker"), "arn:aws:sagemaker:us-east-1:123456789012:training-plan/gpus"
    reserved = {"CapacityReservationPreference": "capacity-reservations-only", "MlReservationArn": plan}
    variant = {**VARIANT, "ModelName": name, "CapacityReservationConfig": reserved}
    sagemaker.create_endpoint_config(EndpointConfigName=f"{name}-2", ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=f"{name}-2")
    [shown] = sagemaker.describe_endpoint(EndpointName=name)["ProductionVariants"]
    assert shown["CapacityReservationConfig"] == {**reserved, "UsedByCurrentEndpoint": 1}
    single = {"Image": IMAGE, "ModelDataUrl": "s3://bucket/prefix/a.tar.gz"}
    sagemaker.create_model(ModelName=f"{name}-single", ExecutionRoleArn=ROLE_ARN, PrimaryContainer=single)
    variants = [
        {**variant, "VariantName": each, "ModelName": f"{name}-single", "CapacityReservationConfig": reservation}
        for each, reservation in (("a", reserved), ("b", {**reserved, "MlReservationArn": f"{plan}-2"}))
    ]
    with pytest.raises(ClientError, match="must use one capacity reservation"):
        sagemaker.create_endpoint_config(EndpointConfigName=f"{name}-3", ProductionVariants=variants)
