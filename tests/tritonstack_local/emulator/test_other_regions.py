"""An endpoint in a region that the runtime does not look at."""

from __future__ import annotations

import boto3

from tests.tritonstack_local.emulator.running import IMAGE, ROLE_ARN, Emulator, make_config, make_role

FAR = "eu-west-1"


def test_it_is_in_service_without_a_container_and_the_log_reports_it(fleets: Emulator, name: str) -> None:
    make_role(fleets)
    sagemaker = boto3.client(
        "sagemaker",
        endpoint_url=fleets.url,
        region_name=FAR,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )
    sagemaker.create_model(
        ModelName=name,
        ExecutionRoleArn=ROLE_ARN,
        PrimaryContainer={"Image": IMAGE, "Mode": "MultiModel", "ModelDataUrl": "s3://bucket/prefix/"},
    )
    variant = {"VariantName": "main", "ModelName": name, "InstanceType": "ml.g4dn.xlarge", "InitialInstanceCount": 1}
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant])
    arn = sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)["EndpointArn"]
    assert arn.startswith(f"arn:aws:sagemaker:{FAR}:")
    assert sagemaker.describe_endpoint(EndpointName=name)["EndpointStatus"] == "InService"
    assert f"{name}: InService at once, NO CONTAINER WAS STARTED (it is in {FAR}" in fleets.log.read_text()


def test_one_at_home_waits_for_its_fleet(fleets: Emulator, name: str) -> None:
    make_config(fleets, name)
    sagemaker = fleets.client("sagemaker")
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    assert sagemaker.describe_endpoint(EndpointName=name)["EndpointStatus"] == "Creating"
    assert fleets.report(name, name, "in_service") == 200
