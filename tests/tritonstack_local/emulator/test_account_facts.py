"""What preflight and the price update ask about an account: quotas, images, instance types, prices, keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError
from botocore.validate import ParamValidator
from click.testing import CliRunner, Result

from tests.tritonstack_local.emulator.running import Emulator
from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.price_file import read_price_file
from tritonstack.catalogue.prices import CONSTRUCTED_VERSION
from tritonstack_capacity.commands import prices
from tritonstack_capacity.price_list import read_product
from tritonstack_local.aws import LocalAws
from tritonstack_local.processes import ProcessRecord

IMAGES = "763104351884"
REPOSITORY = "sagemaker-tritonserver"


def code(error: pytest.ExceptionInfo[ClientError]) -> str:
    """The code of a refusal."""
    return str(error.value.response["Error"]["Code"])


def quotas(aws: Emulator, service: str, operation: str = "list_service_quotas", page: int = 100) -> dict[str, float]:
    """Every quota of a service, page by page."""
    pages = (
        aws.client("service-quotas")
        .get_paginator(operation)
        .paginate(ServiceCode=service, PaginationConfig={"PageSize": page})
    )
    return {row["QuotaName"]: row["Value"] for part in pages for row in part["Quotas"]}


def test_quotas_have_awss_names_and_come_in_pages(aws: Emulator) -> None:
    whole = quotas(aws, "sagemaker")
    assert {
        "ml.g4dn.xlarge for endpoint usage": 20.0,
        "ml.g4dn.xlarge for processing job usage": 4.0,
        "Number of instances across active endpoints": 50.0,
        "Number of instances across all processing jobs": 50.0,
    }.items() <= whole.items()
    assert quotas(aws, "sagemaker", page=3) == whole
    assert quotas(aws, "sagemaker", operation="list_aws_default_service_quotas") == whole
    assert {
        "Concurrently running builds for Linux GPU Small environment",
        "Concurrently running builds for Linux/Large environment",
    } <= quotas(aws, "codebuild").keys()


def test_other_services_have_no_facts_and_requests_are_checked(aws: Emulator) -> None:
    quotas_client = aws.client("service-quotas")
    rows = quotas_client.list_service_quotas(ServiceCode="sagemaker")["Quotas"]
    [row] = [row for row in rows if row["QuotaName"] == "Number of instances across active endpoints"]
    assert (row["QuotaCode"], row["Adjustable"], "constructed" in row["ServiceName"]) == ("L-7A3DF611", True, True)
    increase = {"ServiceCode": "sagemaker", "QuotaCode": "L-7A3DF611", "DesiredValue": 9}
    for call, request, refusal in (
        (quotas_client.list_service_quotas, {"ServiceCode": "ec2"}, "NoSuchResourceException"),
        (quotas_client.request_service_quota_increase, increase, "UnknownOperationException"),
        (aws.client("pricing").get_products, {"ServiceCode": "AmazonEC2"}, "InvalidParameterException"),
    ):
        with pytest.raises(ClientError) as error:
            call(**request)
        assert code(error) == refusal


def image(aws: Emulator, tag: str, *, account: str = IMAGES, repository: str = REPOSITORY) -> dict[str, Any]:
    """BatchGetImage's answer for one tag."""
    answer: dict[str, Any] = aws.client("ecr").batch_get_image(
        registryId=account, repositoryName=repository, imageIds=[{"imageTag": tag}]
    )
    return answer


def test_the_catalogues_images_are_there_and_others_are_not(aws: Emulator) -> None:
    found = image(aws, "24.09-py3")["images"][0]
    assert found["imageId"]["imageTag"] == "24.09-py3"
    assert found["imageId"]["imageDigest"].startswith("sha256:")
    missing = image(aws, "99.01-py3")
    assert missing["images"] == []
    assert missing["failures"][0]["failureCode"] == "ImageNotFound"
    with pytest.raises(ClientError) as error:
        image(aws, "24.09-py3", account="111122223333")
    assert code(error) == "RepositoryNotFoundException"


def test_zones_have_the_types_of_the_region(aws: Emulator) -> None:
    rows = aws.client("ec2").describe_instance_type_offerings(
        LocationType="availability-zone",
        Filters=[
            {"Name": "instance-type", "Values": ["g4dn.xlarge", "no.such"]},
            {"Name": "location", "Values": ["us-east-1a", "us-east-1b", "us-east-1z"]},
        ],
    )["InstanceTypeOfferings"]
    assert [(row["InstanceType"], row["Location"]) for row in rows] == [
        ("g4dn.xlarge", "us-east-1a"),
        ("g4dn.xlarge", "us-east-1b"),
    ]
    with pytest.raises(ClientError) as error:
        aws.client("ec2").describe_instance_type_offerings(LocationType="region")
    assert code(error) == "InvalidParameterValue"


def test_encrypt_with_dry_run_encrypts_nothing(aws: Emulator) -> None:
    kms = aws.client("kms")
    key = kms.create_key()["KeyMetadata"]["KeyId"]
    with pytest.raises(ClientError) as error:
        kms.encrypt(KeyId=key, Plaintext=b"x", DryRun=True)
    assert code(error) == "DryRunOperationException"
    assert kms.decrypt(CiphertextBlob=kms.encrypt(KeyId=key, Plaintext=b"x")["CiphertextBlob"])["Plaintext"] == b"x"
    kms.disable_key(KeyId=key)
    with pytest.raises(ClientError) as error:
        kms.encrypt(KeyId=key, Plaintext=b"x", DryRun=True)
    assert code(error) == "DisabledException"


REGION = "eu-west-1"
FILTERS = [
    {"Type": "TERM_MATCH", "Field": field, "Value": value}
    for field, value in {"regionCode": REGION, "component": "Hosting"}.items()
]


def ask(aws: Emulator) -> dict[str, Any]:
    answer = aws.client("pricing").get_products(ServiceCode="AmazonSageMaker", Filters=FILTERS)
    return {key: value for key, value in answer.items() if key != "ResponseMetadata"}


def test_an_answer_has_the_service_s_shape_and_comes_in_pages(aws: Emulator) -> None:
    shape = botocore.session.get_session().get_service_model("pricing").operation_model("GetProducts").output_shape
    assert shape is not None
    whole = ask(aws)
    report = ParamValidator().validate(whole, shape)
    assert not report.has_errors(), report.generate_report()
    assert "NextToken" not in whole
    paginator = aws.client("pricing").get_paginator("get_products")
    pages = list(paginator.paginate(ServiceCode="AmazonSageMaker", Filters=FILTERS, PaginationConfig={"PageSize": 10}))
    assert [len(page["PriceList"]) for page in pages[:-1]] == [10] * (len(pages) - 1)
    assert [one for page in pages for one in page["PriceList"]] == whole["PriceList"]


def test_every_type_of_the_region_has_a_price_that_reports_it_is_constructed(aws: Emulator) -> None:
    found = [read_product(text, region=REGION) for text in ask(aws)["PriceList"]]
    hosted = {row.name: row for row in load_catalogue().instances.values() if REGION in row.regions}
    assert {product.instance_type for product in found if product} == set(hosted)
    for product in found:
        assert product is not None
        assert product.version == CONSTRUCTED_VERSION
        row = hosted[product.instance_type]
        assert float(product.usd_per_hour) == pytest.approx(row.gpu_count + row.vcpu / 100)
    assert all(
        "constructed" in json.loads(text)["product"]["attributes"]["servicename"] for text in ask(aws)["PriceList"]
    )


def test_an_update_from_the_local_aws_is_named_constructed_wherever_it_is_read(
    aws: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(tmp_path))
    none = ProcessRecord(pid=0, started=0.0, log="")
    local = LocalAws(emulator_port=aws.port, runtime_port=0, emulator=none, runtime=none)
    monkeypatch.setattr("tritonstack_capacity.commands.prices.require_local_aws", lambda: local)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(prices.command, [*arguments, "--region", REGION], standalone_mode=False)

    first = run("update", "--local")
    assert first.return_value == 0, first.output
    assert "the local AWS, which constructs them" in first.output
    assert read_price_file(tmp_path / "prices.json").regions[REGION].constructed
    before = (tmp_path / "prices.json").read_bytes()
    assert run("update", "--local").return_value == 0
    assert (tmp_path / "prices.json").read_bytes() == before
    assert "[1] constructed by the local AWS, no price of AWS's" in run("list").output
