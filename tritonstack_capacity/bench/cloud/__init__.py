"""Load tests in the cloud: ``capacity bench`` in CodeBuild, and jobs of SageMaker Inference Recommender."""
