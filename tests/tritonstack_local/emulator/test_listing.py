"""Lists of endpoints, configs and models."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from tests.tritonstack_local.emulator.running import Emulator, make_config


@pytest.fixture(scope="module")
def many(aws: Emulator) -> list[str]:
    """Thirteen endpoints, in the order they were made."""
    names = [f"listed-{number:02}" for number in range(13)]
    make_config(aws, "listed")
    for name in names:
        aws.client("sagemaker").create_endpoint(EndpointName=name, EndpointConfigName="listed")
    return names


def test_pages_hold_ten_unless_asked_otherwise_newest_first(aws: Emulator, many: list[str]) -> None:
    page = aws.client("sagemaker").list_endpoints(NameContains="listed-")
    assert [e["EndpointName"] for e in page["Endpoints"]] == many[::-1][:10]
    rest = aws.client("sagemaker").list_endpoints(NameContains="listed-", NextToken=page["NextToken"])
    assert [e["EndpointName"] for e in rest["Endpoints"]] == many[::-1][10:]
    assert "NextToken" not in rest


@pytest.mark.parametrize("size", [1, 4, 13, 100])
def test_paginator_sees_each_once_whatever_the_page_size(aws: Emulator, many: list[str], size: int) -> None:
    pages = aws.client("sagemaker").get_paginator("list_endpoints")
    order = {"SortBy": "Name", "SortOrder": "Ascending", "NameContains": "LISTED-"}
    found = pages.paginate(**order, PaginationConfig={"PageSize": size}).search("Endpoints[].EndpointName")
    assert list(found) == many


def test_a_record_deleted_between_pages_hides_no_other(aws: Emulator, many: list[str]) -> None:
    sagemaker = aws.client("sagemaker")
    make_config(aws, "between")
    for letter in "abcd":
        sagemaker.create_endpoint(EndpointName=f"between-{letter}", EndpointConfigName="between")
    order = {"SortBy": "Name", "SortOrder": "Ascending", "NameContains": "between-", "MaxResults": 2}
    page = sagemaker.list_endpoints(**order)
    sagemaker.delete_endpoint(EndpointName="between-a")
    rest = sagemaker.list_endpoints(**order, NextToken=page["NextToken"])
    assert [e["EndpointName"] for e in rest["Endpoints"]] == ["between-c", "between-d"]


def test_status_and_time_filter(aws: Emulator, many: list[str]) -> None:
    sagemaker = aws.client("sagemaker")
    assert sagemaker.list_endpoints(StatusEquals="Failed", NameContains="listed-")["Endpoints"] == []
    fifth = sagemaker.describe_endpoint(EndpointName=many[5])["CreationTime"]
    later = sagemaker.list_endpoints(CreationTimeAfter=fifth, NameContains="listed-", MaxResults=100)["Endpoints"]
    assert many[0] not in {e["EndpointName"] for e in later}
    assert many[12] in {e["EndpointName"] for e in later}


def test_an_unknown_token_is_refused(aws: Emulator) -> None:
    with pytest.raises(ClientError, match="NextToken is not valid"):
        aws.client("sagemaker").list_models(NextToken="made-up")


def test_configs_and_models_are_listed(aws: Emulator, many: list[str]) -> None:
    configs = aws.client("sagemaker").list_endpoint_configs(NameContains="listed")["EndpointConfigs"]
    models = aws.client("sagemaker").list_models(NameContains="listed")["Models"]
    assert [c["EndpointConfigName"] for c in configs] == ["listed"]
    assert [m["ModelName"] for m in models] == ["listed"]
