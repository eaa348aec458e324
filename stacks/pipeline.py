"""The stack of the pipeline: from a push to the last environment, by CDK Pipelines.

Asked for by ``-c pipeline=true`` alone; see ``docs/pipeline.md`` and ``docs/decisions/0018-pipeline.md``.
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
from aws_cdk import aws_logs as logs
from aws_cdk import pipelines
from constructs import Construct

from constructs_lib.permission import apply_house_rules, tag_all
from constructs_lib.pipeline_access import acknowledge_pipeline, acknowledge_role_paths, narrow
from constructs_lib.pipeline_steps import AssumingRole, PipelineBucket, PipelineTopic, build_step, compute
from tritonstack.config.pipeline import LoadedPipeline, LoadedStage, Pipeline, PipelineGate, load_pipeline
from tritonstack.engines.order import Served, all_served, deployed_builds
from tritonstack.errors import InputError, Problem
from tritonstack.pipeline import builds
from tritonstack.pipeline.builds import PipelineNames, Work
from tritonstack.releases.commits import commits_of

from .pipeline_access import PipelineAccessStack
from .stage import EnvironmentStage, builds_of

CHECK_MINUTES = 60
"""The longest that synthesis or a verification takes."""
IMAGE, COMPUTE_TYPE = "aws/codebuild/standard:7.0", "BUILD_GENERAL1_MEDIUM"
"""Of the pipeline's own builds: Python 3.11, Node 20 or newer, glibc 2.35 or newer."""


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

    An environment's deployment stops after the stacks that its archives lie in and are built by, makes the archives,
    and goes on with the endpoints: so the wait of a serving stack finds nothing to build.

    Attributes:
        pipeline: of CDK Pipelines.
        definition: the low-level pipeline.
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
        """Make the stack, and in each environment's stage the stack that lets the pipeline in.

        Args:
            scope: the app.
            construct_id: the id in the app.
            settings: of the pipeline's file.
            file: that file as ``-c pipeline=…`` names it: what synthesis is called with.
            cli_version: of the CDK's command line, which the pipeline changes itself with.
            stages: in the order of their deployment.
        """
        super().__init__(
            scope,
            construct_id,
            stack_name=f"{settings.name}-pipeline",
            description=f"Deploys {', '.join(stage.name for stage in stages)} one after the other",
            env=cdk.Environment(account=settings.account, region=settings.region),
        )
        tag_all(self, settings.tags)
        self._settings, self._names = settings, PipelineNames.of(settings)
        apply_house_rules(
            self, stack=self, role_path=settings.role_path, permissions_boundary_arn=settings.permissions_boundary
        )
        self._store = PipelineBucket(self, "Store", pipeline=settings.name, artifact_days=settings.artifact_days)
        self._topic = PipelineTopic(self, "Topic", pipeline=settings.name, key=self._store.key, email=settings.email)
        self._source = pipelines.CodePipelineSource.connection(
            settings.source.repository,
            settings.source.branch,
            connection_arn=settings.source.connection,
            action_name="source",
            code_build_clone_output=True,  # release records tell the commit that a model comes from
            trigger_on_push=True,
        )
        self.pipeline = self._pipeline(file, cli_version)
        for stage in stages:
            self._add(stage)
        self.pipeline.build_pipeline()
        definition = self.pipeline.pipeline.node.default_child
        if not isinstance(definition, codepipeline.CfnPipeline):
            raise TypeError("CDK Pipelines made something else than a pipeline")
        self.definition = definition
        self._roll_back({stage.name for stage in stages})
        self._topic.notify_about(self.pipeline.pipeline)
        narrow(self)
        acknowledge_pipeline(self)
        if settings.role_path is not None:
            acknowledge_role_paths(self)
        cdk.CfnOutput(
            self, "PipelineName", value=self.pipeline.pipeline.pipeline_name, description="Name of the pipeline"
        )
        cdk.CfnOutput(
            self, "TopicArn", value=self._topic.topic.topic_arn, description="Topic of failures and pending approvals"
        )

    def _pipeline(self, file: str, cli_version: str) -> pipelines.CodePipeline:
        settings = self._settings
        log = logs.LogGroup(
            self,
            "Log",
            log_group_name=f"/tritonstack/pipeline/{settings.name}",
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
            synth=synth,
            code_build_defaults=pipelines.CodeBuildOptions(
                build_environment=codebuild.BuildEnvironment(
                    build_image=codebuild.LinuxBuildImage.from_code_build_image_id(IMAGE),
                    compute_type=compute(COMPUTE_TYPE),
                ),
                logging=codebuild.LoggingOptions(cloud_watch=codebuild.CloudWatchLoggingOptions(log_group=log)),
                partial_build_spec=codebuild.BuildSpec.from_object(_RUNTIMES),
                timeout=cdk.Duration.minutes(CHECK_MINUTES),
            ),
        )

    def _add(self, stage: DeployedStage) -> None:
        """One environment: what must be approved, what is deployed, what must hold then."""
        if stage.loaded.approved:
            text = stage.loaded.settings.approval_text or f"Deploy {stage.name}?"
            step = pipelines.ManualApprovalStep(f"approve-{stage.name}", comment=text)
            self.pipeline.add_wave(f"approve-{stage.name}", post=[step])
        access = self._access(stage)
        checks = self._role(stage, "verify", "Verifies what the pipeline deployed")
        self.pipeline.add_stage(
            stage.stage,
            stack_steps=[pipelines.StackSteps(stack=access, post=[self._prepare(stage)])],
            post=[self._verify(stage, checks)],
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
        """After all that archives lie in, are built by and measured by, before all that serves them."""
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
        return build_step(
            f"prepare-{stage.name}",
            source=self._source,
            commands=builds.preparation(stage.name, environments=stage.environments),
            role=role,
            variables={**_variables(stage, role), **settings.hub.variables},
            compute_type=settings.compute_type,
            timeout_minutes=settings.timeout_minutes,
            parameters=settings.hub.parameters,
        )

    def _verify(self, stage: DeployedStage, role: AssumingRole) -> pipelines.Step:
        return build_step(
            f"verify-{stage.name}",
            source=self._source,
            commands=builds.verification(stage.name),
            role=role,
            variables=_variables(stage, role),
            compute_type=COMPUTE_TYPE,
            timeout_minutes=CHECK_MINUTES,
        )

    def _gate(self, gate: PipelineGate, stage: DeployedStage, role: AssumingRole) -> pipelines.Step:
        return build_step(
            gate.name,
            source=self._source,
            commands=_gate_commands(gate, stage),
            role=role,
            variables=_variables(stage, role),
            compute_type=COMPUTE_TYPE,
            timeout_minutes=gate.minutes,
        )

    def _roll_back(self, names: set[str]) -> None:
        """A stage that fails goes back to its last successful execution.

        CDK Pipelines has no setting for it (aws/aws-cdk issue 30083), so the low-level pipeline is overridden. Never
        for the source's stage, which CodePipeline refuses (user guide: "Configuring stage rollback").
        """
        for index, made in enumerate(self.pipeline.pipeline.stages):
            if made.stage_name in names:
                self.definition.add_property_override(f"Stages.{index}.OnFailure.Result", "ROLLBACK")


_RUNTIMES = {"phases": {"install": {"runtime-versions": {"python": "3.11", "nodejs": "20"}}}}


def _gate_commands(gate: PipelineGate, stage: DeployedStage) -> tuple[str, ...]:
    if gate.load_test is not None:
        return builds.measurement(stage.name)
    return builds.gate(gate.commands or ())


def _variables(stage: DeployedStage, role: AssumingRole) -> dict[str, str]:
    return {builds.ROLE_VARIABLE: role.assumed, builds.REGION_VARIABLE: stage.loaded.environment.region}


FILE = "pipeline.yaml"
STACK = "pipeline"


def add_pipeline(app: Construct, *, asked: str, root: Path, models: Path, folder: Path) -> LoadedPipeline:
    """Add the stages of a pipeline's environments, and the pipeline's stack.

    Args:
        app: the app. The stages are its children, under the same ids as without a pipeline.
        asked: the value of ``-c pipeline``: ``true`` for ``pipeline.yaml``, else a file; relative to ``root``.
        root: the folder with ``cdk.json`` and ``package.json``.
        models: the folder of the model folders.
        folder: the folder of the environments.

    Raises:
        InputError: with every problem of the pipeline's file, the environments' files and the models; or ``root`` is
            no clone, whose scripts the pipeline's builds run.
    """
    if not (root / builds.SETUP).is_file():
        problem = Problem(
            field="-c pipeline",
            found=f"{root} has no {builds.SETUP}, which the builds of the pipeline run",
            allowed="a clone of tritonstack",
            advice="EnvironmentStage.from_file gives a pipeline of your own its stages: examples/pipeline",
        )
        raise InputError([problem])
    file = FILE if asked.lower() == "true" else asked
    loaded = load_pipeline(root / file, environments=folder)
    matched = all_served([(stage.environment, stage.file) for stage in loaded.stages], models)
    stages = [_stage(app, *each, models=models) for each in zip(loaded.stages, matched, strict=True)]
    pinned = json.loads((root / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    PipelineStack(app, STACK, settings=loaded.settings, file=asked, cli_version=pinned["aws-cdk"], stages=stages)
    return loaded


def _stage(app: Construct, stage: LoadedStage, served: Served, *, models: Path) -> DeployedStage:
    making = deployed_builds(served, models)  # where no deployment builds, the pipeline does
    made = EnvironmentStage(
        app,
        environment=served.environment,
        release_sets=served.release_sets,
        commits=commits_of(served.sources, models),
        builds=builds_of(served, models=models),
    )
    return DeployedStage(loaded=stage, stage=made, environments=making.environments, weights=making.weights)
