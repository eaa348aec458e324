"""An ONNX graph run by ONNX Runtime on the CPU, for the stand-ins of Triton's onnxruntime and tensorrt backends.

Parameters are those that the real backend reads: ``src/onnxruntime.cc`` of triton-inference-server/onnxruntime_backend.
"""

import os
from pathlib import Path

import numpy as np
import onnxruntime
import triton_python_backend_utils as pb_utils
from onnxruntime.capi import onnxruntime_pybind11_state as native
from tritonstack_batching import RequestError
from tritonstack_marked_plan import is_marked, read_graph
from tritonstack_model import NUMPY_OF, BatchingModel, ModelSettings

TRITON_TYPE_OF = {
    "tensor(bool)": "TYPE_BOOL",
    "tensor(uint8)": "TYPE_UINT8",
    "tensor(uint16)": "TYPE_UINT16",
    "tensor(uint32)": "TYPE_UINT32",
    "tensor(uint64)": "TYPE_UINT64",
    "tensor(int8)": "TYPE_INT8",
    "tensor(int16)": "TYPE_INT16",
    "tensor(int32)": "TYPE_INT32",
    "tensor(int64)": "TYPE_INT64",
    "tensor(float16)": "TYPE_FP16",
    "tensor(bfloat16)": "TYPE_BF16",
    "tensor(float)": "TYPE_FP32",
    "tensor(double)": "TYPE_FP64",
    "tensor(string)": "TYPE_STRING",
}
GPU_PARAMETERS = (
    "cudnn_conv_algo_search",
    "arena_extend_strategy",
    "gpu_mem_limit",
    "do_copy_in_default_stream",
    "session.use_device_allocator_for_initializers",
    "memory.enable_memory_arena_shrinkage",
)
DEFAULT_MAX_BATCH_SIZE = 4
"""The real backend's ``default-max-batch-size``."""

FAILURES = (
    native.Fail,
    native.InvalidArgument,
    native.RuntimeException,
    native.NotImplemented,
    native.EPFail,
    ValueError,
    TypeError,
)
"""What a run raises for arrays that do not suit the graph."""


def session_options(settings):
    """ONNX Runtime's options for a model's ``parameters`` and ``optimization``.

    Threads default to half the cores, without spinning: several models share this machine with the rest of the local
    AWS. The real backend's default is every core.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = settings.number("intra_op_thread_count", 0) or max(1, (os.cpu_count() or 2) // 2)
    options.inter_op_num_threads = settings.number("inter_op_thread_count", 0) or 1
    if settings.number("execution_mode", 0) == 1:
        options.execution_mode = onnxruntime.ExecutionMode.ORT_PARALLEL
    options.enable_cpu_mem_arena = bool(settings.number("enable_mem_arena", 1))
    options.enable_mem_pattern = bool(settings.number("enable_mem_pattern", 1))
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    level = int(settings.config.get("optimization", {}).get("graph", {}).get("level", 0))
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = {
        -1: levels.ORT_ENABLE_BASIC,
        1: levels.ORT_ENABLE_EXTENDED,
        2: levels.ORT_DISABLE_ALL,
    }.get(level, levels.ORT_ENABLE_ALL)
    options.log_severity_level = 3
    return options


def ignored(settings):
    """What the configuration asks of a GPU, by name."""
    found = [name for name in GPU_PARAMETERS if name in settings.parameters]
    optimization = settings.config.get("optimization", {})
    if optimization.get("cuda"):
        found.append("optimization.cuda")
    accelerators = optimization.get("execution_accelerators", {})
    for place in ("gpu_execution_accelerator", "cpu_execution_accelerator"):
        found += [f"{place} {one.get('name', '')}" for one in accelerators.get(place, [])]
    if any(group.get("profile") for group in settings.config.get("instance_group", [])):
        found.append("instance_group.profile")
    return found


def check_tensors(settings, graph_inputs, graph_outputs, *, convert):
    """Compare the configuration with the graph.

    Args:
        settings: the model's settings.
        graph_inputs, graph_outputs: name → ONNX Runtime's description (``type``, ``shape``).
        convert: allow numeric types to differ; the arrays are then converted.

    Raises:
        TritonModelException: every difference at once.
    """
    problems = []
    required = [name for name, one in settings.inputs.items() if not one.get("optional")]
    missing = [name for name in graph_inputs if name not in settings.inputs]
    if missing and len(settings.inputs) < len(graph_inputs):
        problems.append(
            f"configuration expects {len(settings.inputs)} inputs, model provides {len(graph_inputs)}: "
            f"missing in the configuration: {', '.join(missing)}"
        )
    for kind, configured, provided in (
        ("input", settings.inputs, graph_inputs),
        ("output", settings.outputs, graph_outputs),
    ):
        for name, one in configured.items():
            if name not in provided:
                problems.append(f"unexpected inference {kind} '{name}', allowed {kind}s are: {', '.join(provided)}")
            else:
                problems += _tensor_problems(settings, kind, one, provided[name], convert=convert)
    if not required and settings.inputs:
        problems.append("every input is optional, at least one must be given")
    if problems:
        raise pb_utils.TritonModelException(f"unable to load model '{settings.name}': " + "; ".join(problems))


def _tensor_problems(settings, kind, configured, provided, *, convert):
    name, wanted = configured["name"], configured["data_type"]
    given = TRITON_TYPE_OF.get(provided.type, provided.type)
    if wanted == "TYPE_BF16" or given == "TYPE_BF16":
        yield f"{kind} '{name}' is TYPE_BF16, which the CPU stand-in does not run"
    elif wanted != given and not (convert and "TYPE_STRING" not in (wanted, given) and given in NUMPY_OF):
        yield f"configuration expects datatype {wanted} for {kind} '{name}', model provides {given}"
    shape = [size if isinstance(size, int) else -1 for size in provided.shape]
    if settings.max_batch_size > 0 and (not shape or shape[0] not in (-1,)):
        yield (
            f"{kind} '{name}' has shape {shape} in the model: its first dimension must be variable for "
            f"max_batch_size {settings.max_batch_size}"
        )
        return
    dims = [int(size) for size in configured.get("reshape", {}).get("shape", configured.get("dims", []))]
    expected = ([-1] if settings.max_batch_size > 0 else []) + dims
    if len(expected) != len(shape) or any(a != b and -1 not in (a, b) for a, b in zip(expected, shape, strict=True)):
        yield f"{kind} '{name}': the model expects shape {shape} but the configuration specifies {expected}"


def graph_of(path):
    """What ONNX Runtime loads: the file's path, or the graph inside a file that trtexec-stand-in wrote."""
    return read_graph(path) if is_marked(path) else str(path)


class OnnxModel(BatchingModel):
    """An ONNX graph as a Triton model."""

    @staticmethod
    def auto_complete_config(auto_complete_model_config):
        """Fill in inputs and outputs that ``config.pbtxt`` leaves out, from the graph, as the real backend does."""
        config = auto_complete_model_config.as_dict()
        # The Python backend does not say here which model it is about; its own command line does.
        path = Path(os.fsdecode(Path("/proc/self/cmdline").read_bytes().split(b"\0")[1]))
        if (config.get("input") and config.get("output")) or not path.is_file():
            return auto_complete_model_config  # `initialize` says what is missing
        session = onnxruntime.InferenceSession(graph_of(path), providers=["CPUExecutionProvider"])
        tensors = [*session.get_inputs(), *session.get_outputs()]
        shapes = {one.name: [size if isinstance(size, int) else -1 for size in one.shape] for one in tensors}
        batched = int(config.get("max_batch_size", 0)) > 0 or all(shape[:1] == [-1] for shape in shapes.values())
        if batched and not config.get("max_batch_size"):
            auto_complete_model_config.set_max_batch_size(DEFAULT_MAX_BATCH_SIZE)
            auto_complete_model_config.set_dynamic_batching()
        for add, described in (
            (auto_complete_model_config.add_input, session.get_inputs()),
            (auto_complete_model_config.add_output, session.get_outputs()),
        ):
            for one in described:
                dims = shapes[one.name][1:] if batched else shapes[one.name]
                add({"name": one.name, "data_type": TRITON_TYPE_OF.get(one.type, "TYPE_INVALID"), "dims": dims})
        return auto_complete_model_config

    def load(self, args, find_file, stands_for):
        """Make the session.

        Args:
            args: as ``initialize`` receives them.
            find_file: settings → the graph's file.
            stands_for: the backend whose place this takes.

        Raises:
            TritonModelException: no such file, no graph in it, or the configuration does not fit the graph.
        """
        self.settings = ModelSettings(args)
        path = find_file(self.settings)
        if path.is_dir():  # a folder that holds the graph and its external data
            path = path / "model.onnx"
        try:
            self.session = onnxruntime.InferenceSession(
                graph_of(path), session_options(self.settings), providers=["CPUExecutionProvider"]
            )
        except (*FAILURES, native.InvalidGraph, native.InvalidProtobuf, native.NoSuchFile) as error:
            raise pb_utils.TritonModelException(f"ONNX Runtime cannot load '{path.name}': {error}") from error
        what = f"the ONNX graph in {path.name}, which trtexec-stand-in wrote," if is_marked(path) else path.name
        self.settings.stand_in(f"backend {stands_for} runs {what} with ONNX Runtime on the CPU")
        graph_inputs = {one.name: one for one in self.session.get_inputs()}
        graph_outputs = {one.name: one for one in self.session.get_outputs()}
        check_tensors(self.settings, graph_inputs, graph_outputs, convert=self.convert)
        self.graph_types = {
            name: NUMPY_OF[TRITON_TYPE_OF[one.type]] for name, one in graph_inputs.items() if one.type in TRITON_TYPE_OF
        }
        for name in ignored(self.settings):
            self.settings.log(f"tritonstack: {name} is for a GPU and is ignored on the CPU")

    def run(self, inputs, outputs):
        """One run of the session. Raises RequestError with ONNX Runtime's message."""
        feed = {name: self._fed(name, array) for name, array in inputs.items()}
        try:
            return dict(zip(outputs, self.session.run(outputs, feed), strict=True))
        except FAILURES as error:
            raise RequestError(f"ONNX Runtime: {error}") from error

    def _fed(self, name, array):
        wanted = self.graph_types.get(name, array.dtype)
        if array.dtype == np.object_:
            return _text(name, array)
        return array if array.dtype == wanted else array.astype(wanted)


def _text(name, array):
    """BYTES as ONNX Runtime's Python interface takes them: text."""
    try:
        decoded = [one.decode() if isinstance(one, bytes) else str(one) for one in array.ravel()]
    except UnicodeDecodeError as error:
        raise RequestError(f"input '{name}' is not UTF-8, which the CPU stand-in needs: {error}") from error
    return np.array(decoded, dtype=np.object_).reshape(array.shape)
