"""Export ResNet-50 to ONNX and prove it. `tritonstack build` runs this in the environment ``torch``."""

import sys
from functools import partial

from _exporters import resnet, script

if __name__ == "__main__":
    sys.exit(script.run(partial(resnet.to_onnx, path="resnet50-onnx/1/model.onnx")))
