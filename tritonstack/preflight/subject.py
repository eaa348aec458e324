"""What preflight looks at: an environment, and the account that it is to be deployed to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tritonstack.config import Environment, engines_built_on_deploy
from tritonstack.engines.order import Served
from tritonstack.preflight.account_facts import Fleets, Quotas, Stacks
from tritonstack.preflight.result import Result
from tritonstack.read_only_aws import ReadOnlyCalls


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What every check is given.

    Attributes:
        served: the environment, matched with its archives.
        calls: read-only calls to the account.
        quotas: the account's quotas.
        fleets: what runs in the account.
        stacks: the environment's stacks.
        project: the project's folder (``cdk.json``, ``model_repos``).
        local: whether the account is the local AWS's, where quotas, images and prices are constructed.
    """

    served: Served
    calls: ReadOnlyCalls
    quotas: Quotas
    fleets: Fleets
    stacks: Stacks
    project: Path
    local: bool

    @classmethod
    def of(cls, served: Served, calls: ReadOnlyCalls, *, project: Path, local: bool) -> Subject:
        """A subject with nothing asked yet."""
        return cls(
            served=served,
            calls=calls,
            quotas=Quotas(calls, region=served.environment.region),
            fleets=Fleets(calls),
            stacks=Stacks(calls),
            project=project,
            local=local,
        )

    @property
    def environment(self) -> Environment:
        """The settings."""
        return self.served.environment

    @property
    def builds_on_deploy(self) -> bool:
        """Whether a deployment builds what is missing."""
        return engines_built_on_deploy(self.environment, bool(self.served.engines.builds))

    @property
    def endpoint_names(self) -> frozenset[str]:
        """The names of its endpoints at SageMaker."""
        name = self.environment.environment
        return frozenset(endpoint.sagemaker_name(name) for endpoint in self.environment.endpoints)


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check.

    Attributes:
        name: its name, which results carry.
        title: what it looks at, for people.
        run: gives the results; none where the environment has nothing to look at.
    """

    name: str
    title: str
    run: Callable[[Subject], Iterator[Result]]
