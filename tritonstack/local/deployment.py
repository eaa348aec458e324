"""A deployment to the local AWS with the real CDK command line, step by step."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tritonstack.errors import WorkFailedError
from tritonstack.local.aws import ACCOUNT, REGION, LocalAws
from tritonstack.local.paths import REPOSITORY, LocalPaths, cdk_program, project_folder

BOOTSTRAP_STACK = "CDKToolkit"
SHOWN_LINES = 30


@dataclass
class LocalDeployment:
    """One environment's way to the local AWS.

    Attributes:
        aws: the local AWS.
        environment: the name of the environment, as in ``environments/<name>.yaml``.
        on_line: called with each line that the CDK prints, so that a person sees where it is.
        context: further CDK context, name to value.
    """

    aws: LocalAws
    environment: str
    on_line: Callable[[str], None] = lambda _line: None
    context: Mapping[str, str] = field(default_factory=dict)

    @property
    def assembly(self) -> Path:
        """Where the synthesised templates lie."""
        return LocalPaths.from_environment().assembly(self.environment)

    def bootstrapped(self) -> bool:
        """Whether the account has the CDK's bootstrap stack."""
        cloudformation = self.aws.client("cloudformation")
        pages = cloudformation.get_paginator("list_stacks").paginate(
            StackStatusFilter=["CREATE_COMPLETE", "UPDATE_COMPLETE"]
        )
        return any(stack["StackName"] == BOOTSTRAP_STACK for page in pages for stack in page["StackSummaries"])

    def bootstrap(self) -> None:
        """``cdk bootstrap``, from a folder without a cdk.json, so that it synthesises nothing."""
        empty = LocalPaths.from_environment().root / "empty"
        empty.mkdir(parents=True, exist_ok=True)
        self._cdk(["bootstrap", f"aws://{ACCOUNT}/{REGION}"], folder=empty)

    def synthesise(self) -> None:
        """``cdk synth`` of this environment alone."""
        project = project_folder()
        context = {
            "environments": self.environment,
            "environments-folder": str(project / "environments"),
            "model-repositories": str(project / "model_repos"),
            **self.context,
        }
        options = [part for name, value in context.items() for part in ("--context", f"{name}={value}")]
        self._cdk(["synth", "--quiet", "--output", str(self.assembly), *options])

    def deploy(self, stacks: str) -> None:
        """``cdk deploy`` of the stacks that a pattern names (``local/artifacts``), out of the synthesised templates."""
        self._cdk(["deploy", "--app", str(self.assembly), "--require-approval", "never", "--progress", "events", stacks])

    def destroy(self) -> None:
        """``cdk destroy`` of the whole environment."""
        self._cdk(["destroy", "--app", str(self.assembly), "--force", f"{self.environment}/*"])

    def _cdk(self, arguments: Sequence[str], *, folder: Path = REPOSITORY) -> None:
        """Run the CDK command line; its output goes to the log and, line by line, to ``on_line``.

        Raises:
            WorkFailedError: it ended with an error; with its last lines.
        """
        log = LocalPaths.from_environment().logs / "cdk.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        command = [str(cdk_program()), *arguments, "--no-notices", "--no-color"]
        last: list[str] = []
        with log.open("a") as record:
            record.write(f"$ cdk {' '.join(arguments)}\n")
            process = subprocess.Popen(
                command, cwd=folder, env=self._variables(), text=True, errors="replace",
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            if process.stdout is None:
                raise WorkFailedError("the CDK command line has no output to read")
            with process.stdout as output:
                for line in output:
                    record.write(line)
                    last = [*last, line.rstrip()][-SHOWN_LINES:]
                    self.on_line(line.strip())
            code = process.wait()
        if code != 0:
            shown = "\n".join(line for line in last if line)
            raise WorkFailedError(f"cdk {arguments[0]} ended with {code}; the whole log: {log}\n{shown}")

    def _variables(self) -> dict[str, str]:
        ours = {
            **self.aws.variables(),
            "CDK_DISABLE_CLI_TELEMETRY": "true",
            # The validator takes four fifths of the time of a synthesis; `make test` runs it once, in its own gate.
            "CDK_VALIDATION": os.environ.get("CDK_VALIDATION", "false"),
            "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20",
            "NODE_NO_WARNINGS": "1",
        }
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return {**inherited, **ours, "PATH": f"{REPOSITORY / '.envs' / 'main' / 'bin'}:{os.environ['PATH']}"}
