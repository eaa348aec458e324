"""How far each exported model is from its source framework, in FP32: the figures of the exports' own proofs.

    python -m benchmarks.exporter_proofs

Every model that comes from PyTorch is exported anew, tiny and with random weights, into a folder of this run. Its proof
holds it against PyTorch on random and sample input, at batch 1 and at the largest batch. Needs the environments
``torch``, ``dali`` and ``tensorflow``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.results import Figure, machine, tell
from tritonstack.cli.progress import Steps
from tritonstack.models.build import build_models
from tritonstack.models.manifest import Places
from tritonstack.models.source import BuildChoice
from tritonstack.paths import REPOSITORY

LARGEST = 1e-4
MODELS = (
    "resnet50-torchscript",
    "resnet50-onnx",
    "resnet50-tensorrt",
    "roberta-large-onnx",
    "bert-tensorrt-0",
    "bert-large-pytorch",
    "bert-large-tensorrt",
    "inception-ensemble",
    "inception-ensemble-graphdef",
)


def main() -> int:
    """Export and prove every model; 0 where each keeps the bound."""
    stated = machine()
    with tempfile.TemporaryDirectory(prefix="proofs-") as name:
        root = Path(name)
        places = Places(repositories=REPOSITORY / "model_repos", archives=root / "archives", exports=root / "exports")
        choice = BuildChoice(size="tiny", weights="random")
        with Steps().step("export, prove and pack every model") as step:
            built = build_models(MODELS, places=places, choice=choice, report=step.say).built
    figures = [
        Figure(
            what=f"{item.manifest.name}, batches of 1 and {item.manifest.model.max_batch_size}",
            value=item.manifest.figures["largest_difference"],
            unit="",
            bound=LARGEST,
        )
        for item in built
    ]
    versions = {key: value for key, value in built[0].manifest.tools.items() if key in ("torch", "onnxruntime")}
    return tell("exporter-proofs", figures, machine=stated, versions=versions)


if __name__ == "__main__":
    sys.exit(main())
