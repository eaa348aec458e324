"""A local AWS that the real CDK command line deploys to, with a real Triton behind every endpoint."""

ACCOUNT = "123456789012"
REGION = "us-east-1"
IAM_RECORDS = "TRITONSTACK_IAM_RECORDS"
"""Variable: a folder in which each emulator leaves, when it ends, what was used of permissions and what was denied."""
