"""Export RoBERTa large to ONNX and prove it. `tritonstack build` runs this in the environment ``torch``."""

import sys
from functools import partial
from pathlib import Path

from _exporters import encoders, script

PATH = "roberta-large-onnx/1/model.onnx"
TEXT = Path(__file__).with_name("sample") / "text.txt"
AXES = {"sequence": (16, 200)}  # the sample is proved at the length that requests have

if __name__ == "__main__":
    sys.exit(script.run(partial(encoders.to_onnx, family=encoders.ROBERTA, path=PATH, text=TEXT, axes=AXES)))
