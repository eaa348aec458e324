"""Stand-in for Triton's pytorch backend: the model's TorchScript, run by PyTorch on the CPU.

TRITONSTACK_TORCH_DEVICE may name another device (``cuda``), as ``python -m benchmarks.measurements --gpu`` does.
Names and parameters as ``src/libtorch.cc`` of triton-inference-server/pytorch_backend reads them.
"""

import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

import numpy as np
import triton_python_backend_utils as pb_utils
from tritonstack_model import BatchingModel, ModelSettings, RequestError, import_from

torch = import_from("TRITONSTACK_TORCH_SITE", "torch", "torch")

DEVICE = os.environ.get("TRITONSTACK_TORCH_DEVICE", "cpu")
PLACE = "the CPU" if DEVICE == "cpu" else DEVICE
INDEXED = re.compile(r".*__(\d+)$")
GPU_PARAMETERS = ("ENABLE_WEIGHT_SHARING", "ENABLE_CACHE_CLEANING", "ENABLE_NVFUSER", "DISABLE_CUDNN")


class TritonPythonModel(BatchingModel):
    """``platform: "pytorch_libtorch"`` or ``backend: "pytorch"``."""

    def initialize(self, args):
        """Load ``model.pt`` (or ``default_model_filename``) of the version's folder.

        Raises TritonModelException: no such file, no TorchScript in it, or names without a position.
        """
        self.settings = settings = ModelSettings(args)
        path = settings.model_file("model.pt")
        torch.set_num_threads(settings.number("INTRA_OP_THREAD_COUNT", 0) or max(1, (os.cpu_count() or 2) // 2))
        try:
            self.module = torch.jit.load(str(path), map_location=DEVICE).eval()
        except (RuntimeError, ValueError) as error:
            raise pb_utils.TritonModelException(f"PyTorch cannot load '{path.name}': {error}") from error
        self.order = self._input_order()
        self.positions = _positions(list(settings.outputs))
        settings.stand_in(f"backend pytorch runs {path.name} with PyTorch {torch.__version__} on {PLACE}")
        for name in GPU_PARAMETERS:
            if name in settings.parameters:
                settings.log(f"tritonstack: {name} is for a GPU and is ignored on the CPU")

    def _input_order(self):
        """The configured inputs in the order of ``forward``'s arguments: by argument, ``NAME__INDEX``, or as given."""
        names = list(self.settings.inputs)
        arguments = [one.name for one in self.module.forward.schema.arguments][1:]
        if len(names) > len(arguments):
            raise pb_utils.TritonModelException(
                f"unable to load model '{self.settings.name}': configuration expects {len(names)} inputs, "
                f"model provides at most {len(arguments)}: {', '.join(arguments)}"
            )
        if set(names) <= set(arguments):
            return sorted(names, key=arguments.index)
        positions = _positions(names)
        return sorted(names, key=positions.get)

    def run(self, inputs, outputs):
        """One call of the module. Raises RequestError with PyTorch's message."""
        tensors = []
        for name in self.order:
            if name not in inputs:
                raise RequestError(f"input '{name}' is missing")
            if inputs[name].dtype == np.object_:
                raise RequestError(f"input '{name}' is BYTES, which the CPU stand-in for pytorch does not take")
            tensors.append(torch.from_numpy(np.ascontiguousarray(inputs[name]).copy()).to(DEVICE))
        try:
            with torch.inference_mode():
                result = self.module(*tensors)
        except (RuntimeError, ValueError, torch.jit.Error) as error:
            raise RequestError(f"PyTorch: {error}") from error
        return {name: self._output(result, name) for name in outputs}

    def _output(self, result, name):
        """The output called ``name``: by key of a dictionary, or by position."""
        if isinstance(result, dict):
            if name not in result:
                raise RequestError(f"output '{name}' is not among the model's: {', '.join(map(str, result))}")
            return result[name].cpu().numpy()
        results = [result] if isinstance(result, torch.Tensor) else list(result)
        position = self.positions[name]
        if position >= len(results):
            raise RequestError(f"output '{name}' has position {position}, the model gives {len(results)} outputs")
        return results[position].cpu().numpy()


def _positions(names):
    """Name → position: the number in ``NAME__INDEX`` where every name has one, else the configuration's order."""
    matches = [INDEXED.match(name) for name in names]
    if all(matches):
        return {name: int(match[1]) for name, match in zip(names, matches, strict=True)}
    return {name: index for index, name in enumerate(names)}
