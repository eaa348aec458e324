"""Export the ONNX graph of ResNet-50 that its TensorRT engine is built from, and prove it. Runs in ``torch``."""

import sys
from functools import partial

from _exporters import resnet, script

if __name__ == "__main__":
    sys.exit(script.run(partial(resnet.to_onnx, path="resnet50-tensorrt/1/model.onnx")))
