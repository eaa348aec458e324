"""The backend `linear`: a linear model whose coefficients are JSON, `coefficients.json` of the version's folder.

A Python-based backend: Triton runs this file with its Python backend for each model that has `backend: "linear"`, and
the model has only its data.
"""

import json
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """One instance of a model."""

    def initialize(self, args):
        """Read the coefficients."""
        version = Path(args["model_repository"]) / args["model_version"]
        given = json.loads((version / "coefficients.json").read_text())
        self.weights = np.asarray(given["weights"], dtype=np.float32)
        self.intercept = np.float32(given["intercept"])

    def execute(self, requests):
        """A response for each request."""
        return [self.respond(pb_utils.get_input_tensor_by_name(request, "X").as_numpy()) for request in requests]

    def respond(self, rows):
        """The weighted sum of each row."""
        predicted = (rows @ self.weights + self.intercept)[:, np.newaxis]
        return pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor("prediction", predicted)])
