"""The ONNX graph that an engine is built from, in the precision that its recipe wants it in."""

from __future__ import annotations

from pathlib import Path

from tritonstack.archives.engine_recipe import Engine
from tritonstack.archives.programs import Report, run_script


def graph_for_engine(engine: Engine, *, exported: Path, work: Path, report: Report) -> Path:
    """The graph that trtexec shall read: the exported one, or its FP16 form in a new folder ``half`` of ``work``.

    A graph too large for one file has its weights in a second, ``model.onnx.data``, beside it.

    Raises :class:`WorkFailedError` where the graph cannot be read, or nothing of it can be turned into FP16, and
    :class:`InputError` where the environment of the exporters is not made.
    """
    if engine.graph_precision is None:
        return exported
    folder = work / "half"
    folder.mkdir()
    half = folder / "model.onnx"
    script = Path(__file__).with_name("half_graph.py")
    arguments = ["-P", str(script), str(exported.resolve()), str(half.resolve())]
    what = f"{exported.name} in {engine.graph_precision.upper()}"
    run_script(environment="exporters", arguments=arguments, folder=folder, what=what, report=report)
    return half
