"""Doubles what it is sent."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """What Triton's Python backend looks for."""

    def execute(self, requests):
        """An answer for each request."""
        return [self.answer(pb_utils.get_input_tensor_by_name(request, "x").as_numpy()) for request in requests]

    def answer(self, x):
        """Twice ``x``."""
        return pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor("y", x * 2)])
