"""Account, CDK bootstrap and stacks: what `cdk deploy` itself needs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from tritonstack.config import engines_built_on_deploy
from tritonstack.engines.order import Served
from tritonstack.preflight.subject import About, PreflightResult, Subject
from tritonstack.releases.records import stack_name


def check_account(subject: Subject) -> Iterator[PreflightResult]:
    """The credentials' account and the clients' region are those of the environment's file."""
    environment = subject.environment
    about = About(
        check="account", subject=environment.environment, needed=f"{environment.account} in {environment.region}"
    )
    yield from about.look(_account, subject)


def _account(about: About, subject: Subject) -> PreflightResult:
    environment = subject.environment
    identity = subject.calls.must("sts", "get_caller_identity")
    region = subject.calls.client("sts").meta.region_name
    found = f"{identity['Account']} in {region}, as {identity['Arn']}"
    if identity["Account"] != environment.account:
        return about.fails(found, advice="Choose credentials of that account (AWS_PROFILE), or name yours in the file.")
    if region != environment.region:
        return about.fails(found, advice=f"The local AWS is {region} alone: name that region in the file.")
    return about.passes(found)


NEEDED_VERSION = 6
"""The version that synthesised stacks need: MIN_BOOTSTRAP_STACK_VERSION of aws-cdk-lib 2.275.0,
core/lib/stack-synthesizers/default-synthesizer.js. A test compares it with the installed aws-cdk-lib."""
QUALIFIER = "hnb659fds"
"""DefaultStackSynthesizer.DEFAULT_QUALIFIER of the same file."""
_CONTEXT = "@aws-cdk/core:bootstrapQualifier"
BOOTSTRAP_ROLES = ("deploy-role", "file-publishing-role", "cfn-exec-role")
"""Those of the bootstrap's roles that a deployment assumes; these stacks have no image assets and no look-ups."""


def qualifier_of(project: Path) -> str:
    """The qualifier that ``cdk.json`` sets, else the CDK's own."""
    try:
        context = json.loads((project / "cdk.json").read_text(encoding="utf-8")).get("context", {})
    except (OSError, ValueError):
        return QUALIFIER
    return str(context.get(_CONTEXT, QUALIFIER))


def check_bootstrap(subject: Subject) -> Iterator[PreflightResult]:
    """CDK's bootstrap of account and region: its version, its bucket, its roles."""
    environment, qualifier = subject.environment, qualifier_of(subject.project)
    place = f"{environment.account}-{environment.region}"
    advice = f"npx cdk bootstrap aws://{environment.account}/{environment.region}"
    if qualifier != QUALIFIER:
        advice += f" --qualifier {qualifier}"
    version = About(check="bootstrap", subject="version", needed=f"{NEEDED_VERSION} or later")
    yield from version.look(_bootstrap_version, subject, qualifier, advice)
    bucket = About(check="bootstrap", subject=f"cdk-{qualifier}-assets-{place}", needed="the bucket of assets")
    yield from bucket.look(_bootstrap_bucket, subject, advice)
    for role in BOOTSTRAP_ROLES:
        about = About(check="bootstrap", subject=f"cdk-{qualifier}-{role}-{place}", needed="a role of the bootstrap")
        yield from about.look(_bootstrap_role, subject, advice)


def _bootstrap_version(about: About, subject: Subject, qualifier: str, advice: str) -> PreflightResult:
    name = f"/cdk-bootstrap/{qualifier}/version"
    answer = subject.calls.ask("ssm", "get_parameter", absent=("ParameterNotFound",), Name=name)
    if answer is None:
        return about.fails(f"no parameter {name}: the region is not bootstrapped", advice=advice)
    found = answer["Parameter"]["Value"]
    return about.passes(found) if int(found) >= NEEDED_VERSION else about.fails(found, advice=advice)


def _bootstrap_bucket(about: About, subject: Subject, advice: str) -> PreflightResult:
    answer = subject.calls.ask(
        "s3",
        "head_bucket",
        absent=("404", "NoSuchBucket"),
        Bucket=about.subject,
        ExpectedBucketOwner=subject.environment.account,
    )
    return about.fails("no such bucket", advice=advice) if answer is None else about.passes("there")


def _bootstrap_role(about: About, subject: Subject, advice: str) -> PreflightResult:
    answer = subject.calls.ask("iam", "get_role", absent=("NoSuchEntity",), RoleName=about.subject)
    return about.fails("no such role", advice=advice) if answer is None else about.passes(str(answer["Role"]["Arn"]))


REPLACED_BY_CDK = "ROLLBACK_COMPLETE"
"""CloudFormation refuses to update it; `cdk deploy` deletes it first (aws-cdk 2.1148.1, isCreationFailure)."""
NEVER_EXECUTED = "REVIEW_IN_PROGRESS"
"""A change set made it and was never executed; `cdk deploy` creates the stack over it (aws-cdk 2.1148.1)."""


def stack_names(served: Served) -> tuple[str, ...]:
    """The stacks that a deployment of the environment has, in its order (``stacks/stage.py`` makes them)."""
    environment = served.environment
    name = environment.environment
    names = [f"{name}-artifacts"]
    if environment.network is not None:
        names.append(f"{name}-network")
    if engines_built_on_deploy(environment, bool(served.engines.builds)):
        names.append(f"{name}-builds")
    names += [stack_name(environment=name, endpoint=endpoint.name) for endpoint in environment.endpoints]
    if environment.watched:
        names.append(f"{name}-observability")
    return tuple(names)


def check_stack(subject: Subject) -> Iterator[PreflightResult]:
    """No stack of the environment is in a state from which it cannot be deployed."""
    for name in stack_names(subject.served):
        about = About(check="stack", subject=name, needed="no stack, or one that can be updated")
        yield from about.look(_stack, subject)


def _stack(about: About, subject: Subject) -> PreflightResult:
    stack = subject.facts.stack(about.subject)
    if stack is None:
        return about.passes("no such stack yet")
    status, reason = stack["StackStatus"], stack.get("StackStatusReason")
    found = f"{status}: {reason}" if reason else status
    region = subject.environment.region
    delete = f"aws cloudformation delete-stack --region {region} --stack-name {about.subject}"
    if status == REPLACED_BY_CDK and stack.get("EnableTerminationProtection"):
        return about.fails(f"{found}, with termination protection", advice=f"Take the protection off, then {delete}")
    if status in (REPLACED_BY_CDK, NEVER_EXECUTED):
        return about.unknown(
            f"{found}: `cdk deploy` deploys over it, CloudFormation by itself (a pipeline) does not",
            advice=f"Make sure with: {delete}",
        )
    if status.endswith("_IN_PROGRESS"):
        return about.unknown(f"{found}: it changes now", advice="Wait until that has ended, then run it again.")
    if status.endswith("_FAILED"):
        resume = f"aws cloudformation continue-update-rollback --region {region} --stack-name {about.subject}"
        resume += " (docs/troubleshooting.md, «A rollback that failed»)"
        command = resume if status == "UPDATE_ROLLBACK_FAILED" else delete
        return about.fails(found, advice=f"Mend what its events name, then: {command}")
    return about.passes(found)
