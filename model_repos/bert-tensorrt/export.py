"""Export BERT base to the ONNX graph that a TensorRT engine is built from, and prove it.

`tritonstack build` runs this in the environment ``torch``.
"""

import sys
from functools import partial
from pathlib import Path

from _exporters import encoders, script

TEXT = Path(__file__).with_name("sample") / "text.txt"

if __name__ == "__main__":
    sys.exit(script.run(partial(encoders.to_onnx, family=encoders.BERT, path="bert-tensorrt/1/model.onnx", text=TEXT)))
