"""Reports of small changes: what the tests of every form of a report start from."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from tests.review.small import Template, of, resource, serving, stack
from tritonstack.review.costs.price_book import PriceBook, Prices
from tritonstack.review.document import BaseEntry, ReviewDocument
from tritonstack.review.fail_on import matches_of, parse_fail_on
from tritonstack.review.report import Known, document_of
from tritonstack.review.snapshot import EnvironmentSnapshot, Finding, Snapshots

BASE = BaseEntry(ref="origin/main", commit="0123456789abcdef0123456789abcdef01234567", chosen=False)
ROLE = resource(
    "AWS::IAM::Role",
    {
        "AssumeRolePolicyDocument": {
            "Statement": [
                {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "lambda.amazonaws.com"}}
            ]
        }
    },
)


def policy(*statements: dict[str, Any], name: str = "p") -> dict[str, Any]:
    """A policy of the role."""
    document = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **each} for each in statements]}
    return resource("AWS::IAM::Policy", {"PolicyName": name, "PolicyDocument": document, "Roles": [{"Ref": "Role"}]})


READ = {"Action": "s3:GetObject", "Resource": "arn:aws:s3:::models/a.tar.gz"}
ALL = {"Action": "s3:*", "Resource": "*"}


def before() -> Template:
    """What is deployed."""
    return {
        **serving(),
        "Role": ROLE,
        "Policy": policy(READ),
        "Bucket": resource("AWS::S3::Bucket", {"BucketName": "models"}),
        "Topic": resource("AWS::SNS::Topic", {"DisplayName": "old <b>name</b>"}, DeletionPolicy="Retain"),
        "Queue": resource("AWS::SQS::Queue", {"DelaySeconds": 1}),
        "Group": resource("AWS::EC2::SecurityGroup", {"GroupDescription": "containers"}),
    }


def after() -> Template:
    """What the change makes of it: something of every effect."""
    made = before()
    made |= serving(variant={"InstanceType": "ml.g5.2xlarge"})
    made["Policy"] = policy(READ, ALL)
    made["Bucket"] = resource("AWS::S3::Bucket", {"BucketName": "other-models"})
    made["Group"] = resource(
        "AWS::EC2::SecurityGroup",
        {
            "GroupDescription": "containers",
            "SecurityGroupIngress": [{"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "CidrIp": "0.0.0.0/0"}],
        },
    )
    long = {f"name-{number:03}": {"value": number, "text": "some text of it"} for number in range(30)}
    made["Parameter"] = resource("AWS::SSM::Parameter", {"Name": "/new", "Type": "String", "Value": "a", "Tags": long})
    del made["Topic"], made["Queue"]
    return made


FINDING = Finding(stack="serving", path="Bucket", rule="AwsSolutions-S1", severity="error", description="no @logs #1")


def snapshots(template: Template, *, findings: tuple[Finding, ...] = ()) -> Snapshots:
    """Environment dev of these resources, an unchanged prod, and one that is added or removed."""
    dev = of(stack(template), findings=findings)
    prod = of(stack(serving(name="prod-digits")), environment="prod", findings=())
    return Snapshots(environments={**dev.environments, **prod.environments})


def with_environment(given: Snapshots, name: str, template: Template) -> Snapshots:
    """The snapshots with another environment."""
    made = EnvironmentSnapshot(
        name=name, stacks={"serving": replace(stack(template), stack_name=f"{name}-serving")}, findings=None
    )
    return Snapshots(environments=dict(sorted({**given.environments, name: made}.items())))


PRICES = Known(
    prices=lambda _environment: Prices(
        before=PriceBook(overrides={"ml.g4dn.xlarge": Decimal("0.75")}),
        after=PriceBook(overrides={"ml.g4dn.xlarge": Decimal("0.75"), "ml.g5.2xlarge": Decimal("1.5")}),
    )
)


def report(old: Template, new: Template, *, known: Known = PRICES) -> ReviewDocument:
    """Of one environment, dev."""
    return document_of(of(stack(old)), of(stack(new)), base=BASE, known=known)


def document(given: ReviewDocument | None = None, *, fail_on: str | None = None) -> ReviewDocument:
    """A report with what a policy matches.

    Without another: many changes in dev, none in prod, a new environment and one that the app lost.
    """
    if given is None:
        old = with_environment(snapshots(before()), "lost", serving(name="lost-digits"))
        new = with_environment(snapshots(after(), findings=(FINDING,)), "new", serving(name="new-digits"))
        given = document_of(old, new, base=BASE, known=PRICES, notes=("A note & <more>.",))
    return given.model_copy(update={"matches": matches_of(given, parse_fail_on(fail_on))}) if fail_on else given
