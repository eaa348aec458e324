"""BERT large on an NVIDIA GPU: the post's four configurations, by the same code as the scenarios on the CPU.

The model is that of ``model_repos/bert-large``, exported by its own script. It is served by the stand-in of
``tritonstack_local/backends`` for PyTorch, which computes on the GPU where its environment variable names one.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from benchmarks.scenarios.measuring import Repeats
from benchmarks.scenarios.models import TOKENS, Model, built
from benchmarks.scenarios.served import Way
from benchmarks.scenarios.table import ONE_TORCH_THREAD, TURNS, Scenario, claim
from tritonstack.client.body import encode
from tritonstack.engines.engine_step import StepError, find_gpus
from tritonstack.errors import InputError, Problem
from tritonstack.models.manifest import Places
from tritonstack.models.recipe import Size
from tritonstack.paths import REPOSITORY
from tritonstack_local.container.repository import TritonFiles

OVERLAYS = REPOSITORY / "model_repos" / "bert-large" / "overlays"
DEVICE_VARIABLE = "TRITONSTACK_TORCH_DEVICE"
CUDA_ENVIRONMENT = "torch-cuda"
USERS = 16


@dataclass(frozen=True, kw_only=True)
class FilesOnDevice(TritonFiles):
    """Where the server is installed, and what PyTorch computes on (``cuda``, ``cpu``)."""

    device: str

    def process_environment(self) -> dict[str, str]:
        """The server's variables, with the device."""
        return {**super().process_environment(), DEVICE_VARIABLE: self.device}


def files_on(device: str, *, environments: Path, torch: str) -> FilesOnDevice:
    """The project's environments, with PyTorch of the one that is called ``torch``."""
    usual = TritonFiles.of_repository(environments)
    return FilesOnDevice(**{**vars(usual), "torch": environments / torch, "device": device})


def cuda_here(environments: Path) -> tuple[str, FilesOnDevice]:
    """This machine's GPU in words, and the files with which the server computes on it.

    Raises InputError: no NVIDIA GPU, or no environment with a PyTorch that finds it.
    """
    try:
        gpu = find_gpus()[0]
    except StepError as error:
        needed = "a machine with an NVIDIA GPU and its driver"
        raise InputError([Problem(field="--gpu", found=error.reason, allowed=needed)]) from error
    python = environments / CUDA_ENVIRONMENT / "bin" / "python"
    script = "import torch; print(torch.cuda.is_available())"
    try:
        printed = subprocess.run([python, "-c", script], capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        printed = "nothing: it is missing"
    if printed != "True":
        problem = Problem(
            field="--gpu",
            found=f"{python} says {printed or 'nothing'}",
            allowed="an environment with PyTorch that finds the GPU",
            advice=f"make it with the Python of .envs/backends: .envs/backends/bin/python -m venv "
            f".envs/{CUDA_ENVIRONMENT}, then pip install the torch and numpy of requirements/torch.in into it",
        )
        raise InputError([problem])
    return f"{gpu['name']}, driver {gpu['driver']}", files_on("cuda", environments=environments, torch=CUDA_ENVIRONMENT)


@cache
def bert_large(_folder: Path, *, size: Size) -> Model:
    """BERT large with random weights, and one text of 512 tokens; the output is two logits."""
    ids = np.random.default_rng(0).integers(10, 500, (1, TOKENS), dtype=np.int32)
    inputs = {"token_ids": ids, "attn_mask": np.ones_like(ids)}
    body = encode(inputs, outputs=["logits"], payload_format="binary")
    archive = built("bert-large-pytorch", Places.of_project(), size=size)
    return Model(archive=archive, name="bert-large", body=body)


def bert_large_scenario(files: TritonFiles, *, size: Size = "full") -> Scenario:
    """The post's configurations on what ``files`` compute on."""
    batching, two = ((OVERLAYS / f"{name}.pbtxt").read_text() for name in ("dynamic-batching", "two-instances"))
    overlays = {
        "plain": (),
        "dynamic batching": (batching,),
        "two instances": (two,),
        "both": (batching, two),
    }
    model = partial(bert_large, size=size)
    ways = {
        name: Way(name=name, model=model, fragments=(ONE_TORCH_THREAD, *fragments), files=files)
        for name, fragments in overlays.items()
    }
    plain, batched, doubled, both = ways.values()
    return Scenario(
        title=f"BERT large, PyTorch, {TOKENS} tokens, {USERS} callers",
        published="dynamic batching 1.08, two instances 1.85, both 1.82 times plain PyTorch (ml.g4dn.xlarge, a T4).",
        ways=tuple(ways.values()),
        repeats=Repeats(turns=TURNS, users=USERS),
        claims=(
            claim("BERT large: dynamic batching adds throughput", batched, plain),
            claim("BERT large: two instances add throughput", doubled, plain),
            claim("BERT large: both have more throughput than dynamic batching alone", both, batched),
        ),
    )
