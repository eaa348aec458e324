"""Prices of SageMaker's hosting from the AWS Price List: asked for, read with care, and kept in a project's file."""
