"""An ONNX graph run by ONNX Runtime on the CPU, for the stand-ins of Triton's onnxruntime and tensorrt backends.

Parameters are those that the real backend reads: ``src/onnxruntime.cc`` of triton-inference-server/onnxruntime_backend.
"""

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnxruntime
import triton_python_backend_utils as pb_utils
from onnxruntime.capi import onnxruntime_pybind11_state as native
from tritonstack_marked_plan import is_marked, read_graph
from tritonstack_model import NUMPY_OF, BatchingModel, ModelSettings, RequestError

_OTHER_NAMES = {"float16": "FP16", "bfloat16": "BF16", "float": "FP32", "double": "FP64"}
_SAME_NAMES = ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "string")
TRITON_TYPE_OF = {
    f"tensor({name})": f"TYPE_{_OTHER_NAMES.get(name, name.upper())}" for name in (*_SAME_NAMES, *_OTHER_NAMES)
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
    """GPU settings of the configuration, by name."""
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


def check_tensors(settings, session, *, convert):
    """Compare the configuration with the graph as the real backend does when it makes an instance.

    Source: ``src/onnxruntime.cc`` (ValidateInputs, ValidateOutputs, ValidateBooleanSequenceControl).

    Raises TritonModelException: every difference at once.
    """
    refuse_other_types(settings, session)
    given = {one.name: one for one in session.get_inputs()}
    overridable = {one.name: one for one in session.get_overridable_initializers()}
    problems = list(_count_problems(settings, given))
    for kind, provided in (
        ("input", given | overridable),
        ("output", {one.name: one for one in session.get_outputs()}),
    ):
        for one in settings.config.get(kind, []):
            if one["name"] not in provided:
                allowed = ", ".join(provided)
                problems.append(f"unexpected inference {kind} '{one['name']}', allowed {kind}s are: {allowed}")
            else:
                problems += _tensor_problems(settings, kind, one, provided[one["name"]], convert=convert)
            if one.get("optional") and settings.max_batch_size > 0:
                problems.append(f"optional input '{one['name']}' is not supported for models that support batching")
    problems += _control_problems(settings, given)
    if problems:
        raise pb_utils.TritonModelException(f"unable to load model '{settings.name}': " + "; ".join(problems))


def refuse_other_types(settings, session):
    """Raise TritonModelException where an input or output is no tensor, listed in the configuration or not."""
    for one in (*session.get_inputs(), *session.get_outputs()):
        if not one.type.startswith("tensor("):
            what = one.type.partition("(")[0]
            raise pb_utils.TritonModelException(
                f"model '{settings.name}': Unsupported ONNX Type '{what}' for I/O '{one.name}', expected a tensor"
            )


def _count_problems(settings, given):
    """Check the number of inputs against the graph's, with those that Triton makes, without optional ones."""
    batching = settings.config.get("sequence_batching") or {}
    count = sum(not one.get("optional") for one in settings.config.get("input", []))
    count += len(settings.config.get("batch_input", [])) + len(_controls(settings)) + len(batching.get("state", []))
    if count != len(given):
        yield f"configuration expects {count} inputs, model provides {len(given)}: {', '.join(given)}"


def _controls(settings):
    """The sequence batcher's inputs: name → type; each kind of control is one."""
    kinds = (("int32_false_true", "TYPE_INT32"), ("fp32_false_true", "TYPE_FP32"), ("bool_false_true", "TYPE_BOOL"))
    found = {}
    for one in (settings.config.get("sequence_batching") or {}).get("control_input", []):
        for control in one.get("control", []):
            found[one["name"]] = next((kind for field, kind in kinds if control.get(field)), control.get("data_type"))
    return found


def _control_problems(settings, given):
    for name, wanted in _controls(settings).items():
        if name not in given:
            yield f"configuration specified sequence control '{name}', but model does not provide that input"
            continue
        shape = shape_of(given[name])[1 if settings.max_batch_size > 0 else 0 :]
        if shape != [1]:
            yield f"sequence control '{name}' in model has dims {shape} but dims [1] is expected"
        if TRITON_TYPE_OF.get(given[name].type) != wanted:
            yield f"sequence control '{name}', the model expects {given[name].type}, the configuration {wanted}"


def shape_of(described):
    """A tensor's shape as the backend has it: -1 where a length is free; none where the rank is unknown."""
    return [size if isinstance(size, int) and size >= 0 else -1 for size in described.shape or []]


def _tensor_problems(settings, kind, configured, provided, *, convert):
    name, wanted = configured["name"], configured["data_type"]
    given = TRITON_TYPE_OF.get(provided.type, provided.type)
    if wanted == "TYPE_BF16" or given == "TYPE_BF16":
        yield f"unsupported datatype TYPE_BF16 for {kind} '{name}'"
    elif wanted != given and not (convert and "TYPE_STRING" not in (wanted, given) and given in NUMPY_OF):
        yield f"configuration expects datatype {wanted} for {kind} '{name}', model provides {given}"
    shape = shape_of(provided)
    reshape = configured.get("reshape")
    dims = [int(size) for size in (configured.get("dims", []) if reshape is None else reshape.get("shape", []))]
    if not shape and not convert:
        if any(size != 1 for size in dims):
            yield f"scalar tensor '{name}' should only provide 1 in the model configuration, which provides {dims}"
        return
    if configured.get("allow_ragged_batch") and not convert:
        if shape != [-1]:
            yield f"configuration expects shape [-1] for ragged input '{name}', model provides {shape}"
        return
    if any(name in one.get("target_name", []) for one in settings.config.get("batch_output", [])):
        return
    if settings.max_batch_size > 0 and (not shape or shape[0] != -1):
        yield (
            f"tensor '{name}': for the model to support batching the shape should have at least 1 dimension and the "
            f"first dimension must be -1; but shape expected by the model is {_shape_text(shape)}"
        )
        return
    expected = ([-1] if settings.max_batch_size > 0 else []) + dims
    exact = kind == "output" and not convert
    pairs = list(zip(expected, shape, strict=False))
    if len(expected) != len(shape) or not all(_agree(*pair, exact=exact, lenient=convert) for pair in pairs):
        batch = "an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making"
        yield (
            f"tensor '{name}': the model expects {len(shape)} dimensions (shape {_shape_text(shape)}) but the model "
            f"configuration specifies {len(expected)} dimensions "
            f"({f'{batch} complete ' if settings.max_batch_size > 0 else ''}shape {_shape_text(expected)})"
        )


def _shape_text(shape):
    """A shape as Triton's messages have it."""
    return f"[{','.join(map(str, shape))}]"


def _agree(configured, in_graph, *, exact, lenient):
    free = -1 in (configured, in_graph) if lenient else in_graph == -1 and not exact
    return configured == in_graph or free


def _completed(described, *, batched):
    """A tensor of the graph as a field of the configuration: what has no length but the batch has one of 1."""
    dims = shape_of(described)[1 if batched else 0 :]
    kind = TRITON_TYPE_OF.get(described.type, "TYPE_INVALID")
    found = {"name": described.name, "data_type": kind, "dims": dims or [1]}
    return found | ({"reshape": {"shape": []}} if batched and not dims else {})


def graph_of(path):
    """The graph for ONNX Runtime: the file's path, or the graph inside a file that trtexec-stand-in wrote."""
    return read_graph(path) if is_marked(path) else str(path)


class OnnxModel(BatchingModel):
    """An ONNX graph as a Triton model."""

    @staticmethod
    def auto_complete_config(auto_complete_model_config):
        """Complete inputs, outputs and batch size from the graph, as the real backend does.

        Source: ``src/onnxruntime.cc`` (AutoCompleteConfig, AutoCompleteMaxBatch, AutoCompleteIO).
        """
        config = auto_complete_model_config.as_dict()
        given = {"input": config.get("input") or config.get("batch_input"), "output": config.get("output")}
        # The Python backend does not name the model here; its command line does.
        path = Path(os.fsdecode(Path("/proc/self/cmdline").read_bytes().split(b"\0")[1]))
        path = path / "model.onnx" if path.is_dir() else path
        if all(given.values()) or not path.is_file():
            return auto_complete_model_config  # `initialize` reports what is missing
        session = onnxruntime.InferenceSession(graph_of(path), providers=["CPUExecutionProvider"])
        refuse_other_types(SimpleNamespace(name=config["name"]), session)
        described = {"input": session.get_inputs(), "output": session.get_outputs()}
        batches = all(shape_of(one)[:1] == [-1] for tensors in described.values() for one in tensors)
        limit = int(config.get("max_batch_size", 0))
        if limit and not batches:
            raise pb_utils.TritonModelException(
                f"autofill failed for model '{config['name']}': model does not support batching while non-zero "
                "max_batch_size is specified"
            )
        if batches:
            limit = limit or DEFAULT_MAX_BATCH_SIZE
            auto_complete_model_config.set_max_batch_size(limit)
            if limit > 1 and "sequence_batching" not in config:
                auto_complete_model_config.set_dynamic_batching()
        for kind, tensors in described.items():
            if not given[kind]:
                config[kind] = [_completed(one, batched=limit > 0) for one in tensors]
        return auto_complete_model_config

    def load(self, args, find_file, stands_for):
        """Make the session.

        Raises TritonModelException: no such file, no graph in it, or the configuration does not fit the graph.
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
        check_tensors(self.settings, self.session, convert=self.convert)
        self.graph_types = {
            one.name: NUMPY_OF[TRITON_TYPE_OF[one.type]]
            for one in (*self.session.get_inputs(), *self.session.get_overridable_initializers())
            if TRITON_TYPE_OF.get(one.type) in NUMPY_OF
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
