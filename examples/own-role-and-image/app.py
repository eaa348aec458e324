"""An environment in an account where another team owns the roles, with a Triton image that the deployment builds."""

from pathlib import Path

import aws_cdk as cdk

from tritonstack_stacks import EnvironmentStage

HERE = Path(__file__).resolve().parent

app = cdk.App()
EnvironmentStage.from_file(app, file=HERE / "environments" / "guest.yaml", models=HERE / "model_repos")
app.synth()
