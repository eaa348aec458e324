"""Names, commands and bootstrap of the pipeline, without the CDK."""
