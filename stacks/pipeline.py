"""The stack of the pipeline: from a push to the last environment, by CDK Pipelines.

Made with ``-c pipeline=true`` alone; see ``docs/pipeline.md`` and ``docs/decisions/0018-pipeline.md``.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_codepipeline as codepipeline
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import pipelines
from constructs import Construct

from constructs_lib.account_requirements import apply_account_requirements, tag_all
from constructs_lib.codebuild_project import acknowledge_role_paths
from constructs_lib.permission import account_region
from constructs_lib.pipeline_parts import (
    AssumingRole,
    PipelineBucket,
    PipelineTopic,
    acknowledge_pipeline,
    narrow_permissions,
)
from constructs_lib.triton_model import TritonImage
from tritonstack import naming
from tritonstack.config import BuildSettings
from tritonstack.config.pipeline import (
    PIPELINE_FILE,
    LoadedPipeline,
    LoadedStage,
    Pipeline,
    PipelineGate,
    load_pipeline,
)
from tritonstack.errors import Problem, refuse
from tritonstack.iam_statements import statements
from tritonstack.pipeline import builds
from tritonstack.pipeline.builds import PipelineNames, Work
from tritonstack.preparation.deployed_builds import deployed_builds
from tritonstack.served import all_served

from .pipeline_access import PipelineAccessStack
from .stage import EnvironmentStage

CHECK_MINUTES = 60
"""The longest that synthesis or a verification takes."""
IMAGE, COMPUTE_TYPE = "aws/codebuild/standard:7.0", "BUILD_GENERAL1_MEDIUM"
"""Of the pipeline's own builds: Python 3.11 and Node 22 (user guide: "Available runtimes"), glibc 2.35 or newer."""
COMPUTE_TYPES = {
    "BUILD_GENERAL1_SMALL": codebuild.ComputeType.SMALL,
    "BUILD_GENERAL1_MEDIUM": codebuild.ComputeType.MEDIUM,
    "BUILD_GENERAL1_LARGE": codebuild.ComputeType.LARGE,
    "BUILD_GENERAL1_XLARGE": codebuild.ComputeType.X_LARGE,
    "BUILD_GENERAL1_2XLARGE": codebuild.ComputeType.X2_LARGE,
}


@dataclass(frozen=True, kw_only=True)
class DeployedStage:
    """One environment of a pipeline, with its stage of the app."""

    loaded: LoadedStage  # the settings
    stage: EnvironmentStage  # its stacks
    environments: tuple[str, ...]  # the Python environments that making its archives takes
    weights: tuple[str, ...]  # URLs of the objects in S3 that its recipes take weights from

    @property
    def name(self) -> str:
        """The environment's name."""
        return self.loaded.environment.environment


class PipelineStack(cdk.Stack):
    """Source, synthesis, self-mutation, assets, and for each environment: approval, deployment, verification, gates.

    An environment is deployed in three steps: the stacks of bucket, builds and load tests; the archives that are
    missing; the endpoints. So the wait condition of a serving stack finds nothing to build.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Pipeline,
        file: str,
        cli_version: str,
        stages: Sequence[DeployedStage],
    ) -> None:
        """Make the stack, and in each environment's stage the stack with the roles that the pipeline assumes.

        ``file``: the settings as ``-c pipeline=…`` names them, for synthesis. ``cli_version``: of the CDK's command
        line, which the pipeline changes itself with. ``stages``: in the order of their deployment.
        """
        super().__init__(
            scope,
            construct_id,
            stack_name=naming.pipeline_stack(settings.name),
            description=f"Deploys {', '.join(stage.name for stage in stages)} one after the other",
            env=cdk.Environment(account=settings.account, region=settings.region),
        )
        tag_all(self, settings.tags)
        self._settings, self._names = settings, PipelineNames.of(settings)
        apply_account_requirements(
            self, stack=self, role_path=settings.role_path, permissions_boundary_arn=settings.permissions_boundary
        )
        self._store = PipelineBucket(self, "Store", pipeline=settings.name, artifact_days=settings.artifact_days)
        self._topic = PipelineTopic(self, "Topic", pipeline=settings.name, key=self._store.key, email=settings.email)
        self._source = pipelines.CodePipelineSource.connection(
            settings.source.repository,
            settings.source.branch,
            connection_arn=settings.source.connection,
            action_name="source",
            code_build_clone_output=True,  # release records hold the commit that a model comes from
            trigger_on_push=True,
        )
        self.pipeline = self._pipeline(file, cli_version, assets=self._asset_builds(stages))
        for stage in stages:
            self._add(stage)
        self.pipeline.build_pipeline()
        definition = self.pipeline.pipeline.node.default_child
        if not isinstance(definition, codepipeline.CfnPipeline):
            raise TypeError("CDK Pipelines made something else than a pipeline")
        self.definition = definition
        self._roll_back({stage.name for stage in stages})
        self._topic.notify_about(self.pipeline.pipeline)
        narrow_permissions(self)
        acknowledge_pipeline(self)
        if settings.role_path is not None:
            acknowledge_role_paths(self)
        cdk.CfnOutput(
            self, "PipelineName", value=self.pipeline.pipeline.pipeline_name, description="Name of the pipeline"
        )
        cdk.CfnOutput(
            self, "TopicArn", value=self._topic.topic.topic_arn, description="Topic of failures and pending approvals"
        )

    def _asset_builds(self, stages: Sequence[DeployedStage]) -> pipelines.CodeBuildOptions | None:
        """Builds of assets pull AWS's Triton, which the Dockerfiles of images begin with; None without such an image.

        CDK Pipelines makes those that publish images privileged, as a Docker engine in CodeBuild must be. Its
        ``DockerCredential.ecr`` has a token in a registry's name, which a single build of all assets takes none of.
        """
        environments = [stage.loaded.environment for stage in stages]
        uris = {e.image_uri(each.region) for each in environments for e in each.endpoints if e.image_build is not None}
        if not uris:
            return None
        images = [TritonImage.from_uri(uri) for uri in sorted(uris)]
        hosts = sorted({image.registry for image in images})
        credentials = {"version": "1.0", "domainCredentials": {host: {"ecrRepository": True} for host in hosts}}
        command = f"mkdir -p $HOME/.cdk && echo '{json.dumps(credentials)}' > $HOME/.cdk/cdk-docker-creds.json"
        repositories = sorted({image.repository_arn(partition=self.partition) for image in images})
        return pipelines.CodeBuildOptions(
            partial_build_spec=codebuild.BuildSpec.from_object({"phases": {"pre_build": {"commands": [command]}}}),
            role_policy=[
                iam.PolicyStatement.from_json(each.document)
                for each in statements("pull", at=account_region(self), repositories=repositories)
            ],
        )

    def _pipeline(
        self, file: str, cli_version: str, *, assets: pipelines.CodeBuildOptions | None
    ) -> pipelines.CodePipeline:
        settings = self._settings
        log = logs.LogGroup(
            self,
            "Log",
            log_group_name=naming.pipeline_log_group(settings.name),
            encryption_key=self._store.key,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        group = log.node.default_child
        assert isinstance(group, logs.CfnLogGroup)  # noqa: S101 - the CDK makes it with the log group
        group.retention_in_days = settings.log_days
        synth = pipelines.ShellStep(
            "synth",
            input=self._source,
            commands=list(builds.synthesis(pipeline_file=file)),
            primary_output_directory="cdk.out",
        )
        return pipelines.CodePipeline(
            self,
            "Pipeline",
            pipeline_name=settings.name,
            pipeline_type=codepipeline.PipelineType.V2,
            execution_mode=codepipeline.ExecutionMode.QUEUED,
            artifact_bucket=self._store.bucket,
            cli_version=cli_version,
            publish_assets_in_parallel=False,
            asset_publishing_code_build_defaults=assets,
            synth=synth,
            code_build_defaults=pipelines.CodeBuildOptions(
                build_environment=codebuild.BuildEnvironment(
                    build_image=codebuild.LinuxBuildImage.from_code_build_image_id(IMAGE),
                    compute_type=COMPUTE_TYPES[COMPUTE_TYPE],
                ),
                logging=codebuild.LoggingOptions(cloud_watch=codebuild.CloudWatchLoggingOptions(log_group=log)),
                partial_build_spec=codebuild.BuildSpec.from_object(_RUNTIMES),
                timeout=cdk.Duration.minutes(CHECK_MINUTES),
            ),
        )

    def _add(self, stage: DeployedStage) -> None:
        """Add one environment: its approval, its deployment, its verification and its gates."""
        if stage.loaded.approved:
            text = stage.loaded.settings.approval_text or f"Deploy {stage.name}?"
            step = pipelines.ManualApprovalStep(f"approve-{stage.name}", comment=text)
            self.pipeline.add_wave(f"approve-{stage.name}", post=[step])
        access = self._access(stage)
        checks = self._role(stage, "verify", "Verifies what the pipeline deployed")
        self.pipeline.add_stage(
            stage.stage,
            stack_steps=[pipelines.StackSteps(stack=access, post=[self._prepare(stage)])],
            post=[self._build(f"verify-{stage.name}", stage, checks, builds.verification(stage.name))],
        )
        measures = self._role(stage, "measure", "Runs load tests") if stage.loaded.measured else checks
        gates = [
            self._gate(gate, stage, checks if gate.load_test is None else measures)
            for gate in stage.loaded.settings.gates
        ]
        for before, after in itertools.pairwise(gates):
            after.add_step_dependency(before)
        if gates:
            self.pipeline.add_wave(f"gates-{stage.name}", post=gates)

    def _access(self, stage: DeployedStage) -> PipelineAccessStack:
        """The stack of the pipeline's roles: deployed after artifacts, builds and load-test, before serving."""
        made, builds = stage.stage, stage.stage.builds
        access = PipelineAccessStack(
            made,
            "pipeline-access",
            environment=stage.loaded.environment,
            pipeline=self._names,
            weights=stage.weights,
            engines_by_codebuild=builds is not None and builds.engines is not None,
            engines_by_processing=builds is not None and builds.processing is not None,
            measured=stage.loaded.measured,
        )
        access.add_stack_dependency(builds or made.network or made.artifacts)
        if stage.loaded.measured and made.load_test is not None:
            access.add_stack_dependency(made.load_test)
        for serving in made.serving.values():
            serving.add_stack_dependency(access)
        return access

    def _role(self, stage: DeployedStage, work: Work, description: str) -> AssumingRole:
        environment = stage.loaded.environment
        return AssumingRole(
            self,
            f"{stage.name}-{work}",
            role_name=self._names.build_role(stage.name, work),
            description=f"{description} in {stage.name}",
            assumed=self._names.access_role_arn(
                stage.name, work, account=environment.account, role_path=environment.role_path
            ),
        )

    def _prepare(self, stage: DeployedStage) -> pipelines.Step:
        role = self._role(stage, "prepare", "Makes the archives that are missing")
        settings = stage.loaded.environment.builds
        commands = builds.preparation(stage.name, environments=stage.environments)
        return self._build(
            f"prepare-{stage.name}", stage, role, commands, minutes=settings.timeout_minutes, making=settings
        )

    def _gate(self, gate: PipelineGate, stage: DeployedStage, role: AssumingRole) -> pipelines.Step:
        commands = builds.gate(gate.commands or ()) if gate.load_test is None else builds.measurement(stage.name)
        return self._build(gate.name, stage, role, commands, minutes=gate.minutes)

    def _build(
        self,
        name: str,
        stage: DeployedStage,
        role: AssumingRole,
        commands: Sequence[str],
        *,
        minutes: int = CHECK_MINUTES,
        making: BuildSettings | None = None,
    ) -> pipelines.Step:
        """One build in the repository, with the credentials of ``role``.

        ``making``: the settings of a build that makes archives; their SSM parameters are of the pipeline's account.
        """
        variables = {builds.ROLE_VARIABLE: role.assumed, builds.REGION_VARIABLE: stage.loaded.environment.region}
        secrets = {} if making is None else making.hub.parameters
        return pipelines.CodeBuildStep(
            name,
            input=self._source,
            commands=list(commands),
            env=variables if making is None else {**variables, **making.hub.variables},
            role=role.role,
            build_environment=codebuild.BuildEnvironment(
                compute_type=COMPUTE_TYPES[COMPUTE_TYPE if making is None else making.compute_type],
                environment_variables={
                    variable: codebuild.BuildEnvironmentVariable(
                        value=parameter, type=codebuild.BuildEnvironmentVariableType.PARAMETER_STORE
                    )
                    for variable, parameter in sorted(secrets.items())
                }
                or None,
            ),
            timeout=cdk.Duration.minutes(minutes),
        )

    def _roll_back(self, names: set[str]) -> None:
        """Roll a stage that fails back to its last successful execution.

        CDK Pipelines has no setting for it (aws/aws-cdk issue 30083), so the low-level pipeline is overridden. Never
        for the source's stage, which CodePipeline refuses (user guide: "Configuring stage rollback").
        """
        for index, made in enumerate(self.pipeline.pipeline.stages):
            if made.stage_name in names:
                self.definition.add_property_override(f"Stages.{index}.OnFailure.Result", "ROLLBACK")


_RUNTIMES = {"phases": {"install": {"runtime-versions": {"python": "3.11", "nodejs": "22"}}}}


STACK = "pipeline"


def add_pipeline(app: Construct, *, chosen: str, root: Path, models: Path, folder: Path) -> LoadedPipeline:
    """Add the stages of a pipeline's environments, and the pipeline's stack.

    Args:
        app: the app. The stages are its children, under the same ids as without a pipeline.
        chosen: the value of ``-c pipeline``: ``true`` for ``pipeline.yaml``, else a file; relative to ``root``.
        root: the folder with ``cdk.json`` and ``package.json``.

    Raises:
        InputError: with every problem of the pipeline's file, the environments' files and the models; or ``root`` is
            no clone, whose scripts the pipeline's builds run, or ``-c environments`` is given as well.
    """
    problems = []
    if (names := app.node.try_get_context("environments")) is not None:
        found, advice = f"{names}, beside -c pipeline", "A pipeline's file names its environments."
        problems.append(Problem(field="-c environments", found=found, allowed="one of both", advice=advice))
    if not (root / builds.SETUP).is_file():
        found = f"{root} has no {builds.SETUP}, which the builds of the pipeline run"
        advice = "EnvironmentStage.from_file gives a pipeline of your own its stages: examples/pipeline"
        problems.append(Problem(field="-c pipeline", found=found, allowed="a clone of tritonstack", advice=advice))
    refuse(problems)
    file = PIPELINE_FILE if chosen.lower() == "true" else chosen
    loaded = load_pipeline(root / file, environments=folder)
    matched = all_served([(stage.environment, stage.file) for stage in loaded.stages], models)
    stages = []
    for each, served in zip(loaded.stages, matched, strict=True):
        making = deployed_builds(served, models)  # where no deployment builds, the pipeline does
        made = EnvironmentStage.from_served(app, served, models=models)
        stages.append(DeployedStage(loaded=each, stage=made, environments=making.environments, weights=making.weights))
    pinned = json.loads((root / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    PipelineStack(app, STACK, settings=loaded.settings, file=chosen, cli_version=pinned["aws-cdk"], stages=stages)
    return loaded
