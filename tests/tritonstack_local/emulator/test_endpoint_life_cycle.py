"""Endpoints through the API, with the test as the runtime."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.tritonstack_local.emulator.running import IMAGE, ROLE_ARN, Emulator, make_config


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


def test_failed_update_leaves_the_endpoint_in_service_on_the_old_config(fleets: Emulator, name: str) -> None:
    _in_service(fleets, name)
    make_config(fleets, name + "-2")
    sagemaker = fleets.client("sagemaker")
    sagemaker.update_endpoint(EndpointName=name, EndpointConfigName=name + "-2")
    fleets.report(name, name + "-2", "failed", "the container ended")
    endpoint = sagemaker.describe_endpoint(EndpointName=name)
    assert (endpoint["EndpointStatus"], endpoint["EndpointConfigName"]) == ("InService", name)
    assert endpoint["FailureReason"] == "the container ended"


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


def test_report_without_an_outcome_is_refused(fleets: Emulator, name: str) -> None:
    assert fleets.report(name, name, "perhaps") == 400


def test_the_sagemaker_sdks_clean_up_deletes_config_then_endpoint(fleets: Emulator, name: str) -> None:
    """The calls of ``Predictor.delete_endpoint()`` in their order (aws/sagemaker-python-sdk, base_predictor.py)."""
    _in_service(fleets, name)
    sagemaker = fleets.client("sagemaker")
    config = sagemaker.describe_endpoint(EndpointName=name)["EndpointConfigName"]
    sagemaker.delete_endpoint_config(EndpointConfigName=config)
    sagemaker.delete_endpoint(EndpointName=name)
    with pytest.raises(ClientError, match="Could not find endpoint "):
        sagemaker.describe_endpoint(EndpointName=name)


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


def test_an_update_whose_configs_are_deleted_goes_on(fleets: Emulator, name: str) -> None:
    _in_service(fleets, name)
    make_config(fleets, name + "-2")
    sagemaker = fleets.client("sagemaker")
    sagemaker.update_endpoint(EndpointName=name, EndpointConfigName=name + "-2")
    for config in (name, name + "-2"):
        sagemaker.delete_endpoint_config(EndpointConfigName=config)
    assert fleets.report(name, name + "-2", "in_service") == 200
    assert sagemaker.describe_endpoint(EndpointName=name)["EndpointConfigName"] == name + "-2"


def test_model_of_a_live_endpoint_can_be_deleted(aws: Emulator, name: str) -> None:
    make_config(aws, name)
    sagemaker = aws.client("sagemaker")
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    sagemaker.delete_model(ModelName=name)
    assert sagemaker.describe_endpoint(EndpointName=name)["EndpointStatus"] == "InService"


def test_without_fleets_an_endpoint_is_in_service_at_once_and_the_log_reports_it(aws: Emulator, name: str) -> None:
    make_config(aws, name)
    aws.client("sagemaker").create_endpoint(EndpointName=name, EndpointConfigName=name)
    assert aws.client("sagemaker").describe_endpoint(EndpointName=name)["EndpointStatus"] == "InService"
    assert f"{name}: InService at once, NO CONTAINER WAS STARTED" in aws.log.read_text()


def test_update_retains_the_instance_count_only_when_asked(aws: Emulator, name: str) -> None:
    make_config(aws, name, InitialInstanceCount=3)
    make_config(aws, name + "-2", InitialInstanceCount=1)
    sagemaker = aws.client("sagemaker")
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    counts = []
    for retain in (True, False):
        sagemaker.update_endpoint(EndpointName=name, EndpointConfigName=name + "-2", RetainAllVariantProperties=retain)
        endpoint = sagemaker.describe_endpoint(EndpointName=name)
        counts.append(endpoint["ProductionVariants"][0]["DesiredInstanceCount"])
    assert counts == [3, 1]


def test_names_are_unique_and_found_without_regard_to_case(aws: Emulator, name: str) -> None:
    make_config(aws, name)
    sagemaker = aws.client("sagemaker")
    assert sagemaker.describe_model(ModelName=name.upper())["ModelName"] == name
    with pytest.raises(ClientError, match="Cannot create already existing model"):
        make_config(aws, name.upper())


def test_config_of_a_missing_model_is_refused(aws: Emulator, name: str) -> None:
    variant = {"VariantName": "v", "ModelName": "gone", "InstanceType": "ml.g4dn.xlarge", "InitialInstanceCount": 1}
    with pytest.raises(ClientError, match='Could not find model "arn:aws:sagemaker:us-east-1:123456789012:model/gone"'):
        aws.client("sagemaker").create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant])


@pytest.mark.parametrize(
    ("routing", "words"),
    [
        ({"RoutingStrategy": "PREFIX_AWARE"}, "PrefixLength and ConcurrencyThreshold are required"),
        (
            {"RoutingStrategy": "PREFIX_AWARE", "PrefixAwareRoutingConfig": {"PrefixLength": 1024}},
            "PrefixLength and ConcurrencyThreshold are required",
        ),
        (
            {"RoutingStrategy": "RANDOM", "PrefixAwareRoutingConfig": {"PrefixLength": 1024}},
            "is for PREFIX_AWARE only, not for RANDOM",
        ),
        ({"RoutingStrategy": "KV_AWARE"}, "supported containers|Member must satisfy enum value set"),  # by botocore
    ],
)
def test_routing_by_prompts_needs_what_the_api_reference_requires(
    aws: Emulator, name: str, routing: dict[str, Any], words: str
) -> None:
    make_config(aws, name)
    variant = {"VariantName": "v", "ModelName": name, "InstanceType": "ml.g4dn.xlarge", "InitialInstanceCount": 1}
    with pytest.raises(ClientError, match=words):
        aws.client("sagemaker").create_endpoint_config(
            EndpointConfigName=f"{name}-2", ProductionVariants=[variant | {"RoutingConfig": routing}]
        )


def test_metrics_are_published_at_the_documented_intervals_and_shown_with_their_defaults(
    aws: Emulator, name: str
) -> None:
    make_config(aws, name)
    sagemaker = aws.client("sagemaker")
    variant = {"VariantName": "v", "ModelName": name, "InstanceType": "ml.g4dn.xlarge", "InitialInstanceCount": 1}

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


def test_model_without_an_image_is_refused(aws: Emulator, name: str) -> None:
    with pytest.raises(ClientError, match="must have an Image"):
        aws.client("sagemaker").create_model(
            ModelName=name, ExecutionRoleArn=ROLE_ARN, PrimaryContainer={"Mode": "MultiModel"}
        )


def test_model_without_a_role_that_exists_is_refused(aws: Emulator, name: str) -> None:
    for role in ("arn:aws:iam::123456789012:role/nobody", "arn:aws:iam::210987654321:role/any"):
        with pytest.raises(ClientError, match="Please ensure that the role exists"):
            aws.client("sagemaker").create_model(
                ModelName=name, ExecutionRoleArn=role, PrimaryContainer={"Image": IMAGE, "Mode": "MultiModel"}
            )


def test_request_outside_the_service_model_is_refused_in_the_words_of_aws(aws: Emulator, name: str) -> None:
    make_config(aws, name)
    variant = {"VariantName": "v", "ModelName": name, "InstanceType": "ml.g4dn.xlarg", "InitialInstanceCount": 0}
    with pytest.raises(ClientError) as refused:
        # botocore checks the count's range itself; a negative weight and an unknown type are the service's to refuse
        aws.client("sagemaker").create_endpoint_config(
            EndpointConfigName=name + "-2",
            ProductionVariants=[{**variant, "InitialInstanceCount": 1, "VolumeSizeInGB": 5000}],
        )
    message = refused.value.response["Error"]["Message"]
    assert refused.value.response["Error"]["Code"] == "ValidationException"
    assert message.startswith("2 validation errors detected")
    assert "'productionVariants.1.member.instanceType' failed to satisfy constraint" in message
    assert "Member must have value less than or equal to 512" in message
    assert "ml.g4dn.xlarge" in message
    assert "source: botocore" in message


def test_unknown_operation_is_refused_by_name(aws: Emulator) -> None:
    with pytest.raises(ClientError, match="sagemaker:ListTrainingJobs is not in the local AWS"):
        aws.client("sagemaker").list_training_jobs()


def test_tags_are_added_overwritten_listed_and_deleted(aws: Emulator, name: str) -> None:
    make_config(aws, name)
    sagemaker = aws.client("sagemaker")
    arn = sagemaker.describe_model(ModelName=name)["ModelArn"]
    sagemaker.add_tags(ResourceArn=arn, Tags=[{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "1"}])
    sagemaker.add_tags(ResourceArn=arn, Tags=[{"Key": "a", "Value": "2"}])
    sagemaker.delete_tags(ResourceArn=arn, TagKeys=["b"])
    assert sagemaker.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "a", "Value": "2"}]
    sagemaker.delete_model(ModelName=name)
    with pytest.raises(ClientError, match="Could not find resource"):
        sagemaker.list_tags(ResourceArn=arn)
