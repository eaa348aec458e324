"""SageMaker's model packages and Inference Recommender, whose figures are constructed: nothing is measured here."""
