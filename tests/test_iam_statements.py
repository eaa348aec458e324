"""Groups of IAM statements: what the file may have, and how names in braces become ARNs."""

from __future__ import annotations

import re

import pytest

from tritonstack.arns import AccountRegion, Arn, bucket_arn, role_arn
from tritonstack.iam_statements import Statement, groups, statements
from tritonstack.paths import REPOSITORY

HERE = AccountRegion(partition="aws", region="us-east-1", account="123456789012")
BUCKET = bucket_arn("archives", partition="aws")


def only(sid: str, group: str, **values: str | list[str] | None) -> Statement:
    [found] = [each for each in statements(group, at=HERE, **values) if each.sid == sid]
    return found


@pytest.mark.parametrize("group", sorted(groups()))
def test_statements_have_purposes_of_their_own_and_actions_without_wildcards(group: str) -> None:
    sids = [each.sid for each in groups()[group]]
    assert len(set(sids)) == len(sids)
    for each in groups()[group]:
        assert re.fullmatch(r"([A-Z][a-z0-9]*)+", each.sid)
        assert not any("*" in action for action in each.actions)
        if isinstance(each.wildcard, dict):
            assert each.wildcard.keys() <= set(each.resources), each.sid


def test_every_group_is_some_role_s() -> None:
    files = [path for folder in ("constructs_lib", "stacks") for path in (REPOSITORY / folder).glob("*.py")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    networks = {name for name in groups() if name.endswith("-network")}  # spelled f"{of}-network"
    assert [name for name in groups() if f'"{name}"' not in text and name not in networks] == []


def test_a_list_gives_one_text_of_each_and_a_short_form_the_arn_of_the_account() -> None:
    read = only("ReadManifests", "bench", **BENCH)
    assert read.resources == (f"{BUCKET}/manifests/a/*", f"{BUCKET}/manifests/b/*")
    listed = only("FindManifests", "bench", **BENCH).conditions
    assert listed == {"StringLike": {"s3:prefix": ["manifests/a/*", "manifests/a", "manifests/b/*", "manifests/b"]}}
    assert only("DescribeModel", "bench", **BENCH).resources == (HERE.arn("sagemaker", "model", "*"),)


BENCH: dict[str, str | list[str] | None] = {
    "bucket": BUCKET,
    "key": [],
    "prefixes": ["manifests/a/", "manifests/b/"],
    "endpoints": [HERE.arn("sagemaker", "endpoint", "prod-a")],
    "records": [],
    "read_values": [],
    "values": HERE.arn("ssm", "parameter", "tritonstack/prod"),
}


def test_a_statement_on_nothing_is_left_out() -> None:
    sids = [each.sid for each in statements("prepare", at=HERE, bucket=BUCKET, key=None, weights=None, prefixes=[])]
    assert {"ReadWeights", "UseKey"}.isdisjoint(sids)
    assert "ReadFiles" in sids


def test_a_wildcard_has_the_reason_of_its_resource() -> None:
    verify: dict[str, str | list[str] | None] = {
        "endpoints": [],
        "stacks": [],
        "staging": BUCKET,
        "s3": "s3.us-east-1.amazonaws.com",
    }
    read = only("ReadManifests", "pipeline-verify", bucket=BUCKET, key=None, prefixes=[], **verify)
    assert {pattern.split("/")[1]: reason.split()[1] for pattern, reason in read.wildcards.items()} == {
        "manifests": "manifests",
        "endpoints": "the",
    }


def test_arns_have_the_signs_and_places_of_their_services() -> None:
    assert HERE.arn("sagemaker", "endpoint", "a") == "arn:aws:sagemaker:us-east-1:123456789012:endpoint/a"
    assert HERE.arn("logs", "log-group", "/a") == "arn:aws:logs:us-east-1:123456789012:log-group:/a"
    assert HERE.arn("ec2", "subnet", "a", account="1") == "arn:aws:ec2:us-east-1:1:subnet/a"
    assert HERE.expanded("states:execution:a:*") == "arn:aws:states:us-east-1:123456789012:execution:a:*"
    assert [HERE.expanded(each) for each in ("*", BUCKET)] == ["*", BUCKET]
    assert Arn.parse(HERE.arn("states", "execution", "a:b")).resource == "execution:a:b"
    assert str(Arn.parse(BUCKET)) == BUCKET
    assert role_arn("a", partition="aws-cn", account="1", path="/x/") == "arn:aws-cn:iam::1:role/x/a"
