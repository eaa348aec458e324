"""An environment whose one model is changed between deployments, and what a test sees of it at AWS's APIs."""

from __future__ import annotations

from dataclasses import dataclass
from subprocess import CompletedProcess

from tests.e2e.calls import invoke, target_model
from tests.e2e.conftest import endpoint
from tests.e2e.project import Project, environment_yaml
from tritonstack_local.aws import LocalAws


@dataclass(frozen=True)
class CheckedProject:
    """Environment ``name`` with endpoint ``<name>-checked`` and one model that doubles what it is given.

    The endpoint's name at SageMaker is that of the environment and the endpoint's, as for any.
    """

    project: Project
    aws: LocalAws
    name: str
    model: str

    def write_model(self, execute: str, *, initialize: str = "pass") -> None:
        """Give the model another source, and so another digest; the proof must find 6 for 3."""
        self.project.add_python_model(self.model, execute=execute, answer_to_3=6.0, initialize=initialize)

    def write_environment(self, *, more: str = "") -> None:
        """The environment's file; ``more``: further settings of the endpoint."""
        text = endpoint("checked", [self.model]).removesuffix("}") + f"{more}}}"
        self.project.write(f"environments/{self.name}.yaml", environment_yaml(name=self.name, endpoints=[text]))

    def deploy(self, *, expect: int = 0) -> CompletedProcess[str]:
        return self.project.run("local", "deploy", "-e", self.name, expect=expect)

    @property
    def target(self) -> str:
        return target_model(self.aws, endpoint="checked", model=self.model, environment=self.name)

    def answer(self, value: float, *, target: str | None = None) -> float:
        """An archive's response, the recorded one unless another is named."""
        return invoke(
            self.aws.client("sagemaker-runtime"),
            endpoint="checked",
            target=target or self.target,
            value=value,
            environment=self.name,
        )

    @property
    def loaded(self) -> set[str]:
        name = f"{self.name}-checked"
        found = [one for one in self.aws.runtime_status()["endpoints"] if one["name"] == name]
        fleets = [fleet for one in found for fleet in one["fleets"] if fleet["serving"]]
        return {model["target_model"] for fleet in fleets for model in fleet["models"] if model["state"] == "loaded"}

    @property
    def config(self) -> str:
        described = self.aws.client("sagemaker").describe_endpoint(EndpointName=f"{self.name}-checked")
        return str(described["EndpointConfigName"])

    @property
    def stack_status(self) -> str:
        stacks = self.aws.client("cloudformation").describe_stacks(StackName=f"{self.name}-serving-checked")["Stacks"]
        return str(stacks[0]["StackStatus"])


def checked_project(project: Project, aws: LocalAws, *, name: str) -> CheckedProject:
    """The environment, not deployed yet."""
    checked = CheckedProject(project=project, aws=aws, name=name, model=f"{name}-doubles")
    checked.write_model("x * 2")
    checked.write_environment()
    return checked
