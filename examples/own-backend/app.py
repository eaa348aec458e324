"""An environment whose image adds a Triton backend of one's own, written in Python."""

from pathlib import Path

import aws_cdk as cdk

from tritonstack_stacks import EnvironmentStage

HERE = Path(__file__).resolve().parent

app = cdk.App()
EnvironmentStage.from_file(app, file=HERE / "environments" / "own-backend.yaml", models=HERE / "model_repos")
app.synth()
