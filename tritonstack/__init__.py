"""NVIDIA Triton on Amazon SageMaker GPU endpoints as code; everything here works without the CDK."""

VERSION = "0.1.0"
"""As in pyproject.toml."""
