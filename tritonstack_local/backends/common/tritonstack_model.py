"""Shared by the CPU stand-ins: a model's configuration as a backend reads it, the responses to a batch of requests.

Runs inside Triton's Python backend: NumPy and ``triton_python_backend_utils`` only.
"""

import importlib
import itertools
import json
import os
import sys
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils

NUMPY_OF = pb_utils.TRITON_STRING_TO_NUMPY


def import_from(variable, module, environment, *, first=False):
    """A library that has an environment of its own, made only where it is wanted.

    Raises TritonModelException: it is not installed; with the command that installs it.

    Args:
        variable: the environment variable that names its ``site-packages`` folder.
        module: the module to import.
        environment: what ``scripts/setup.py`` calls the environment.
        first: whether what it needs is taken from there before what the backends' environment has under the same name.
            NumPy is imported already, and stays the backends'.
    """
    site = os.environ.get(variable, "")
    if not Path(site, *module.split(".")).is_dir():
        raise pb_utils.TritonModelException(
            f"the CPU stand-in needs {module}, which is not installed: python3 scripts/setup.py {environment}, "
            f"or with the wheel: tritonstack setup {environment}"
        )
    sys.path.insert(0 if first else len(sys.path), site)
    return importlib.import_module(module)


class ModelSettings:
    """A model's ``config.pbtxt``, as Triton hands it to a backend.

    Attributes:
        name: the model's name.
        folder: the model's folder; ``version_folder`` the version's.
        inputs, outputs: tensor name → its configuration (``data_type``, ``dims``, …).
        max_batch_size: 0 where arrays have no batch dimension.
        parameters: key → string value.
        first_instance: whether this is the first of the model's instances, which logs for all of them.
    """

    def __init__(self, args):
        """``args`` as ``initialize`` receives them."""
        self.config = json.loads(args["model_config"])
        self.name = args["model_name"]
        self.folder = Path(args["model_repository"])
        self.version_folder = self.folder / str(args["model_version"])
        self.inputs = {one["name"]: one for one in self.config.get("input", [])}
        self.outputs = {one["name"]: one for one in self.config.get("output", [])}
        self.max_batch_size = int(self.config.get("max_batch_size", 0))
        self.parameters = {
            key: value.get("string_value", "") for key, value in self.config.get("parameters", {}).items()
        }
        self.first_instance = args.get("model_instance_name", "_0_0").endswith("_0_0")

    def log(self, line):
        """Write a line of this model to the server's log, whatever its log settings; only the first instance writes."""
        if self.first_instance:
            sys.stdout.write(f"{line} (model {self.name})\n")
            sys.stdout.flush()

    def stand_in(self, line):
        """Log line that names a stand-in; `tritonstack local status` shows it."""
        self.log(f"tritonstack stand-in: {line}")

    def number(self, key, default):
        """A parameter as a whole number. Raises TritonModelException: it is none."""
        text = self.parameters.get(key)
        if text is None:
            return default
        try:
            return int(text)
        except ValueError:
            raise pb_utils.TritonModelException(
                f"parameter '{key}' of model '{self.name}' is {text!r}, a whole number is allowed"
            ) from None

    def model_file(self, default):
        """The model's file: ``default_model_filename`` or ``default``, in the version's folder.

        Raises TritonModelException: it does not exist.
        """
        path = self.version_folder / (self.config.get("default_model_filename") or default)
        if not path.exists():
            found = sorted(entry.name for entry in self.version_folder.iterdir()) or ["nothing"]
            raise pb_utils.TritonModelException(
                f"unable to find '{path}' for model '{self.name}'; found in that folder: {', '.join(found)}"
            )
        return path


class BatchingModel:
    """A backend whose requests are arrays in and arrays out.

    A subclass sets ``settings`` in ``initialize`` and has ``run(inputs, outputs)``: arrays by name, and the names of
    the outputs to compute → arrays by name. It raises RequestError for what is wrong with the arrays.
    """

    convert = False
    """Whether numeric arrays of another type than the configuration's are converted, or are an error."""

    def execute(self, requests):
        """Respond to a batch of requests: one run for those that agree in shape. Returns a response for each."""
        asked = [set(request.requested_output_names()) for request in requests]
        outputs = [name for name in self.settings.outputs if any(name in names for names in asked)]
        inputs = [{tensor.name(): tensor.as_numpy() for tensor in request.inputs()} for request in requests]
        results = self.run_all(inputs, outputs)
        return [self._response(result, names) for result, names in zip(results, asked, strict=True)]

    def run_all(self, requests, outputs):
        """For each request's inputs its outputs, or the RequestError."""
        return run_together(
            requests, lambda inputs: self.run(inputs, outputs), batched=self.settings.max_batch_size > 0
        )

    def _response(self, result, asked):
        try:
            if isinstance(result, RequestError):
                raise result
            tensors = [self._tensor(name, array) for name, array in result.items() if name in asked]
        except RequestError as error:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(f"{self.settings.name}: {error}"))
        return pb_utils.InferenceResponse(output_tensors=tensors)

    def _tensor(self, name, array):
        configured = self.settings.outputs[name]["data_type"]
        wanted = NUMPY_OF[configured]
        if array.dtype != wanted and (wanted is not np.object_ or array.dtype.kind not in "OSU"):
            if not self.convert:
                raise RequestError(f"output '{name}' is configured as {configured}, the model gives {array.dtype}")
            array = array.astype(wanted)
        return pb_utils.Tensor(name, np.ascontiguousarray(array))


# --- A batch of requests becomes as few runs as their shapes allow; each request gets its own results ---


class RequestError(Exception):
    """An error of one request; the others of its batch are not affected."""


def grouped(requests, *, batched):
    """Requests that may be one run: the same inputs, with equal types and shapes beyond the batch dimension."""
    if not batched:
        return [[index] for index in range(len(requests))]
    groups = {}
    for index, inputs in enumerate(requests):
        key = tuple(sorted((name, array.dtype.str, array.shape[1:]) for name, array in inputs.items()))
        groups.setdefault(key, []).append(index)
    return list(groups.values())


def run_together(requests, run, *, batched):
    """Run all requests, each group as one run.

    Where the run of a group fails, its requests run one by one, so that only those that fail get the error.
    """
    results = [None] * len(requests)
    for group in grouped(requests, batched=batched):
        members = [requests[index] for index in group]
        try:
            outcome = _run_group(members, run) if len(members) > 1 else [run(members[0])]
        except RequestError as error:
            outcome = [error] if len(members) == 1 else [_run_alone(member, run) for member in members]
        for index, outputs in zip(group, outcome, strict=True):
            results[index] = outputs
    return results


def _run_alone(inputs, run):
    try:
        return run(inputs)
    except RequestError as error:
        return error


def _run_group(members, run):
    """One run for several requests. Returns the outputs of each."""
    sizes = [len(next(iter(inputs.values()))) for inputs in members]
    joined = {name: np.concatenate([inputs[name] for inputs in members]) for name in members[0]}
    outputs = run(joined)
    ends = list(itertools.accumulate(sizes))
    for name, array in outputs.items():
        if array.ndim == 0 or len(array) != ends[-1]:
            raise RequestError(
                f"output '{name}' has shape {list(array.shape)} for a batch of {ends[-1]}: "
                "its first dimension must be the batch, since max_batch_size is not 0"
            )
    parts = {name: np.split(array, ends[:-1]) for name, array in outputs.items()}
    return [{name: parts[name][index] for name in outputs} for index in range(len(members))]
