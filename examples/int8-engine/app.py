"""An environment that serves a digit classifier as a TensorRT engine in INT8."""

from pathlib import Path

import aws_cdk as cdk

from tritonstack_stacks import EnvironmentStage

HERE = Path(__file__).resolve().parent

app = cdk.App()
EnvironmentStage.from_file(app, file=HERE / "environments" / "digits.yaml", models=HERE / "model_repos")
app.synth()
