"""The offline linter of model folders: what Triton or SageMaker would refuse, or serve otherwise than meant."""

from tritonstack.lint.checks import lint_folder, lint_repository, refuse_errors
from tritonstack.lint.instances import lint_endpoint
from tritonstack.lint.registry import Finding
from tritonstack.lint.release import lint_release
from tritonstack.lint.view import ServingTarget

__all__ = [
    "Finding",
    "ServingTarget",
    "lint_endpoint",
    "lint_folder",
    "lint_release",
    "lint_repository",
    "refuse_errors",
]
