"""Outputs of an environment for other pipelines, by a contract with a version: ``docs/outputs.md``."""
