"""The first step: the bytes of PNG images → what the classifier was trained on."""

import numpy as np
import triton_python_backend_utils as pb_utils
from png import PngError, area_average, read_grey

SIDE = 8
INK = 16.0
"""The training images have 8 by 8 grey values from 0 to 16."""


class TritonPythonModel:
    """Called by Triton's Python backend with all requests of a batch at once."""

    def execute(self, requests):
        """``image`` BYTES [n, 1] → ``pixels`` FP32 [n, 64]; a bad image fails its own request alone."""
        return [self.answer(request) for request in requests]

    def answer(self, request):
        images = pb_utils.get_input_tensor_by_name(request, "image").as_numpy().reshape(-1)
        try:
            pixels = np.stack([to_pixels(image) for image in images])
        except PngError as error:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(f"input image: {error}"))
        return pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor("pixels", pixels)])


def to_pixels(image):
    """FP32 [64], row by row."""
    return (area_average(read_grey(bytes(image)), SIDE) * (INK / 255)).reshape(-1).astype(np.float32)
