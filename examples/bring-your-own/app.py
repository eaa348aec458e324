"""An app that has a VPC, a bucket, a key and a role, and adds an endpoint that serves many models."""

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from constructs_lib import MultiModelEndpoint

app = cdk.App()
stack = cdk.Stack(app, "recommender", env=cdk.Environment(account="123456789012", region="us-east-1"))

# What this app has anyway.
# Its default security group stays as EC2 makes it: the CDK closes it by a Node function, which the local AWS lacks.
vpc = ec2.Vpc(stack, "Vpc", nat_gateways=0, max_azs=2, restrict_default_security_group=False)
vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3)
key = kms.Key(stack, "Key", enable_key_rotation=True, removal_policy=cdk.RemovalPolicy.DESTROY)
bucket = s3.Bucket(stack, "Bucket", encryption_key=key, enforce_ssl=True, removal_policy=cdk.RemovalPolicy.DESTROY)
role = iam.Role(stack, "Containers", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
caller = iam.Role(stack, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))

# The endpoint: every archive that is put under its prefix can be called.
endpoint = MultiModelEndpoint(
    stack,
    "Models",
    vpc=vpc,
    bucket=bucket,
    key=key,
    role=role,
    release="26.05",  # what `tritonstack add` gives a new endpoint: docs/decisions/0030
    instance_type="ml.g4dn.xlarge",
    models=["ranker", "ranker-large"],
)
endpoint.grant_invoke(caller, models=["ranker"])  # and not ranker-large
endpoint.metric("ModelLatency", statistic="p99").create_alarm(stack, "Slow", threshold=200_000, evaluation_periods=5)
cdk.CfnOutput(stack, "EndpointName", value=endpoint.endpoint_name)
cdk.CfnOutput(stack, "Archives", value=endpoint.archive_url)

app.synth()
