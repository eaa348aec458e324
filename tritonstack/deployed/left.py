"""Stacks that left an environment's file and are still deployed: what each has, and what it costs an hour."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tritonstack import naming
from tritonstack.aws.read_only import NotKnownError, ReadOnlyCalls
from tritonstack.config import Environment
from tritonstack.deployed.stacks import (
    DeployedStack,
    deployed_stacks,
    expects_builds,
    left_stacks,
    of_environment,
    why_left,
)
from tritonstack.review.costs.amounts import Amount, total
from tritonstack.review.costs.cost_table import beside_endpoints
from tritonstack.review.costs.price_book import PriceBook, prices_of
from tritonstack.review.snapshot import EnvironmentSnapshot, stack_of

GONE = ("ValidationException",)
"""Error code of SageMaker for an endpoint or a config that does not exist."""
KEPT = frozenset({"Retain", "RetainExceptOnCreate"})
"""The custom resource that empties and deletes a bucket with its stack, where ``artifacts.retain`` is false."""


@dataclass(frozen=True, kw_only=True)
class LeftStack:
    """One stack that its environment's file no longer has."""

    stack: DeployedStack  # as CloudFormation describes it
    region: str  # where it is
    why: str  # why it left
    endpoint: str = ""  # its endpoint at SageMaker; empty for a stack without one
    status: str = ""  # of that endpoint; empty where there is none
    instances: str = ""  # what that runs on now: ``2 of ml.g4dn.xlarge``; empty where nothing runs
    cost: Amount  # USD an hour, without what is billed by use
    retained: tuple[str, ...] = ()  # what stays in the account when the stack is deleted: ``AWS::S3::Bucket NAME``
    emptied: tuple[str, ...] = ()  # buckets that are deleted with all that is in them

    @property
    def sentence(self) -> str:
        """The stack, why it left, what it runs and what that costs."""
        of = ""
        if self.endpoint:
            of = f" (endpoint {self.endpoint}, {self.instances or self.status or 'which does not exist'})"
        cost = "its cost is unknown" if self.cost.text == "unknown" else f"it costs {self.cost.text}"
        return f"{self.stack.name}{of} is still deployed in {self.region}: {self.why}; {cost}"


class LeftEntry(BaseModel):
    """A stack that is deployed and that its environment's file no longer has."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    stack: str = Field(description="Its name in CloudFormation.")
    region: str = Field(description="Where it is.")
    status: str = Field(description="Its status in CloudFormation.")
    why: str = Field(description="Why it left.")
    endpoint: str | None = Field(description="Its endpoint at SageMaker; null for a stack without one.")
    instances: str | None = Field(description="What that runs on now; null where nothing runs.")
    usd_per_hour: float | None = Field(description="What it costs an hour; null where a price is unknown.")
    usd_per_hour_at_least: float = Field(description="The part of that whose prices are known.")
    unknown: tuple[str, ...] = Field(description="What has no known price.")
    retained: tuple[str, ...] = Field(description="What stays in the account when the stack is deleted.")

    @classmethod
    def of(cls, left: LeftStack) -> LeftEntry:
        """A stack as data."""
        whole = left.cost.usd_per_hour
        return cls(
            stack=left.stack.name,
            region=left.region,
            status=left.stack.status,
            why=left.why,
            endpoint=left.endpoint or None,
            instances=left.instances or None,
            usd_per_hour=None if whole is None else float(whole),
            usd_per_hour_at_least=float(left.cost.known),
            unknown=tuple(sorted(left.cost.unknown)),
            retained=left.retained,
        )


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """Deployed stacks of one region, and those that left the environment's file."""

    environment: str  # its name
    stacks: tuple[DeployedStack, ...]  # every stack of the account, whatever it is of
    left: tuple[LeftStack, ...]  # in the order of their deletion

    @property
    def cost(self) -> Amount:
        """Cost of all leftover stacks an hour."""
        return total(each.cost for each in self.left)


def deployed_and_left(calls: ReadOnlyCalls, settings: Environment, *, project: Path) -> Deployed:
    """The stacks that left an environment's file, in the file's region.

    Raises:
        NotKnownError: AWS refuses to list stacks, or does not respond. What it refuses of a single stack is an unknown
            part of that stack's cost.
    """
    stacks = deployed_stacks(calls, region=settings.region)
    found = left_stacks(stacks, settings, builds=lambda: expects_builds(settings, project=project))
    file = f"environments/{settings.environment}.yaml"
    reasons = {each.id: why_left(each, file=file) for each in found}
    return _deployed(calls, settings.environment, stacks, reasons, region=settings.region, project=project)


def deployed_without_file(calls: ReadOnlyCalls, environment: str, *, region: str, why: str, project: Path) -> Deployed:
    """Everything of an environment in a region that its file does not deploy to, or that has no file: all of it left.

    ``why``: in a few words. Raises as ``deployed_and_left``.
    """
    stacks = deployed_stacks(calls, region=region)
    reasons = {each.id: why for each in of_environment(stacks, environment)}
    return _deployed(calls, environment, stacks, reasons, region=region, project=project)


def _deployed(
    calls: ReadOnlyCalls,
    environment: str,
    stacks: tuple[DeployedStack, ...],
    reasons: dict[str, str],
    *,
    region: str,
    project: Path,
) -> Deployed:
    own = [each for each in of_environment(stacks, environment) if each.id in reasons]
    book = prices_of(environment, base=None, project=project).after if own else PriceBook()
    left = tuple(_left(calls, each, reasons[each.id], region=region, book=book) for each in own)
    return Deployed(environment=environment, stacks=stacks, left=left)


def _left(calls: ReadOnlyCalls, stack: DeployedStack, why: str, *, region: str, book: PriceBook) -> LeftStack:
    costs: list[Amount] = []
    endpoint = status = instances = ""
    retained: tuple[str, ...] = ()
    emptied: tuple[str, ...] = ()
    if stack.endpoint:
        endpoint = naming.endpoint_name(environment=stack.environment, endpoint=stack.endpoint)
        try:
            status, counts = _fleet(calls, endpoint, region=region)
        except NotKnownError as error:
            status = "whose instances are not known"
            costs.append(Amount(unknown={f"instances of {endpoint}: {error.found}": 1}))
        else:
            instances = ", ".join(f"{count} of {kind}" for kind, count in sorted(counts.items()))
            costs += [_instances(kind, count, region=region, book=book) for kind, count in sorted(counts.items())]
    try:
        resources, template = _resources(calls, stack, region=region)
    except NotKnownError as error:
        costs.append(Amount(unknown={f"resources of {stack.name}: {error.found}": 1}))
    else:
        document = {"StackName": stack.name, "Region": region, "Resources": template}
        snapshot = EnvironmentSnapshot(
            name=stack.environment, stacks={stack.part: stack_of(stack.part, document, {})}, findings=None
        )
        costs.append(beside_endpoints(snapshot, book=book))
        retained = tuple(
            f"{template[name]['Type']} {identifier}"
            for name, identifier in sorted(resources.items())
            if template[name].get("DeletionPolicy") in KEPT
        )
        buckets = (
            each.get("Properties", {}).get("Bucket")
            for each in template.values()
            if each["Type"] == naming.EMPTIED_TYPE
        )
        emptied = tuple(resources.get(each["Ref"]) or str(each["Ref"]) for each in buckets if isinstance(each, dict))
    return LeftStack(
        stack=stack,
        region=region,
        why=why,
        endpoint=endpoint,
        status=status,
        instances=instances,
        cost=total(costs),
        retained=retained,
        emptied=emptied,
    )


def _fleet(calls: ReadOnlyCalls, endpoint: str, *, region: str) -> tuple[str, Counter[str]]:
    """The status of an endpoint and how many instances of each type run; empty where there is none."""
    found = calls.ask("sagemaker", "describe_endpoint", absent=GONE, region=region, EndpointName=endpoint)
    if found is None:
        return "", Counter()
    config = calls.ask(
        "sagemaker", "describe_endpoint_config", absent=GONE, region=region,
        EndpointConfigName=found["EndpointConfigName"],
    )  # fmt: skip
    types = {row["VariantName"]: row.get("InstanceType") for row in (config or {}).get("ProductionVariants", ())}
    counts: Counter[str] = Counter()
    for row in found.get("ProductionVariants", ()):
        if row.get("CurrentInstanceCount"):
            counts[types.get(row["VariantName"]) or "instances of an unknown type"] += row["CurrentInstanceCount"]
    return str(found["EndpointStatus"]), counts


def _instances(kind: str, count: int, *, region: str, book: PriceBook) -> Amount:
    price: Decimal | str = book.price(kind, region)
    return Amount(unknown={price: count}) if isinstance(price, str) else Amount(known=count * price)


def _resources(
    calls: ReadOnlyCalls, stack: DeployedStack, *, region: str
) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """The resources that a stack still has: logical id → physical id, and → its part of the template."""
    rows = calls.pages(
        "cloudformation", "list_stack_resources", "StackResourceSummaries", region=region, StackName=stack.id
    )
    there = {
        row["LogicalResourceId"]: row.get("PhysicalResourceId", "")
        for row in rows
        if row.get("ResourceStatus") != "DELETE_COMPLETE"
    }
    body = calls.ask("cloudformation", "get_template", region=region, StackName=stack.id, TemplateStage="Processed")
    template = (body or {}).get("TemplateBody") or {}
    if isinstance(template, str):
        template = json.loads(template)
    all_resources: dict[str, dict[str, Any]] = template.get("Resources", {})
    return {name: there[name] for name in all_resources if name in there}, {
        name: each for name, each in all_resources.items() if name in there
    }


def lines_of(deployed: Deployed, *, command: str) -> Iterator[str]:
    """Lines on stacks that left: one line each, the sum, and what to do.

    ``command``: the one that lists and deletes them, in full.
    """
    yield from (each.sentence for each in deployed.left)
    if deployed.left:
        yield f"  do:      {command} lists them; with --delete it deletes them after a question"


def unknown_prices(left: Iterable[LeftStack]) -> tuple[str, ...]:
    """The unknown prices, each once."""
    return tuple(dict.fromkeys(name for each in left for name in sorted(each.cost.unknown)))
