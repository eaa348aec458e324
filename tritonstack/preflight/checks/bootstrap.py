"""CDK's bootstrap of account and region: its version, its bucket, its roles."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from tritonstack.catalogue import partition
from tritonstack.preflight.result import About, Result
from tritonstack.preflight.subject import Check, Subject
from tritonstack.read_only_aws import NotKnownError

NEEDED_VERSION = 6
"""What synthesised stacks ask for: MIN_BOOTSTRAP_STACK_VERSION of aws-cdk-lib 2.275.0,
core/lib/stack-synthesizers/default-synthesizer.js. A test compares it with the installed aws-cdk-lib."""
QUALIFIER = "hnb659fds"
"""DefaultStackSynthesizer.DEFAULT_QUALIFIER of the same file."""
_CONTEXT = "@aws-cdk/core:bootstrapQualifier"
ROLES = ("deploy-role", "file-publishing-role", "cfn-exec-role")
"""Those of the bootstrap's roles that a deployment assumes; these stacks have no image assets and no look-ups."""


def qualifier_of(project: Path) -> str:
    """The qualifier that ``cdk.json`` sets, else the CDK's own."""
    try:
        context = json.loads((project / "cdk.json").read_text(encoding="utf-8")).get("context", {})
    except (OSError, ValueError):
        return QUALIFIER
    return str(context.get(_CONTEXT, QUALIFIER))


def check(subject: Subject) -> Iterator[Result]:
    """A result for version, bucket and each role."""
    environment, qualifier = subject.environment, qualifier_of(subject.project)
    place = f"{environment.account}-{environment.region}"
    advice = f"npx cdk bootstrap aws://{environment.account}/{environment.region}"
    if qualifier != QUALIFIER:
        advice += f" --qualifier {qualifier}"
    version = About(check="bootstrap", subject="version", needed=f"{NEEDED_VERSION} or later")
    yield from version.look(_version, subject, qualifier, advice)
    bucket = About(check="bootstrap", subject=f"cdk-{qualifier}-assets-{place}", needed="the bucket of assets")
    yield from bucket.look(_bucket, subject, advice)
    for role in ROLES:
        about = About(check="bootstrap", subject=f"cdk-{qualifier}-{role}-{place}", needed="a role of the bootstrap")
        yield from about.look(_role, subject, advice)


def _version(about: About, subject: Subject, qualifier: str, advice: str) -> Result:
    name = f"/cdk-bootstrap/{qualifier}/version"
    answer = subject.calls.ask("ssm", "get_parameter", absent=("ParameterNotFound",), Name=name)
    if answer is None:
        return about.fails(f"no parameter {name}: the region is not bootstrapped", advice=advice)
    found = answer["Parameter"]["Value"]
    if not found.isdecimal():
        return about.unknown(f"{name} is {found!r}", advice=advice)
    return about.passes(found) if int(found) >= NEEDED_VERSION else about.fails(found, advice=advice)


def _bucket(about: About, subject: Subject, advice: str) -> Result:
    answer = subject.calls.ask(
        "s3",
        "head_bucket",
        absent=("404", "NoSuchBucket"),
        Bucket=about.subject,
        ExpectedBucketOwner=subject.environment.account,
    )
    return about.fails("no such bucket", advice=advice) if answer is None else about.passes("there")


def _role(about: About, subject: Subject, advice: str) -> Result:
    answer = subject.calls.ask("iam", "get_role", absent=("NoSuchEntity",), RoleName=about.subject)
    if answer is None:
        return about.fails("no such role", advice=advice)
    found = str(answer["Role"]["Arn"])
    expected = f"arn:{partition(subject.environment.region)}:iam::{subject.environment.account}:role/"
    if not found.startswith(expected):
        raise NotKnownError(f"a role of another account: {found}", advice=advice)
    return about.passes(found)


CHECK = Check(name="bootstrap", title="CDK bootstrap", run=check)
