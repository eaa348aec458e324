"""Export ResNet-50 to TorchScript and prove it. `tritonstack build` runs this in the environment ``torch``."""

import sys
from functools import partial

from _exporters import resnet, script

PATH = "resnet50-torchscript/1/model.pt"
# TorchScript has no names: Triton's pytorch backend takes a tensor's position from the end of its name.
GRAPH = resnet.graph_of("INPUT__0", "OUTPUT__0")

if __name__ == "__main__":
    sys.exit(script.run(partial(resnet.to_torchscript, path=PATH, graph=GRAPH)))
