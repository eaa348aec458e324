"""Write weights and PyTorch's outputs for TensorFlow. `tritonstack build` runs this in the environment ``torch``."""

import sys
from functools import partial

from tensors import GRAPH

from _exporters import inception, script

if __name__ == "__main__":
    sys.exit(script.run(partial(inception.to_weights, graph=GRAPH)))
