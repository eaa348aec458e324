"""A pipeline's builds that work in an environment, each with a role that may assume one role there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
import jsii
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_codepipeline as codepipeline
from aws_cdk import aws_codepipeline_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import pipelines
from constructs import Construct

from constructs_lib.codebuild_project import codebuild_principal
from constructs_lib.permission import allow


class AssumingRole(Construct):
    """The role of builds that work in an environment: it may assume one role there.

    Attributes:
        role: the role; the CDK adds what every build needs (log, artifacts, key, connection).
        assumed: the ARN of the role in the environment's account.
    """

    def __init__(self, scope: Construct, construct_id: str, *, role_name: str, description: str, assumed: str) -> None:
        """Make the role.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            role_name: fixed, for the trust policy of ``assumed`` names it.
            description: what it is for.
            assumed: the ARN of the role that it may assume.
        """
        super().__init__(scope, construct_id)
        self.assumed = assumed
        self.role = iam.Role(
            self, "Role", role_name=role_name, description=description, assumed_by=codebuild_principal(self)
        )
        allow(
            iam.Policy(self, "Assume", roles=[self.role]),
            "WorkInEnvironment",
            actions=["sts:AssumeRole"],
            resources=[assumed],
        )


def build_step(
    name: str,
    *,
    source: pipelines.IFileSetProducer,
    commands: Sequence[str],
    role: AssumingRole,
    variables: Mapping[str, str],
    compute_type: str,
    timeout_minutes: int,
    parameters: Mapping[str, str] | None = None,
) -> pipelines.CodeBuildStep:
    """One build in the repository, with the credentials of ``role``.

    Args:
        name: of the action.
        source: the repository.
        commands: in the shell, one after the other; the first that fails ends the build.
        role: who it is.
        variables: environment variables.
        compute_type: CodeBuild's machine (``BUILD_GENERAL1_MEDIUM``).
        timeout_minutes: the longest that it takes.
        parameters: environment variable → the SSM parameter of the pipeline's account that holds its value.
            Default: none.
    """
    secrets = {
        name: codebuild.BuildEnvironmentVariable(
            value=parameter, type=codebuild.BuildEnvironmentVariableType.PARAMETER_STORE
        )
        for name, parameter in sorted((parameters or {}).items())
    }
    return pipelines.CodeBuildStep(
        name,
        input=source,
        commands=list(commands),
        env=dict(variables),
        role=role.role,
        build_environment=codebuild.BuildEnvironment(
            compute_type=compute(compute_type), environment_variables=secrets or None
        ),
        timeout=cdk.Duration.minutes(timeout_minutes),
    )


def compute(name: str) -> codebuild.ComputeType:
    """CodeBuild's name of a machine as the CDK's enumeration has it."""
    known = {
        "BUILD_GENERAL1_SMALL": codebuild.ComputeType.SMALL,
        "BUILD_GENERAL1_MEDIUM": codebuild.ComputeType.MEDIUM,
        "BUILD_GENERAL1_LARGE": codebuild.ComputeType.LARGE,
        "BUILD_GENERAL1_XLARGE": codebuild.ComputeType.X_LARGE,
        "BUILD_GENERAL1_2XLARGE": codebuild.ComputeType.X2_LARGE,
    }
    return known[name]


@jsii.implements(pipelines.ICodePipelineActionFactory)
class FunctionGate(pipelines.Step):
    """A gate that is a Lambda function of the pipeline's account, called as an action of CodePipeline.

    It answers with PutJobSuccessResult or PutJobFailureResult (CodePipeline user guide: "Invoke an AWS Lambda function
    in a pipeline"); without an answer the action fails after its time-out.
    """

    def __init__(self, name: str, *, function: str, environment: str) -> None:
        """``function``: its name; it is told the ``environment`` as its user parameters."""
        super().__init__(name)
        self._function, self._environment = function, environment

    @jsii.member(jsii_name="produceAction")
    def produce_action(
        self, stage: codepipeline.IStage, *, scope: Construct, action_name: str, run_order: float, **_others: object
    ) -> pipelines.CodePipelineActionFactoryResult:
        """Add the action. Called by CDK Pipelines."""
        arn = cdk.Stack.of(scope).format_arn(
            service="lambda",
            resource="function",
            resource_name=self._function,
            arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
        )
        action = actions.LambdaInvokeAction(
            action_name=action_name,
            run_order=int(run_order),
            lambda_=lambda_.Function.from_function_arn(scope, f"{self.id}-function", arn),
            user_parameters={"environment": self._environment},
        )
        stage.add_action(action)
        return pipelines.CodePipelineActionFactoryResult(run_orders_consumed=1)
