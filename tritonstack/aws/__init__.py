"""AWS without the CDK: sessions, read-only requests, and rules of IAM and SageMaker as pure functions."""
