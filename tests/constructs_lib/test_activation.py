"""Activation and verification: their places around the endpoint, and what their functions are given."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from constructs_lib.activation import Activation
from constructs_lib.artifact_bucket import ArtifactBucketReference
from tests.constructs_lib.templates import ACCOUNT, PREFIX, REGION, flat, new_app, of_type, only, properties, statements
from tests.stacks.environments import DIGITS, SINGLE, serving_template
from tritonstack.naming import EndpointReference, Platform

SET = {"bert": "0123456789abcdef", "resnet": "fedcba9876543210"}
COMMITS = {"bert": "1" * 40, "resnet": "uncommitted"}


def synthesised(folder: Path, release_set: dict[str, str]) -> dict[str, Any]:
    app = new_app(outdir=str(folder))
    stack = cdk.Stack(app, "stack", env=cdk.Environment(account=ACCOUNT, region=REGION))
    endpoint = cdk.CfnResource(stack, "Endpoint", type="AWS::SNS::Topic")  # in place of the endpoint
    Activation(
        stack,
        "Activation",
        endpoint=EndpointReference(environment="local", endpoint="digits"),
        platform=Platform(release="24.09", gpu="t4"),
        artifacts=ArtifactBucketReference(stack, "Artifacts", environment="local"),
        release_set=release_set,
        around=endpoint,
        commits=COMMITS,
        tags={"team": "platform"},
    )
    template: dict[str, Any] = app.synth().get_stack_by_name("stack").template
    return template


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("assembly")


@pytest.fixture(scope="module")
def template(folder: Path) -> dict[str, Any]:
    return synthesised(folder, SET)


def test_both_custom_resources_get_the_same_properties_and_the_records_their_tags(template: dict[str, Any]) -> None:
    archives, records = (properties(template, f"Custom::{name}") for name in ("PublishedArchives", "ReleaseRecords"))
    assert records == {**archives, "Tags": '{"team": "platform"}'}


def test_the_function_keeps_removed_records_where_its_role_may_write(template: dict[str, Any]) -> None:
    given = properties(template, "Custom::ReleaseRecords")
    release_set: Any = importlib.import_module("lambda.activation.release_set")
    removed = release_set.Properties.of({name: str(value) for name, value in given.items()}).removed_path
    assert removed == EndpointReference(environment="local", endpoint="digits").removed_records


def test_the_release_set_is_a_file_and_the_properties_hold_its_place(folder: Path, template: dict[str, Any]) -> None:
    records = properties(template, "Custom::ReleaseRecords")
    asset = folder / f"asset.{records['ReleaseSetKey']}"
    values = {"platform": "24.09-t4", "models": SET, "commits": COMMITS}
    assert json.loads(asset.read_text()) == {"schema": 1, **values}
    assert records["ReleaseSetBucket"] == "cdk-hnb659fds-assets-123456789012-us-east-1"
    assert records["ArchivePrefix"] == PREFIX
    assert records["RecordPath"] == "/tritonstack/local/digits/"
    assert "BucketName" in flat(records["ArchiveBucket"])


def test_a_new_release_set_changes_nothing_but_its_key(template: dict[str, Any], tmp_path: Path) -> None:
    changed = synthesised(tmp_path, {**SET, "bert": "0" * 16})
    old = properties(template, "Custom::ReleaseRecords")["ReleaseSetKey"]
    new = properties(changed, "Custom::ReleaseRecords")["ReleaseSetKey"]
    assert new != old
    assert json.loads(json.dumps(changed).replace(new, old)) == template


def test_what_the_function_keeps_of_removed_models_lies_where_it_may_write(template: dict[str, Any]) -> None:
    release_set: Any = importlib.import_module("lambda.activation.release_set")  # `lambda` is a word of the language
    values = properties(template, "Custom::ReleaseRecords")
    kept = release_set.Properties.of({**values, "ReleaseSetBucket": "b", "ArchiveBucket": "a"}).removed_path
    access = statements(properties(template, "AWS::IAM::Policy"))
    assert f"arn:aws:ssm:us-east-1:123456789012:parameter{kept}*" in access["MoveRecords"]["Resource"]


VERIFIED = "Custom::VerifiedEndpoint"


@pytest.fixture(scope="module")
def serving() -> dict[str, Any]:
    return serving_template(DIGITS)


def test_it_runs_between_the_endpoint_and_the_records(serving: dict[str, Any]) -> None:
    verified_id, verified = only(serving, VERIFIED)
    endpoint_id, _ = only(serving, "AWS::SageMaker::Endpoint")
    assert endpoint_id in verified["DependsOn"]
    assert verified_id in only(serving, "Custom::ReleaseRecords")[1]["DependsOn"]
    assert verified_id not in only(serving, "Custom::PublishedArchives")[1].get("DependsOn", [])


def test_its_properties_are_those_that_the_function_reads(serving: dict[str, Any]) -> None:
    work: Any = importlib.import_module("lambda.verification.work")  # `lambda` is a word of the language
    values = {name: str(value) for name, value in properties(serving, VERIFIED).items()}
    known = work.Properties.of(values)
    assert (known.endpoint_name, known.variant_name) == ("dev-digits", "g4dn-xlarge")
    assert (known.multi_model, known.stops_at_unload, known.models, known.minutes) == ("true", "true", "20", "50")
    assert known.manifest_prefix == "manifests/digits/24.09-t4/"
    assert set(values) - {"ServiceToken", "ServiceTimeout"} | set(work.OPTIONAL.values()) == {
        "".join(part.title() for part in name.split("_")) for name in work.Properties.__dataclass_fields__
    }


@pytest.mark.parametrize(
    ("endpoint", "values"),
    [
        (SINGLE, {"MultiModel": "false", "StopsAtUnload": "false"}),
        ({**DIGITS, "model_cache": "disabled"}, {"MultiModel": "true", "StopsAtUnload": "false"}),
        ({**DIGITS, "verification": {"models": 3, "minutes": 7}}, {"Models": "3", "Minutes": "7"}),
    ],
)
def test_the_settings_reach_the_function_and_unloads_count_only_where_models_stay_loaded(
    endpoint: dict[str, Any], values: dict[str, str]
) -> None:
    assert values.items() <= properties(serving_template(endpoint), VERIFIED).items()


def test_cloudformation_waits_longer_than_the_functions_may_run(serving: dict[str, Any]) -> None:
    verified = properties(serving, VERIFIED)
    assert int(verified["ServiceTimeout"]) == 3600 > 60 * int(verified["Minutes"])
    waits = int(properties(serving, "Custom::ReleaseRecords")["ServiceTimeout"])
    runs = {each["Properties"]["Timeout"] for each in of_type(serving, "AWS::Lambda::Function").values()}
    assert max(runs) < waits <= 3600
