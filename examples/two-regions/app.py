"""The same models in two regions: two stacks, an endpoint each, under one name."""

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from constructs_lib import MultiModelEndpoint


class Recommender(cdk.Stack):
    """A bucket of archives and the endpoint over it: SageMaker takes archives from its own region alone."""

    def __init__(self, scope: Construct, *, region: str, instances: int) -> None:
        env = cdk.Environment(account="123456789012", region=region)
        super().__init__(scope, f"recommender-{region}", env=env)
        bucket = s3.Bucket(self, "Bucket", enforce_ssl=True, removal_policy=cdk.RemovalPolicy.DESTROY)
        endpoint = MultiModelEndpoint(
            self,
            "Models",
            endpoint_name="recommender",
            bucket=bucket,
            release="26.05",  # what `tritonstack add` gives a new endpoint: docs/decisions/0030
            instance_type="ml.g5.xlarge",
            initial_instance_count=instances,
        )
        endpoint.grant_invoke(iam.Role(self, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com")))
        cdk.CfnOutput(self, "Archives", value=endpoint.archive_url)


app = cdk.App()
Recommender(app, region="us-east-1", instances=2)
Recommender(app, region="eu-west-1", instances=1)
app.synth()
