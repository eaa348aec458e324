"""``tritonstack local deploy``: a deployment with the real CDK command line, step by step."""

from __future__ import annotations

import json
import os
import subprocess
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from tritonstack.archives.build import build_environment
from tritonstack.archives.publish import publish_environment
from tritonstack.cli.conventions import echo, environment_option
from tritonstack.cli.progress import ShownStep, Steps
from tritonstack.config import Environment, engines_built_on_deploy, load_environment
from tritonstack.config.yaml_loader import with_lines
from tritonstack.errors import InputError, Problem, WorkFailedError, refuse
from tritonstack.models.contents import contents_of, skipped_proof
from tritonstack.paths import REPOSITORY, LocalPaths, cdk_program, environment_file, project_folder, setup_command
from tritonstack.pipeline.bootstrap import environment_policy
from tritonstack.pipeline.builds import PipelineNames
from tritonstack.served import Served, served_by
from tritonstack_local import ACCOUNT, REGION
from tritonstack_local.aws import LocalAws, find_local_aws, plain_environment, require_local_aws
from tritonstack_local.commands.stacks import bootstrap_stands, goes_on_with, refuse_stuck
from tritonstack_local.commands.start_stop import up
from tritonstack_local.processes import exclusive, read_record

JSII_CACHE = REPOSITORY / ".envs" / "cache" / "jsii"
"""Where the CDK's Python side unpacks itself once; its own choice is the home folder, which may take nothing."""
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
        """Folder of the synthesised templates."""
        return LocalPaths.from_environment().assembly(self.environment)

    def bootstrapped(self) -> bool:
        """Whether the account has the CDK's bootstrap stack.

        Raises WorkFailedError: the stack is there and its bucket is gone, or the local AWS does not respond.
        """
        return bootstrap_stands(self.aws)

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
        """``cdk deploy`` of the synthesised stacks that a pattern names (``local/artifacts``), several at once."""
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
        program = cdk_program()
        if not program.exists():
            found, allowed = f"the CDK command line is not installed: {program}", "the one that package-lock.json pins"
            raise InputError([Problem(found=found, allowed=allowed, advice=setup_command())])
        command = [str(program), *arguments, "--no-notices", "--no-color"]
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
            except BaseException:  # CloudFormation goes on with what it began; the CDK begins nothing more
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


def _end(process: subprocess.Popen[str]) -> None:
    """SIGTERM, and SIGKILL to one that stays."""
    process.terminate()
    try:
        process.wait(timeout=END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


LOCK = "deployment.lock"
"""Deployments run one after the other: two at once would write the same templates and stacks."""
WAITING = "waiting for another local deploy or local destroy"


@click.command("deploy", epilog="example: tritonstack local deploy -e local")
@environment_option()
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of stacks that the CDK deploys at once: endpoints, and the builds that they wait for.",
)
@click.option(
    "--restrict-cloudformation",
    is_flag=True,
    help="Let CloudFormation do only what the policy of `tritonstack pipeline bootstrap` allows.",
)
def deploy_command(*, environment: str, concurrency: int, restrict_cloudformation: bool) -> None:
    """Deploy ENVIRONMENT to the local AWS with the real CDK CLI: artifacts, then archives, then serving.

    A local AWS is started where none runs.
    """
    wanted = deployable(environment)
    started_local_aws()  # before any wait
    steps = Steps()
    try:
        with one_deployment(steps):
            deploy(
                wanted.settings,
                started_local_aws(),
                steps,
                builds=wanted.builds,
                concurrency=concurrency,
                restricted=restrict_cloudformation,
            )
    except KeyboardInterrupt:
        aws = find_local_aws()
        under_way = goes_on_with(aws, environment) if aws is not None else ""
        if under_way:
            echo(under_way, err=True)
        echo("the local AWS stays up: tritonstack local down stops it", err=True)
        raise


@dataclass(frozen=True, kw_only=True)
class Deployable:
    """An environment that the local AWS can serve."""

    settings: Environment  # as written
    served: Served  # matched with the model folders
    builds: bool  # whether it has a builds stack


def deployable(environment: str) -> Deployable:
    """An environment of the project with its model folders. Raises :class:`InputError`: it cannot be deployed here."""
    path = environment_file(environment)
    settings = load_environment(path)
    check_account(settings, file=str(path))
    # Wrong model folders are reported before anything is deployed: else they would be a failed synthesis.
    served = served_by(settings, project_folder() / "model_repos", file=path)
    refuse_unloadable(served, file=path)
    builds = engines_built_on_deploy(settings, needs_engine=bool(served.engines.builds))
    return Deployable(settings=settings, served=served, builds=builds)


def started_local_aws() -> LocalAws:
    """The running local AWS; one is started, as by ``local up``, where none is recorded to run or a part has ended.

    Raises as ``require_local_aws``, where one is starting.
    """
    record = read_record(LocalPaths.from_environment())
    if record is None or record.half or not any(part.running for part in record.parts.values()):
        up.main(args=[], standalone_mode=False)
    return require_local_aws()


def refuse_unloadable(served: Served, *, file: Path) -> None:
    """Raise :class:`InputError` for every model that the local Triton cannot load: it would fail the deployment."""
    problems = [
        Problem(
            file=str(file),
            location=("endpoints", index, "variants" if endpoint.variants else "models"),
            found=f"{model}, and {skipped}: its load would fail here, and the deployment with it",
            allowed="models whose backends the local Triton has",
            advice=f"take {model} out of this environment; an endpoint in an account loads it, and the verification "
            "after its deployment sends the sample",
        )
        for index, endpoint in enumerate(served.environment.endpoints)
        for model in endpoint.models
        if (skipped := skipped_proof(contents_of(served.sources[model]).backends))
    ]
    if problems:
        raise InputError(with_lines(problems, file))


def check_account(settings: Environment, *, file: str) -> None:
    """Refuse an environment that names another account or region than the local AWS has. Raises InputError: it does."""
    pairs = (("account", settings.account, ACCOUNT), ("region", settings.region, REGION))
    problems = [
        Problem(
            file=file,
            field=name,
            found=found,
            allowed=allowed,
            advice="the local AWS has one account and region: deploy a copy of the file with another name, "
            f'with {name}: "{allowed}" (and builds: {{size: tiny, weights: random}} for small models)',
        )
        for name, found, allowed in pairs
        if found != allowed
    ]
    refuse(problems)


def deploy(
    settings: Environment,
    aws: LocalAws,
    steps: Steps,
    *,
    builds: bool = False,
    concurrency: int = 1,
    restricted: bool = False,
) -> None:
    """Everything from the bootstrap to serving endpoints, each step shown with its time.

    ``builds``: the environment has a builds stack, whose build makes what is not published before the endpoints.
    ``concurrency``: how many of the endpoints' stacks are deployed at once. ``restricted``: CloudFormation's execution
    role has the policy of ``tritonstack pipeline bootstrap``, and not every right.
    """
    name = settings.environment
    refuse_stuck(aws, name)
    deployment = LocalDeployment(aws=aws, environment=name)
    if restricted or not deployment.bootstrapped():
        with steps.step("bootstrap the account (cdk bootstrap)") as step:
            policies = deployment.execution_policies(settings) if restricted else []
            following(deployment, step).bootstrap(policies=policies)
    with steps.step("synthesise the templates (cdk synth)") as step:
        following(deployment, step).synthesise()
    with steps.step(f"deploy {name}/artifacts: bucket and key (cdk deploy)") as step:
        following(deployment, step).deploy(f"{name}/artifacts")
    if not settings.endpoints:
        steps.note(f"no endpoint yet: {environment_file(name)} has `endpoints: []`")
        return
    with steps.step("build the model archives") as step:
        step.end_with(str(build_environment(settings, local=True, report=step.say)))
    with steps.step("publish them to the bucket") as step:
        step.end_with(str(publish_environment(settings, session=aws.session(), local=True, report=step.say)))
    for each in settings.endpoints:
        if each.image_build is not None:
            steps.note(
                f"{each.name}: {each.image_build.directory} is not built, for the local AWS has no Docker engine: "
                "its own Triton serves, as for every image"
            )
    if builds:
        with steps.step(f"deploy {name}/builds: what builds engines (cdk deploy)") as step:
            following(deployment, step).deploy(f"{name}/builds")
    what = "engines, then endpoints" if builds else "endpoints"
    last, stacks = f"{name}/serving-*", f"{name}/serving-*: {what}"
    if settings.watched:  # its dependencies come with it: what serves, in one run of the CDK
        last, stacks = f"{name}/observability", f"{name}/serving-*, {name}/observability: {what}, what watches them"
    if settings.hosted_endpoints:
        with steps.step(f"deploy {stacks} (cdk deploy)") as step:
            following(deployment, step).deploy(last, concurrency=concurrency)
    if settings.tested_endpoints:
        with steps.step(f"deploy {name}/load-test: what load tests run on (cdk deploy)") as step:
            following(deployment, step).deploy(f"{name}/load-test")


def following(deployment: LocalDeployment, step: ShownStep) -> LocalDeployment:
    """The deployment, with the CDK's latest line shown next to the running step."""
    deployment.on_line = step.say
    return deployment


@contextmanager
def one_deployment(steps: Steps) -> Iterator[None]:
    """Hold the deployments' lock; while another command holds it, a step shows that this one waits.

    Raises InputError: nothing can be written to the state folder.
    """
    with ExitStack() as held:
        with ExitStack() as waiting:
            lock = exclusive(
                LocalPaths.from_environment(),
                name=LOCK,
                report=lambda _: waiting.enter_context(steps.step(WAITING)),
            )
            held.enter_context(lock)
        yield
