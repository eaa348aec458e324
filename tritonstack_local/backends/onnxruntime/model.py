"""Stand-in for Triton's onnxruntime backend: the model's ONNX graph, run on the CPU."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

from tritonstack_onnx import OnnxModel


class TritonPythonModel(OnnxModel):
    """``platform: "onnxruntime_onnx"`` or ``backend: "onnxruntime"``."""

    def initialize(self, args):
        """Load ``model.onnx`` (or ``default_model_filename``) of the version's folder."""
        self.load(args, lambda settings: settings.model_file("model.onnx"), "onnxruntime")
