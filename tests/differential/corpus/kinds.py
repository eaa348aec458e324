"""Model repositories drawn from a seed, of the kinds that people write, some of them with a mistake.

The outcome of a case is not stored here: the real Triton gives it. Some kinds are those of qa/L0_model_config in
triton-inference-server/server, by the names of the folders below autofill_noplatform and autofill_noplatform_success;
every case is made here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from tests.differential.corpus.ensembles import ensembles, named
from tests.differential.corpus.instances import instances, warmups
from tests.differential.corpus.onnx_models import onnx_completed, onnx_scheduled
from tests.differential.corpus.programs import programs
from tests.differential.corpus.python_models import files_laid_out, parameters, python_completed, python_partial
from tests.differential.corpus.repository import Case, Files
from tests.differential.corpus.schedulers import batched, sequences
from tests.differential.corpus.tensors import flags, ragged, reshaped
from tests.differential.corpus.texts import changed, changed_ensemble, spelt

KINDS: Mapping[str, Callable[[random.Random], Files]] = {
    "python-partial": python_partial,
    "python-completed": python_completed,
    "onnx-completed": onnx_completed,
    "onnx-scheduled": onnx_scheduled,
    "files": files_laid_out,
    "parameters": parameters,
    "programs": programs,
    "reshaped": reshaped,
    "ragged": ragged,
    "flags": flags,
    "batched": batched,
    "sequences": sequences,
    "instances": instances,
    "warmups": warmups,
    "ensembles": ensembles,
    "named": named,
    "spelt": spelt,
    "changed": changed,
    "changed-ensemble": changed_ensemble,
}
"""Kind → what makes a case of it. ONNX graphs are judged by this project's stand-in for the onnxruntime backend, which
follows that backend's source; all else by NVIDIA's own core and Python backend."""


def corpus(seed: str, count: int) -> tuple[Case, ...]:
    """``count`` cases of all kinds in turn, each drawn by itself: what one kind draws changes no other."""
    makers = tuple(KINDS.items())
    return tuple(
        Case(name=f"{kind}-{index}", kind=kind, files=make(random.Random(f"{seed} {index}")))
        for index, (kind, make) in ((index, makers[index % len(makers)]) for index in range(count))
    )
