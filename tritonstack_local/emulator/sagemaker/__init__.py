"""SageMaker's hosting API: models, endpoint configs, endpoints, their tags."""
