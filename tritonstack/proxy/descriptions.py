"""Metadata, configuration and readiness of models, from manifests and endpoint states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack import VERSION
from tritonstack.models.model_config import ModelConfig, config_json, read_config
from tritonstack.naming import ArchiveName

CALLABLE = frozenset({"InService", "Updating", "SystemUpdating", "RollingBack", "UpdateRollbackFailed"})
"""Endpoint states in which a fleet responds (botocore's service model of sagemaker: DescribeEndpoint)."""


def unready(sagemaker: Any, name: str) -> str:
    """Why an endpoint cannot be called; empty where it can, or where its state cannot be read.

    ``sagemaker``: the boto3 client. ``name``: the endpoint's at SageMaker.
    """
    try:
        status = str(sagemaker.describe_endpoint(EndpointName=name)["EndpointStatus"])
    except ClientError as error:
        missing = "Could not find" in str(error.response.get("Error", {}).get("Message", ""))
        return f"there is no endpoint {name}" if missing else ""
    except BotoCoreError:
        return ""
    return "" if status in CALLABLE else f"endpoint {name} is {status}"


# InvokeEndpoint reports neither the versions of a model nor statistics, so neither is described.


EXTENSIONS = ("classification", "schedule_policy", "model_configuration", "binary_tensor_data", "parameters")
"""Triton's extensions that InvokeEndpoint carries. Without ``statistics`` perf_analyzer requests none."""
SERVER_METADATA = {"name": "tritonstack-proxy", "version": VERSION, "extensions": EXTENSIONS}


@dataclass(frozen=True, kw_only=True)
class Described:
    """A model to describe."""

    manifest: Mapping[str, Any]  # of its archive
    name: str  # ``[endpoint/]model`` as the client spells it
    step: str = ""  # directory of an ensemble's step in the archive; empty for the model itself

    @property
    def address(self) -> str:
        """Its name in the description."""
        return step_address(self.name, self.step) if self.step else self.name

    def config(self) -> ModelConfig:
        """Its ``config.pbtxt``. Raises KeyError where the archive has none, or the manifest is none."""
        return read_config(self.manifest["configs"][self.step or self.manifest["model"]["name"]])

    def tensors(self, kind: str) -> list[Mapping[str, Any]]:
        """Its ``inputs`` or ``outputs`` as requests have them: name, KServe's datatype, shape."""
        if not self.step:
            return list(self.manifest["model"][kind])
        config = self.config()
        tensors = config.inputs if kind == "inputs" else config.outputs
        return [
            {"name": one.name, "datatype": one.data_type, "shape": one.shape(config.max_batch_size)} for one in tensors
        ]


def step_address(ensemble: str, step: str) -> str:
    """The name of an ensemble's step in descriptions; no model's name has a full stop."""
    return f"{ensemble}.{step}"


def split_address(name: str) -> tuple[str, str]:
    """Model and step of a name; the step is empty for a model or an archive."""
    endpoint, slash, rest = name.rpartition("/")
    model, _, step = rest.partition(".")
    if not step or ArchiveName.parse(rest) is not None:
        return name, ""
    return f"{endpoint}{slash}{model}", step


def model_metadata(model: Described) -> dict[str, Any]:
    """A model's tensors. Raises KeyError, TypeError or ValueError for what is no manifest."""
    config = model.config()
    return {
        "name": model.address,
        "versions": [],  # InvokeEndpoint does not report them; each response names its own
        "platform": config.node.text("platform") or config.backend,
        "inputs": [_tensor(tensor) for tensor in model.tensors("inputs")],
        "outputs": [_tensor(tensor) for tensor in model.tensors("outputs")],
    }


def model_config(model: Described) -> dict[str, Any]:
    """A model's configuration in its archive, under the requested name.

    An ensemble's steps are in its archive and cannot be called. Clients such as perf_analyzer request their
    configurations by the names given here, so these are ``<ensemble>.<step>``.

    Raises KeyError, TypeError or ValueError for what is no manifest.
    """
    config = model.config()
    found = {**config_json(config.node), "name": model.address}
    for field, kind in (("input", "inputs"), ("output", "outputs")):
        found[field] = found[field] or [_described(one, config.max_batch_size) for one in model.tensors(kind)]
    found["backend"] = found["backend"] or ("" if config.is_ensemble else config.backend)
    for step in found.get("ensemble_scheduling", {}).get("step", ()):
        step["model_name"] = step_address(model.name, step["model_name"])
    return found


def _tensor(tensor: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": tensor["name"], "datatype": tensor["datatype"], "shape": list(tensor["shape"])}


def _described(tensor: Mapping[str, Any], max_batch_size: int) -> dict[str, Any]:
    """A tensor as a configuration has it: without the batch dimension, with Triton's name of the type."""
    shape = list(tensor["shape"])
    kind = "STRING" if tensor["datatype"] == "BYTES" else tensor["datatype"]
    return {"name": tensor["name"], "data_type": f"TYPE_{kind}", "dims": shape[1:] if max_batch_size > 0 else shape}
