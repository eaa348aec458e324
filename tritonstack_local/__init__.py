"""A local AWS that the real CDK command line deploys to, with a real Triton behind every endpoint."""

ACCOUNT = "123456789012"
REGION = "us-east-1"
