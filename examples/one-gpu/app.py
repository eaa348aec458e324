"""An environment whose one GPU serves two instances of DistilGPT-2 beside seven of BERT."""

from pathlib import Path

import aws_cdk as cdk

from tritonstack_stacks import EnvironmentStage

HERE = Path(__file__).resolve().parent

app = cdk.App()
EnvironmentStage.from_file(app, file=HERE / "environments" / "one-gpu.yaml", models=HERE / "model_repos")
app.synth()
