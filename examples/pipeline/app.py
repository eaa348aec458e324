"""A shop's own pipeline. One of its stages is an environment of tritonstack, read from its file."""

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_codepipeline as codepipeline
from aws_cdk import pipelines

from tritonstack_stacks import EnvironmentStage

HERE = Path(__file__).resolve().parent
CONNECTION = "arn:aws:codeconnections:us-east-1:123456789012:connection/11111111-2222-3333-4444-555555555555"

app = cdk.App()
delivery = cdk.Stack(app, "delivery", env=cdk.Environment(account="123456789012", region="us-east-1"))
source = pipelines.CodePipelineSource.connection("shop/shop", "main", connection_arn=CONNECTION)
synth = pipelines.ShellStep("Synth", input=source, commands=["pip install -r requirements.txt", "npx cdk synth"])
pipeline = pipelines.CodePipeline(delivery, "Pipeline", synth=synth, pipeline_type=codepipeline.PipelineType.V2)

models = EnvironmentStage.from_file(app, file=HERE / "environments" / "shop.yaml", models=HERE / "model_repos")
pipeline.add_stage(models, pre=[pipelines.ManualApprovalStep("Deploy models")])

app.synth()
