"""Server metadata, model metadata, model configuration and the repository index, from what is known for certain.

A model's tensors and its ``config.pbtxt`` stand in the manifest beside its archive. InvokeEndpoint tells neither which
versions a model has nor any statistics, so neither is made up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tritonstack import VERSION
from tritonstack.archives.config_json import config_json
from tritonstack.archives.model_config import ModelConfig, read_config
from tritonstack.client.releases import Release

SERVER_NAME = "tritonstack-proxy"
EXTENSIONS = ("classification", "schedule_policy", "model_configuration", "binary_tensor_data", "parameters")
"""Those of Triton's that InvokeEndpoint carries. Without ``statistics`` perf_analyzer does not ask for any."""

STEPS = "tritonstack:ensemble_steps"
"""The configuration's parameter that names an ensemble's steps: they lie in its archive and have no address."""


def server_metadata() -> dict[str, Any]:
    """What this server is."""
    return {"name": SERVER_NAME, "version": VERSION, "extensions": list(EXTENSIONS)}


def model_metadata(manifest: Mapping[str, Any], *, name: str) -> dict[str, Any]:
    """A model's tensors. Raises KeyError, TypeError or ValueError for what is no manifest."""
    model = manifest["model"]
    config = addressed_config(manifest)
    platform = config.node.text("platform") or config.backend
    return {
        "name": name,
        "versions": [],  # InvokeEndpoint does not tell; each answer names its own
        "platform": platform,
        "inputs": [_tensor(tensor) for tensor in model["inputs"]],
        "outputs": [_tensor(tensor) for tensor in model["outputs"]],
    }


def model_config(manifest: Mapping[str, Any], *, name: str) -> dict[str, Any]:
    """A model's configuration as its archive has it, under the name that it is asked by.

    Without ``ensemble_scheduling``: clients that find it ask for each step by its name, and steps have none here. They
    are named in a parameter instead. Raises KeyError, TypeError or ValueError for what is no manifest.
    """
    config = addressed_config(manifest)
    found = {**config_json(config.node), "name": name}
    model = manifest["model"]
    found["input"] = found["input"] or [_described(tensor, model["max_batch_size"]) for tensor in model["inputs"]]
    found["output"] = found["output"] or [_described(tensor, model["max_batch_size"]) for tensor in model["outputs"]]
    found["backend"] = found["backend"] or config.backend
    if found.pop("ensemble_scheduling", None) is not None:
        steps = ", ".join(step.text("model_name") for step in config.steps)
        found["parameters"] = {**found["parameters"], STEPS: {"string_value": steps}}
    return found


def addressed_config(manifest: Mapping[str, Any]) -> ModelConfig:
    """The configuration of the model that requests reach. Raises KeyError for what is no manifest."""
    return read_config(manifest["configs"][manifest["model"]["name"]])


def repository_index(
    releases: Sequence[Release], *, unready: Callable[[Release], str], only_ready: bool
) -> list[dict[str, str]]:
    """Every current release by the name that reaches it.

    Args:
        releases: what the proxy serves.
        unready: why an endpoint cannot be called; empty where it can, as far as that is known.
        only_ready: leave out what cannot be called.
    """
    counts = Counter(release.model for release in releases)
    index = []
    for release in releases:
        reason = unready(release)
        if reason and only_ready:
            continue
        name = release.model if counts[release.model] == 1 else f"{release.endpoint}/{release.model}"
        state = "UNAVAILABLE" if reason else "READY"
        index.append({"name": name, "version": "", "state": state, "reason": reason})
    return index


def _tensor(tensor: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": tensor["name"], "datatype": tensor["datatype"], "shape": list(tensor["shape"])}


def _described(tensor: Mapping[str, Any], max_batch_size: int) -> dict[str, Any]:
    """A tensor as a configuration has it: without the batch dimension, with Triton's name of the type."""
    shape = list(tensor["shape"])
    kind = "STRING" if tensor["datatype"] == "BYTES" else tensor["datatype"]
    return {"name": tensor["name"], "data_type": f"TYPE_{kind}", "dims": shape[1:] if max_batch_size > 0 else shape}
