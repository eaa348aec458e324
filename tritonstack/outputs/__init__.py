"""What an environment tells other pipelines, by a contract with a version: see ``docs/outputs.md``."""
