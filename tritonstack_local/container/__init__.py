"""A container as SageMaker runs it: one real Triton, started from a container's environment, alone in its network."""

from tritonstack_local.container.container import ContainerFailedError, ContainerSettings, TritonContainer
from tritonstack_local.container.repository import TritonFiles, prepare_model_data

__all__ = ["ContainerFailedError", "ContainerSettings", "TritonContainer", "TritonFiles", "prepare_model_data"]
