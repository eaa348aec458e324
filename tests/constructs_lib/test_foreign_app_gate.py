"""cdk-nag looks at an endpoint in a foreign app, in a process whose validation is on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
APP = """
import sys

import aws_cdk as cdk
import cdk_nag
from aws_cdk import aws_ec2 as ec2, aws_iam as iam, aws_kms as kms, aws_s3 as s3

from constructs_lib import MultiModelEndpoint

app = cdk.App(outdir=sys.argv[1])
stack = cdk.Stack(app, "stack", env=cdk.Environment(account="123456789012", region="us-east-1"))
vpc = ec2.Vpc.from_vpc_attributes(
    stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["us-east-1a"],
    private_subnet_ids=["subnet-0123456789abcdef0"],
)
role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
key = kms.Key(stack, "Key", enable_key_rotation=True)
bucket = s3.Bucket.from_bucket_name(stack, "Bucket", "archives")
endpoint = MultiModelEndpoint(
    stack, "Models", bucket=bucket, key=key, vpc=vpc, role=role, release="24.09", instance_type="ml.g5.xlarge"
)
if "wide" in sys.argv:
    endpoint.execution_role.policy.add_statements(iam.PolicyStatement(actions=["s3:PutObject"], resources=["arn:aws:s3:::archives/other/*"]))
cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks(app))
app.synth()
"""  # noqa: E501 - a statement a line


@pytest.mark.long
def test_cdk_nag_finds_nothing_in_it_and_looks(tmp_path: Path) -> None:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
    variables = {**inherited, "PYTHONPATH": str(ROOT), "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20"}
    ended = {
        kind: subprocess.run(
            [sys.executable, "-c", APP, str(tmp_path / kind), kind],
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )
        for kind in ("narrow", "wide")
    }
    assert ended["narrow"].returncode == 0, ended["narrow"].stdout + ended["narrow"].stderr
    assert ended["wide"].returncode != 0
    assert "AwsSolutions-IAM5" in ended["wide"].stdout + ended["wide"].stderr
