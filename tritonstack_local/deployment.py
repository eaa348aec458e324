"""A deployment to the local AWS with the real CDK command line, step by step."""

from __future__ import annotations

import json
import os
import subprocess
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.config import Environment
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.paths import REPOSITORY, LocalPaths, cdk_program, project_folder, setup_command
from tritonstack.pipeline.bootstrap import environment_policy
from tritonstack.pipeline.builds import PipelineNames
from tritonstack_local import ACCOUNT, REGION
from tritonstack_local.aws import LocalAws, plain_environment

JSII_CACHE = REPOSITORY / ".envs" / "cache" / "jsii"
"""Where the CDK's Python side unpacks itself once; its own choice is the home folder, which may take nothing."""
BOOTSTRAP_STACK = "CDKToolkit"
EXECUTION = "-execution"
"""Ends the names of execution policies: ``prod-execution``."""
SHOWN_LINES = 60
"""Lines of a failing CDK under the message: the reason of a failed build has up to fifty wrapped lines."""
END_SECONDS = 10.0


@dataclass
class LocalDeployment:
    """One environment's way to the local AWS."""

    aws: LocalAws  # the local AWS
    environment: str  # the name of the environment, as in ``environments/<name>.yaml``
    # called with each line that the CDK prints, so that a person sees where it is
    on_line: Callable[[str], None] = lambda _line: None

    @property
    def assembly(self) -> Path:
        """Where the synthesised templates lie."""
        return LocalPaths.from_environment().assembly(self.environment)

    def bootstrapped(self) -> bool:
        """Whether the account has the CDK's bootstrap stack. Raises WorkFailedError: the local AWS does not answer."""
        cloudformation = self.aws.client("cloudformation")
        pages = cloudformation.get_paginator("list_stacks").paginate(
            StackStatusFilter=["CREATE_COMPLETE", "UPDATE_COMPLETE"]
        )
        try:
            return any(stack["StackName"] == BOOTSTRAP_STACK for page in pages for stack in page["StackSummaries"])
        except (BotoCoreError, ClientError) as error:
            raise WorkFailedError(f"{error}; its log: {self.aws.emulator.log}") from error

    def bootstrap(self, *, policies: Sequence[str] = ()) -> None:
        """``cdk bootstrap``, from a folder without a cdk.json, so that it synthesises nothing.

        ``policies``: ARNs of what CloudFormation's execution role may do; without one it may do everything.
        """
        empty = LocalPaths.from_environment().root / "empty"
        empty.mkdir(parents=True, exist_ok=True)
        limits = ["--cloudformation-execution-policies", ",".join(policies)] if policies else []
        self._cdk(["bootstrap", f"aws://{ACCOUNT}/{REGION}", *limits], folder=empty)

    def execution_policies(self, settings: Environment) -> list[str]:
        """The policy that ``tritonstack pipeline bootstrap`` writes for this environment, put into the local IAM.

        Returns its ARN and those of the environments that were deployed so before: bootstrapping names them all.
        """
        iam, names = self.aws.client("iam"), PipelineNames(pipeline="tritonstack", account=ACCOUNT, partition="aws")
        document, name = json.dumps(environment_policy(settings, names)), f"{settings.environment}{EXECUTION}"
        known = {
            each["PolicyName"]: each["Arn"]
            for page in iam.get_paginator("list_policies").paginate(Scope="Local")
            for each in page["Policies"]
            if each["PolicyName"].endswith(EXECUTION)
        }
        if name in known:
            for version in iam.list_policy_versions(PolicyArn=known[name])["Versions"]:
                if not version["IsDefaultVersion"]:
                    iam.delete_policy_version(PolicyArn=known[name], VersionId=version["VersionId"])
            iam.create_policy_version(PolicyArn=known[name], PolicyDocument=document, SetAsDefault=True)
        else:
            known[name] = iam.create_policy(PolicyName=name, PolicyDocument=document)["Policy"]["Arn"]
        return sorted(known.values())

    def synthesise(self) -> None:
        """``cdk synth`` of this environment alone."""
        project = project_folder()
        context = {
            "environments": self.environment,
            "environments-folder": str(project / "environments"),
            "model-repositories": str(project / "model_repos"),
        }
        options = [part for name, value in context.items() for part in ("--context", f"{name}={value}")]
        self._cdk(["synth", "--quiet", "--output", str(self.assembly), *options])

    def deploy(self, stacks: str, *, concurrency: int = 1) -> None:
        """``cdk deploy`` of the synthesised stacks that a pattern names (``local/artifacts``), so many at once."""
        options = ["--require-approval", "never", "--progress", "events", "--concurrency", str(concurrency)]
        self._cdk(["deploy", "--app", str(self.assembly), *options, stacks])

    def destroy(self) -> None:
        """``cdk destroy`` of the whole environment."""
        self._cdk(["destroy", "--app", str(self.assembly), "--force", f"{self.environment}/*"])

    def _cdk(self, arguments: Sequence[str], *, folder: Path = REPOSITORY) -> None:
        """Run the CDK command line; its output goes to the log and, line by line, to ``on_line``.

        Raises InputError: it is not installed. Raises WorkFailedError: it ended with an error; with its last lines.
        """
        log = LocalPaths.from_environment().logs / "cdk.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        command = [str(_installed_cdk()), *arguments, "--no-notices", "--no-color"]
        last: deque[str] = deque(maxlen=SHOWN_LINES)
        with (
            log.open("a", buffering=1) as record,  # line by line, so that `tritonstack local logs -f cdk` follows
            subprocess.Popen(
                command, cwd=folder, env=self._variables(), text=True, errors="replace",
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            ) as process,
        ):  # fmt: skip
            record.write(f"$ cdk {' '.join(arguments)}\n")
            try:
                for line in process.stdout or ():
                    record.write(line)
                    last.append(line.rstrip())
                    self.on_line(line.strip())
                code = process.wait()
            except BaseException:  # an interrupted deployment goes on nowhere
                _end(process)
                raise
        if code != 0:
            shown = "\n".join(line for line in last if line)
            raise WorkFailedError(f"cdk {arguments[0]} ended with {code}; the whole log: {log}\n{shown}")

    def _variables(self) -> dict[str, str]:
        ours = {
            **self.aws.variables(),
            # The validator takes four fifths of the time of a synthesis; `make test` runs it once, in its own gate.
            "CDK_VALIDATION": os.environ.get("CDK_VALIDATION", "false"),
            "JSII_RUNTIME_PACKAGE_CACHE_ROOT": os.environ.get("JSII_RUNTIME_PACKAGE_CACHE_ROOT", str(JSII_CACHE)),
        }
        path = f"{REPOSITORY / '.envs' / 'main' / 'bin'}:{os.environ.get('PATH', os.defpath)}"
        return {**plain_environment(), **ours, "PATH": path}


def _installed_cdk() -> Path:
    program = cdk_program()
    if not program.exists():
        found = f"the CDK command line is not installed: {program}"
        raise InputError([Problem(found=found, allowed="the one that package-lock.json pins", advice=setup_command())])
    return program


def _end(process: subprocess.Popen[str]) -> None:
    """SIGTERM, and SIGKILL to one that stays."""
    process.terminate()
    try:
        process.wait(timeout=END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
