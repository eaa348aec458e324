"""Constructs for Triton on SageMaker, usable from any CDK app: one noun a file, keyword-only typed arguments."""
