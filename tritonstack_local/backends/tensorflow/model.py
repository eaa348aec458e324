"""Stand-in for Triton's tensorflow backend: the model's frozen GraphDef, run by TensorFlow on the CPU.

Checks and parameters as ``src/tensorflow.cc`` and ``src/tensorflow_backend_tf.cc`` of
triton-inference-server/tensorflow_backend have them. A GraphDef names neither its inputs and outputs nor their shapes,
so nothing is completed in a configuration, as in the real backend.

Memory: a process of its own runs this and ends when the model is unloaded. The real backend frees GPU memory only
when the server itself ends (its README, "How does the TensorFlow backend manage GPU memory?").
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

import numpy as np
import triton_python_backend_utils as pb_utils
from tritonstack_model import BatchingModel, ModelSettings, RequestError, import_from

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # read when TensorFlow is imported
# First: its protobuf is older than the one that ONNX Runtime brings.
tf = import_from("TRITONSTACK_TENSORFLOW_SITE", "tensorflow", "tensorflow", first=True)
from google.protobuf.message import DecodeError  # noqa: E402  of TensorFlow's environment

GRAPHDEF = "tensorflow_graphdef"
INITIAL_OPERATIONS = "TF_INIT_OPS_FILE"
IGNORED_PARAMETERS = ("TF_USE_PER_SESSION_THREADS", "MAX_SESSION_SHARE_COUNT")
SHOWN_OUTPUTS = 10
"""How many nodes a message names: every node of a graph could be an output."""


class TritonPythonModel(BatchingModel):
    """``platform: "tensorflow_graphdef"``."""

    def initialize(self, args):
        """Load ``model.graphdef`` (or ``default_model_filename``) of the version's folder.

        Raises TritonModelException: another platform, no such file, no GraphDef in it, or a tensor that it does not
        have.
        """
        self.settings = settings = ModelSettings(args)
        self._check_settings()
        path = settings.model_file("model.graphdef")
        definition = _read(path)
        self._check_tensors(definition)
        graph = tf.Graph()
        try:
            with graph.as_default():
                tf.import_graph_def(definition, name="")
        except (ValueError, tf.errors.OpError) as error:
            raise pb_utils.TritonModelException(f"TensorFlow cannot load '{path.name}': {error}") from error
        self.types = {name: graph.get_tensor_by_name(_tensor(name)).dtype for name in settings.inputs}
        self.session = tf.compat.v1.Session(graph=graph, config=self._options())
        settings.stand_in(f"backend tensorflow runs {path.name} with TensorFlow {tf.__version__} on the CPU")
        self._say_what_is_ignored()

    def _check_settings(self):
        platform = self.settings.config.get("platform") or GRAPHDEF
        asked = [f"platform {platform}"] if platform != GRAPHDEF else []
        asked += [f"parameter {INITIAL_OPERATIONS}"] if INITIAL_OPERATIONS in self.settings.parameters else []
        if asked:
            raise pb_utils.TritonModelException(
                f"model '{self.settings.name}' has {' and '.join(asked)}: the CPU stand-in for tensorflow runs a "
                f"frozen GraphDef alone (platform {GRAPHDEF})"
            )

    def _check_tensors(self, definition):
        """Any placeholder may be an input, any other node an output: as the real backend takes it."""
        settings = self.settings
        placeholders = [node.name for node in definition.node if node.op == "Placeholder"]
        others = [node.name for node in definition.node if node.op != "Placeholder"]
        problems = []
        if len(settings.inputs) > len(placeholders):
            problems.append(
                f"configuration expects {len(settings.inputs)} inputs, model provides at most {len(placeholders)}"
            )
        for kind, configured, possible in (
            ("input", settings.inputs, placeholders),
            ("output", settings.outputs, others),
        ):
            shown = possible if kind == "input" else possible[-SHOWN_OUTPUTS:]
            last = "" if len(shown) == len(possible) else f", the last of {len(possible)}"
            problems += [
                f"unexpected inference {kind} '{name}', allowed {kind}s are: {', '.join(shown)}{last}"
                for name in configured
                if name not in possible
            ]
        if problems:
            raise pb_utils.TritonModelException(f"unable to load model '{settings.name}': {'; '.join(problems)}")

    def _options(self):
        """Threads default to half the cores: several models share this machine. The real backend's default is all."""
        half = max(1, (os.cpu_count() or 2) // 2)
        return tf.compat.v1.ConfigProto(
            intra_op_parallelism_threads=self.settings.number("TF_NUM_INTRA_THREADS", 0) or half,
            inter_op_parallelism_threads=self.settings.number("TF_NUM_INTER_THREADS", 0) or 1,
            use_per_session_threads=True,
            allow_soft_placement=True,
        )

    def _say_what_is_ignored(self):
        accelerators = self.settings.config.get("optimization", {}).get("execution_accelerators", {})
        found = [name for name in IGNORED_PARAMETERS if name in self.settings.parameters]
        found += [one.get("name", "") for one in accelerators.get("gpu_execution_accelerator", [])]
        for name in found:
            self.settings.log(f"tritonstack: {name} has no effect on the CPU")

    def run(self, inputs, outputs):
        """Run the graph once, for the requested outputs. Raises RequestError with TensorFlow's message."""
        fed = {}
        for name, wanted in self.types.items():
            if name not in inputs:
                raise RequestError(f"input '{name}' is missing")
            array = inputs[name]
            # A session would convert the values; the real backend hands TensorFlow the bytes with their type.
            if array.dtype != np.object_ and tf.as_dtype(array.dtype) != wanted:
                raise RequestError(f"TensorFlow: input '{name}' is {array.dtype}, the graph takes {wanted.name}")
            fed[_tensor(name)] = array
        try:
            return self.session.run({name: _tensor(name) for name in outputs}, fed)
        except (tf.errors.OpError, ValueError, TypeError) as error:
            raise RequestError(f"TensorFlow: {_reason(str(error))}") from error

    def finalize(self):
        """Give the session's memory back."""
        self.session.close()


def _tensor(name):
    """The tensor of a name in a configuration: a node's first result, unless the name has an index."""
    return name if ":" in name else f"{name}:0"


def _reason(message):
    """TensorFlow's message in one line: of a failed node, what follows its name between two traces."""
    lines = message.splitlines() or [""]
    named = [place for place, line in enumerate(lines[:-1]) if line.startswith("Node: ")]
    return lines[named[0] + 1] if named else lines[0]


def _read(path):
    definition = tf.compat.v1.GraphDef()
    try:
        definition.ParseFromString(path.read_bytes())
    except (OSError, DecodeError) as error:
        raise pb_utils.TritonModelException(f"TensorFlow cannot load '{path.name}': no GraphDef: {error}") from error
    if not definition.node:
        raise pb_utils.TritonModelException(f"model '{path.name}' has an empty network")
    return definition
