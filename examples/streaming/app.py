"""An environment with one endpoint that streams: a text generator whose words arrive as they are chosen."""

from pathlib import Path

import aws_cdk as cdk

from tritonstack_stacks import EnvironmentStage

HERE = Path(__file__).resolve().parent

app = cdk.App()
EnvironmentStage.from_file(app, file=HERE / "environments" / "streaming.yaml", models=HERE / "model_repos")
app.synth()
