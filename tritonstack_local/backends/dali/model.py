"""Stand-in for Triton's DALI backend: the model's pipeline with every operator on the CPU.

Files and parameters as triton-inference-server/dali_backend documents them: ``model.dali`` (a serialised pipeline) or
``dali.py`` (a pipeline marked ``@autoserialize``), and ``parameters { key: "num_threads" }``.

Memory: a process of its own runs this and ends when the model is unloaded, so DALI's memory is freed every time.
The real backend shares the server's process and frees GPU memory only where the server was started with
``--backend-config=dali,release_after_unload=true``, which the settings' check requires.
"""

import importlib.util
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

import numpy as np
import triton_python_backend_utils as pb_utils
from tritonstack_dali_devices import on_cpu, operator_names
from tritonstack_model import BatchingModel, ModelSettings, RequestError, import_from

PIPELINE_LOST = "Current pipeline object is no longer valid."
dali = import_from("TRITONSTACK_DALI_SITE", "nvidia.dali", "dali")


class TritonPythonModel(BatchingModel):
    """``backend: "dali"``."""

    def initialize(self, args):
        """Load ``model.dali``, or ``dali.py``, of the version's folder.

        Raises TritonModelException: neither exists, the pipeline cannot be built on the CPU, or it lacks an input.
        """
        self.settings = settings = ModelSettings(args)
        threads = settings.number("num_threads", 0) or max(1, (os.cpu_count() or 2) // 2)
        self.options = {"batch_size": settings.max_batch_size or 1, "num_threads": threads, "device_id": None}
        path = self._file()
        try:
            serialised = self._autoserialised(path) if path.suffix == ".py" else path.read_bytes()
            self.serialised = on_cpu(serialised)
            self.pipeline = self._build()
        except (RuntimeError, ValueError, TypeError) as error:
            raise pb_utils.TritonModelException(f"DALI cannot build '{path.name}' on the CPU: {error}") from error
        unknown = [name for name in settings.inputs if name not in operator_names(self.serialised)]
        if unknown:
            raise pb_utils.TritonModelException(
                f"unable to load model '{settings.name}': the pipeline has no input called {', '.join(unknown)}; "
                "an input's name is that of its external_source"
            )
        moved = ", operators on the GPU moved there" if self.serialised != serialised else ""
        settings.stand_in(f"backend dali runs {path.name} with DALI {dali.__version__} on the CPU{moved}")

    def _file(self):
        fallback = self.settings.version_folder / "dali.py"
        named = self.settings.config.get("default_model_filename")
        return fallback if not named and fallback.exists() else self.settings.model_file("model.dali")

    def _autoserialised(self, path):
        """The pipeline that a Python file marks, serialised."""
        spec = importlib.util.spec_from_file_location("tritonstack_dali_pipeline", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        marked = [one for one in vars(module).values() if getattr(one, "_is_autoserialize", False)]
        if len(marked) != 1:
            raise ValueError(f"{len(marked)} pipelines are marked @autoserialize, one is needed")
        return marked[0](**self.options).serialize()

    def _build(self):
        return dali.Pipeline.deserialize(serialized_pipeline=self.serialised, **self.options)

    def run_all(self, requests, outputs):
        """One run of the pipeline for all requests: DALI's samples need not agree in shape.

        Where it fails, every request gets the error, as ``DaliModelInstance::Execute`` of the real backend does it.
        """
        try:
            return self._run(requests, outputs)
        except RequestError as error:
            self.pipeline = self._build()  # after an error a pipeline gives no further results
            return [error] * len(requests)

    def _run(self, requests, outputs):
        batched = self.settings.max_batch_size > 0
        sizes = [len(next(iter(inputs.values()))) if batched else 1 for inputs in requests]
        try:
            for name in self.settings.inputs:
                self.pipeline.feed_input(
                    name, [row for one in requests for row in (one[name] if batched else [one[name]])]
                )
            produced = dict(zip(self.settings.outputs, self.pipeline.run(), strict=False))
        except KeyError as error:
            raise RequestError(f"input {error} is missing") from error
        except (RuntimeError, ValueError, TypeError) as error:
            raise RequestError(_reason(str(error))) from error
        answers, start = [], 0
        for size in sizes:
            answers.append({name: _taken(name, produced, range(start, start + size), batched) for name in outputs})
            start += size
        return answers


def _reason(message):
    """DALI's message in one line, without its advice about the pipeline, which is built again."""
    lines = [line.strip(" :") for line in message.splitlines()]
    kept = [line for line in lines if line and line not in ("Critical error in pipeline", PIPELINE_LOST)]
    advice = "; the input is no image that DALI decodes, or not all of one" if "decoders" in message else ""
    return f"DALI: {': '.join(kept)}{advice}"


def _taken(name, produced, places, batched):
    """One request's part of an output."""
    if name not in produced:
        raise RequestError(f"the pipeline gives {len(produced)} outputs, '{name}' is not among them")
    samples = [np.array(produced[name].at(place)) for place in places]
    if not batched:
        return samples[0]
    if len({sample.shape for sample in samples}) > 1:
        raise RequestError(f"output '{name}' has samples of different shapes in one request")
    return np.stack(samples)
