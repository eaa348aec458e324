"""Export Inception V3 to ONNX and prove it. `tritonstack build` runs this in the environment ``torch``."""

import sys
from functools import partial

from _exporters import inception, script

if __name__ == "__main__":
    sys.exit(script.run(partial(inception.to_onnx, path="inception-v3/1/model.onnx")))
