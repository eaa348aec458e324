"""An environment whose endpoint falls back to another GPU where AWS has no capacity of the first."""

from pathlib import Path

import aws_cdk as cdk

from tritonstack_stacks import EnvironmentStage

HERE = Path(__file__).resolve().parent

app = cdk.App()
EnvironmentStage.from_file(app, file=HERE / "environments" / "pools.yaml", models=HERE / "model_repos")
app.synth()
