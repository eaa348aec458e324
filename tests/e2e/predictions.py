"""What a review says of a change, against what a deployment of it by the real CDK does on the local AWS.

No container is started (``TRITONSTACK_FLEETS=none``), and archives are empty objects under the keys that they would
have: what is looked at is CloudFormation.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from botocore.exceptions import ClientError

from tests.local_keys import KEYS
from tests.review.corpus.case import ENVIRONMENT
from tests.review.corpus.made import Made
from tests.tritonstack_local.emulator.running import Emulator
from tritonstack.naming import ArchiveName, Platform, archive_key
from tritonstack.paths import cdk_program
from tritonstack.review.change import Effect, EnvironmentChange, ResourceChange, StackChange
from tritonstack.review.compare import LEFT, compare
from tritonstack.review.snapshot import Snapshots, StackSnapshot
from tritonstack_local.aws import plain_environment, sdk_variables
from tritonstack_local.commands.deploy import JSII_CACHE

BOUNDARY = "boundary"
REPLACEMENT = "Requested update requires the creation of a new physical resource; hence creating one."
ALLOWED: Mapping[Effect, frozenset[str]] = {
    Effect.NEW: frozenset({"new"}),
    Effect.CHANGED: frozenset({"changed"}),
    Effect.MAY_CHANGE: frozenset({"changed", "untouched"}),
    Effect.REPLACED: frozenset({"replaced"}),
    Effect.MAY_BE_REPLACED: frozenset({"replaced", "changed", "untouched"}),
    Effect.REMOVED: frozenset({"removed"}),
    Effect.RETAINED: frozenset({"retained"}),
    Effect.REFUSED: frozenset({"refused"}),
    Effect.TEMPLATE_ONLY: frozenset({"untouched"}),
}
"""What may happen to a resource of which a review says this."""
UNTOUCHED = frozenset({"untouched"})


@dataclass(frozen=True)
class Seen:
    """A stack as CloudFormation shows it: logical id → physical id, and the ids of its events so far."""

    physical: Mapping[str, str]
    events: frozenset[str]


class Aws(Protocol):
    """Makes the clients of a local AWS."""

    def client(self, service: str, /) -> Any: ...


class Deployed:
    """The stacks of an environment as CloudFormation shows them before a deployment, and what the next one did."""

    def __init__(self, aws: Aws, old: Snapshots) -> None:
        """``old``: the assembly that they were deployed from."""
        self._aws, self._old = aws, old
        self._before = {stack.stack_name: self._seen(stack.stack_name) for stack in _stacks(old)}

    def change(self, new: Snapshots) -> EnvironmentChange:
        """What a review says of a deployment of another assembly."""
        [environment] = compare(self._old, new)
        return environment

    def wrong(self, new: Snapshots) -> list[str]:
        """What did not happen as a review says, once the other assembly was deployed; a resource a line."""
        change = self.change(new)
        known: dict[str, set[str]] = {}
        for stack in [*_stacks(self._old), *_stacks(new)]:
            known.setdefault(stack.stack_name, set()).update(stack.resources)
        changes = {each.stack_name: each for each in change.stacks}
        return [
            f"{name}: {line}"
            for name in sorted(known)
            for line in self._wrong(name, changes.get(name), known=known[name], refused=_is_refused(change))
        ]

    def _wrong(self, name: str, change: StackChange | None, *, known: set[str], refused: bool) -> Iterator[str]:
        """What of a stack is not as predicted. ``known``: its logical ids, without what was left."""
        before, after = self._before.get(name, Seen({}, frozenset())), self._seen(name)
        events = [each for each in self._events(name) if each["EventId"] not in before.events]
        predicted = {} if change is None or change.effect is Effect.REMOVED else _predicted(change.resources)
        for logical_id in sorted(known):
            of_it = [each for each in events if each["LogicalResourceId"] == logical_id]
            happened = _happened(before.physical.get(logical_id), after.physical.get(logical_id), of_it)
            allowed, told = predicted.get(logical_id, (UNTOUCHED, None))
            if refused:  # the rollback leaves everything as it was; the one that is refused says why
                allowed = allowed if allowed == ALLOWED[Effect.REFUSED] else frozenset({happened})
            if happened not in allowed:
                what = "nothing" if told is None else f"{told.effect.value} ({told.type} {told.path})"
                yield f"{logical_id}: a review says {what}; it was {happened}: {_lines(of_it)}"

    def _seen(self, name: str) -> Seen:
        try:
            pages = self._aws.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=name)
            resources = [each for page in pages for each in page["StackResourceSummaries"]]
        except ClientError:
            return Seen({}, frozenset())
        return Seen(
            {each["LogicalResourceId"]: each["PhysicalResourceId"] for each in resources},
            frozenset(each["EventId"] for each in self._events(name)),
        )

    def _events(self, name: str) -> list[dict[str, Any]]:
        try:
            pages = self._aws.client("cloudformation").get_paginator("describe_stack_events").paginate(StackName=name)
            return [each for page in pages for each in page["StackEvents"]][::-1]
        except ClientError:
            return []


def _stacks(snapshots: Snapshots) -> list[StackSnapshot]:
    [environment] = snapshots.environments.values()
    return list(environment.stacks.values())


def _is_refused(change: EnvironmentChange) -> bool:
    return any(each.effect is Effect.REFUSED for stack in change.stacks for each in stack.resources)


BUCKET = "AWS::S3::Bucket"


class Account:
    """A local AWS and what is deployed there, step by step; every step is compared with what a review predicts."""

    def __init__(self, aws: Emulator, made: Made) -> None:
        """Bootstrapped, with nothing deployed."""
        self.aws, self._made = aws, made
        self._deployed: Path | None = None
        empty = aws.temporary.parent / "empty"
        empty.mkdir()
        self._cdk("bootstrap", "aws://123456789012/us-east-1", folder=empty)
        document = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
        aws.client("iam").create_policy(PolicyName=BOUNDARY, PolicyDocument=json.dumps(document))

    def move(self, assembly: Path) -> list[str]:
        """Deploy an assembly over what is there. Returns what did not happen as predicted, a resource a line."""
        before = self._deployed
        if before == assembly:
            return []
        self._deployed = assembly
        if before is None:
            self._first(assembly)
            return []
        deployed = Deployed(self.aws, self._made.snapshots(before))
        change = deployed.change(self._made.snapshots(assembly))
        self._publish(assembly)
        if self._key(before) != self._key(assembly):  # docs/updates.md, "Change the key"
            self._cdk("deploy", "--app", str(assembly), f"{ENVIRONMENT}/artifacts")
            self._publish(assembly)
        self._cdk("deploy", "--app", str(assembly), f"{ENVIRONMENT}/*", fails=_is_refused(change))
        wrong = deployed.wrong(self._made.snapshots(assembly))
        if _is_refused(change):
            self._deployed = before  # rolled back
        self._remove_lost(change.stacks)
        return wrong

    def _first(self, assembly: Path) -> None:
        self._cdk("deploy", "--app", str(assembly), f"{ENVIRONMENT}/artifacts")
        self._publish(assembly)
        self._cdk("deploy", "--app", str(assembly), f"{ENVIRONMENT}/*")

    def _publish(self, assembly: Path) -> None:
        """An empty object for every archive that the assembly's endpoints serve."""
        name = f"/tritonstack/{ENVIRONMENT}/_artifacts/bucket-name"
        bucket = self.aws.client("ssm").get_parameter(Name=name)["Parameter"]["Value"]
        for stack in self._made.snapshots(assembly).environments[ENVIRONMENT].stacks.values():
            served = stack.documents.get("Activation/ReleaseSet")
            if served is not None:
                release, _, gpu = served["platform"].partition("-")
                for model, digest in served["models"].items():
                    key = archive_key(
                        endpoint=stack.name.removeprefix("serving-"),
                        platform=Platform(release=release, gpu=gpu),
                        archive=ArchiveName(model=model, digest=digest),
                    )
                    self.aws.client("s3").put_object(Bucket=bucket, Key=key, Body=b"")

    def _key(self, assembly: Path) -> Any:
        """What the artifact bucket encrypts with."""
        [bucket] = [
            each.properties["BucketEncryption"]
            for each in self._made.snapshots(assembly).environments[ENVIRONMENT].stacks["artifacts"].of_type(BUCKET)
            if each.logical_id.startswith("ArtifactsArchives")
        ]
        return bucket

    def _remove_lost(self, changes: Iterable[StackChange]) -> None:
        """Delete the stacks that the app lost, as a person does: no deployment does it."""
        for each in changes:
            if each.effect is Effect.REMOVED:
                assert self.aws.delete_stack(each.stack_name) == "DELETE_COMPLETE"

    def _cdk(self, *arguments: str, folder: Path | None = None, fails: bool = False) -> None:
        variables = {
            **sdk_variables(emulator_url=self.aws.url, runtime_url=self.aws.url, keys=KEYS),
            "CDK_VALIDATION": "false",
            "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(JSII_CACHE),
        }
        more = ["--require-approval", "never", "--progress", "events"] if arguments[0] == "deploy" else []
        ran = subprocess.run(
            [str(cdk_program()), *arguments, *more, "--no-notices", "--no-color"],
            cwd=folder or self.aws.temporary.parent,
            env={**plain_environment(), **variables},
            stdin=subprocess.DEVNULL,
            text=True,
            capture_output=True,
            timeout=300,
            check=False,
        )
        assert (ran.returncode != 0) == fails, f"cdk {' '.join(arguments)}\n{ran.stdout[-4000:]}\n{ran.stderr[-4000:]}"


def _predicted(changes: tuple[ResourceChange, ...]) -> dict[str, tuple[frozenset[str], ResourceChange | None]]:
    """Logical id → what may happen, and the change that says so."""
    found: dict[str, tuple[frozenset[str], ResourceChange | None]] = {}
    for each in changes:
        if each.renamed_from is not None and each.effect in {Effect.REPLACED, Effect.RENAMED}:
            found[each.renamed_from] = ALLOWED[Effect.RETAINED if each.old_one_stays else Effect.REMOVED], each
            found[each.logical_id] = ALLOWED[Effect.NEW], each
        else:
            found[each.logical_id] = _allowed(each), each
    return found


def _allowed(change: ResourceChange) -> frozenset[str]:
    """What may happen; the function of a custom resource decides, as the review says, whether it is replaced."""
    if change.effect is Effect.REMOVED and any(LEFT in each for each in change.reasons):
        return frozenset({"left behind"})
    custom = change.type.startswith("Custom::") and change.effect in {Effect.CHANGED, Effect.MAY_CHANGE}
    return ALLOWED[change.effect] | {"replaced"} if custom else ALLOWED[change.effect]


def _happened(before: str | None, after: str | None, events: list[dict[str, Any]]) -> str:
    """What CloudFormation did to one resource, by its physical ids and its events."""
    statuses = {each["ResourceStatus"] for each in events}
    if statuses & {"UPDATE_FAILED", "CREATE_FAILED"}:
        return "refused"
    if before is None:
        return "new" if "CREATE_COMPLETE" in statuses else "nowhere" if after is None else "new without an event"
    if after is None:
        # MiniStack has no event of a deletion after an update, only of one that is skipped or fails.
        left = {"DELETE_SKIPPED": "retained", "DELETE_FAILED": "left behind"}
        return next((what for status, what in left.items() if status in statuses), "removed")
    # MiniStack gives some resources no id of their own, such as a rule of a security group: the event tells.
    if before != after or any(each.get("ResourceStatusReason") == REPLACEMENT for each in events):
        return "replaced"
    return "changed" if "UPDATE_COMPLETE" in statuses else "untouched"


def _lines(events: list[dict[str, Any]]) -> str:
    return "; ".join(f"{each['ResourceStatus']} {each.get('ResourceStatusReason', '')}".strip() for each in events)
