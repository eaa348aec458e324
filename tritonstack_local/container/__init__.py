"""A container as SageMaker runs it: one real Triton, started from a container's environment, alone in its network."""

from tritonstack_local.container.container import ContainerFailedError, ContainerSettings, TritonContainer
from tritonstack_local.container.repository import TritonFiles, prepare_model_data
from tritonstack_local.container.serve import ServeCommand, ServeExitError, serve_command

__all__ = [
    "ContainerFailedError",
    "ContainerSettings",
    "ServeCommand",
    "ServeExitError",
    "TritonContainer",
    "TritonFiles",
    "prepare_model_data",
    "serve_command",
]
