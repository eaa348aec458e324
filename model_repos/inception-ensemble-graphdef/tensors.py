"""The GraphDef's input and output, as config.pbtxt names them: TF-Slim's own names."""

from _exporters.inception_layout import CLASSES, SIDE
from _exporters.script import Graph, Tensor

INPUT = "input"
PROBABILITIES = "InceptionV3/Predictions/Softmax"
GRAPH = Graph(
    opset=0,  # of ONNX, which this is not
    inputs=(Tensor(INPUT, "FP32", ("batch", SIDE, SIDE, 3)),),
    outputs=(Tensor(PROBABILITIES, "FP32", ("batch", CLASSES)),),
)
