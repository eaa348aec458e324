"""NVIDIA Triton on Amazon SageMaker GPU endpoints as code; everything here works without the CDK."""
