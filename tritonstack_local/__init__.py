"""A local AWS that the real CDK command line deploys to, with a real Triton behind every endpoint."""

ACCOUNT = "123456789012"
REGION = "us-east-1"
IAM_RECORDS = "TRITONSTACK_IAM_RECORDS"
"""Variable: a folder in which each emulator leaves, when it ends, what was used of permissions and what was denied."""
NO_MODEL_DATA = (
    'Failed to download model data for container "container_1" from URL: "{}". Please ensure that there is an object '
    "located at the URL and that the role passed to CreateModel has permissions to download the object."
)
"""FailureReason of an endpoint whose archive is not there, or may not be read (mlflow issue 2573)."""
