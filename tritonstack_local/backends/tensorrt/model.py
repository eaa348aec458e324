"""Stand-in for Triton's tensorrt backend: a plan cannot run on a CPU, the ONNX graph in it or next to it can.

In it: trtexec-stand-in writes the graph, marked, in the plan's place. No other plan holds its graph.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

import triton_python_backend_utils as pb_utils
from tritonstack_marked_plan import is_marked, read_header
from tritonstack_onnx import OnnxModel


class TritonPythonModel(OnnxModel):
    """``platform: "tensorrt_plan"`` or ``backend: "tensorrt"``.

    An engine's tensors may have other numeric types than its graph's (``--inputIOFormats=fp16:chw``): arrays are then
    converted on their way in and out.
    """

    convert = True

    def initialize(self, args):
        """Load the graph that the plan was built from."""
        self.load(args, graph_of_plan, "tensorrt")


def refuse_other_profiles(settings, header):
    """Compare the optimisation profiles of instance groups with those that the plan was built with.

    Source: ``src/instance_state.cc`` (InitOptimizationProfiles). Raises TritonModelException for any other number.
    """
    count = len(header.get("profiles", [{}]))
    for group in settings.config.get("instance_group", []):
        for profile in group.get("profile", []):
            if not 0 <= int(profile) < count:
                raise pb_utils.TritonModelException(
                    f"Can not set the specified optimization profile {profile}[{int(profile)}] for {settings.name}. "
                    f"Expected optimization profile index range 0-{count - 1}"
                )


def graph_of_plan(settings):
    """The plan itself where trtexec-stand-in wrote it; else the ONNX file next to it.

    That is its namesake, or ``model.onnx`` in the version's, the first or the model's folder. A plan may be named for a
    compute capability (``cc_model_filenames``): here any of them serves.

    Raises TritonModelException: there is none.
    """
    plan = Path(settings.config.get("default_model_filename") or "model.plan")
    plans = [plan, *settings.config.get("cc_model_filenames", {}).values()]
    for path in (settings.version_folder / name for name in plans):
        if is_marked(path):
            refuse_other_profiles(settings, read_header(path))
            return path
    candidates = (
        settings.version_folder / plan.with_suffix(".onnx"),
        settings.version_folder / "model.onnx",
        settings.folder / "1" / "model.onnx",
        settings.folder / "model.onnx",
    )
    for path in candidates:
        if path.exists():
            return path
    raise pb_utils.TritonModelException(
        f"a TensorRT plan cannot run on a CPU, and the ONNX graph of model '{settings.name}' is not beside it: "
        f"put it at '{candidates[1]}' to serve the model locally"
    )
