"""The repository's published systems behind a fake SageMaker: real recipes and configurations, made-up responses.

The stand-in refuses what Triton would refuse: a wrong name, type or shape of an input.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.client.fake_triton import DTYPES, Array, RefusedError, datatype_of, read_request, write_response
from tests.client.fakes import FakeEndpoint, Reply, Request, client_account, document, error_reply, serving_outputs
from tests.client.tokenizers_for_tests import write_tokenizer
from tests.fake_aws import ARTIFACTS
from tritonstack.models.manifest import tensor_entry
from tritonstack.models.model_config import ModelConfig, read_config
from tritonstack.models.recipe import read_recipe

MODEL_REPOS = Path(__file__).parents[2] / "model_repos"
ARCHIVES = {  # archive → folder
    "resnet50-torchscript": "resnet50-torchscript",
    "resnet50-onnx": "resnet50-onnx",
    "resnet50-tensorrt": "resnet50-tensorrt",
    "roberta-large-onnx": "roberta-large-onnx",
    "bert-tensorrt-0": "bert-tensorrt",
    "inception-ensemble": "inception-ensemble",
    "t5-python": "t5-python",
    "bert-large-pytorch": "bert-large",
}
ENDPOINTS = {  # as tests/systems deploys them
    "resnet50-torchscript": "images",
    "resnet50-onnx": "images",
    "resnet50-tensorrt": "images",
    "roberta-large-onnx": "texts",
    "bert-tensorrt-0": "engines",
    "inception-ensemble": "inception",
    "t5-python": "texts",
    "bert-large-pytorch": "bert-large",
}
ENVIRONMENT, DIGEST = "local", "0123456789abcdef"
TRANSLATION = "the house is wonderful"


class Systems:
    """The stand-in. ``aws`` is the session of a ModelClient; ``endpoint.requests`` are those received."""

    def __init__(self, endpoint: FakeEndpoint, folder: Path) -> None:
        """Takes a running endpoint and a folder for a tokenizer's file."""
        self.endpoint = endpoint
        endpoint.reply = self.reply
        self.tokenizer = write_tokenizer(folder / "tokenizer.json").read_bytes()
        self.configs = {archive: config_of(name) for archive, name in ARCHIVES.items()}
        records = {f"/tritonstack/{ENVIRONMENT}/{ENDPOINTS[archive]}/{archive}": DIGEST for archive in ARCHIVES}
        outputs = {
            f"/tritonstack/{ENVIRONMENT}/_outputs/serving-{name}": serving_outputs() for name in ENDPOINTS.values()
        }
        bucket = {f"/tritonstack/{ENVIRONMENT}/_artifacts/bucket-name": ARTIFACTS}
        self.aws = client_account(endpoint, records | outputs | bucket)
        for archive, name in ARCHIVES.items():
            self._publish(archive, name)

    def reply(self, request: Request) -> Reply:
        """The model's response, or 424 as SageMaker's where Triton refuses."""
        archive = str(request.target_model).split(".")[0]
        described, arrays = read_request(request.content, request.content_type)
        try:
            check_request(self.configs[archive], arrays)
        except RefusedError as refusal:
            return error_reply("ModelError", 424, OriginalStatusCode=400, OriginalMessage=str(refusal))
        outputs = self._outputs(self.configs[archive], arrays)
        content, content_type = write_response(described, outputs, model=archive)
        return 200, {"Content-Type": content_type, "x-Amzn-Invoked-Production-Variant": "g4dn-xlarge"}, content

    def _outputs(self, config: ModelConfig, arrays: Mapping[str, Array]) -> dict[str, Array]:
        (batch,) = {array.shape[0] for array in arrays.values()}
        request = next(iter(arrays.values())).shape
        draw = np.random.default_rng(0)
        made: dict[str, Array] = {}
        for tensor in config.outputs:
            if tensor.data_type.startswith("INT"):
                made[tensor.name] = np.array([[2, 4, 5, 6, 7, 3]] * batch, DTYPES[tensor.data_type])
            else:
                # A length that the configuration leaves free is the request's: a vector for each of its tokens.
                sides = [request[axis] if side == -1 else side for axis, side in enumerate(tensor.dims, start=1)]
                made[tensor.name] = draw.random((batch, *sides)).astype(DTYPES[tensor.data_type])
        return made

    def _publish(self, archive: str, name: str) -> None:
        """Manifest and client files, as ``tritonstack publish`` lays them down."""
        config, recipe = self.configs[archive], read_recipe(MODEL_REPOS / name)
        folder = f"manifests/{ENDPOINTS[archive]}/24.09-t4/{archive}.{DIGEST}"
        files = {file: self._content(name, file) for file in recipe.client_files}
        manifest = {
            "model": {
                "max_batch_size": config.max_batch_size,
                "inputs": [tensor_entry(one, config.max_batch_size).model_dump() for one in config.inputs],
                "outputs": [tensor_entry(one, config.max_batch_size).model_dump() for one in config.outputs],
            },
            "adapters": recipe.adapters.model_dump(mode="json"),
            "answers": recipe.answers.model_dump(mode="json"),
            "client_files": {
                file: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
                for file, content in files.items()
            },
        }
        self.aws.artifacts[f"{folder}.json"] = document(manifest)
        self.aws.artifacts.update({f"{folder}/{file}": content for file, content in files.items()})

    def _content(self, name: str, file: str) -> bytes:
        """A client file: the folder's own, else a replacement of one that an export makes."""
        path = MODEL_REPOS / name / file
        if path.is_file():
            return path.read_bytes()
        if file.endswith("tokenizer.json"):
            return self.tokenizer
        (scores,) = config_of(name).outputs
        return "".join(f"class {number}\n" for number in range(scores.dims[-1])).encode()


def config_of(name: str) -> ModelConfig:
    return read_config((MODEL_REPOS / name / name / "config.pbtxt").read_text())


def check_request(config: ModelConfig, arrays: Mapping[str, Array]) -> None:
    """Refuse inputs that the configuration does not have, or not so."""
    wanted = {tensor.name: tensor for tensor in config.inputs}
    if arrays.keys() != wanted.keys():
        raise RefusedError(f"inputs {sorted(arrays)}, expected {sorted(wanted)}")
    for name, array in arrays.items():
        shape = wanted[name].shape(config.max_batch_size)
        fits = array.ndim == len(shape) and all(
            want in (-1, have) for want, have in zip(shape, array.shape, strict=True)
        )
        if datatype_of(array) != wanted[name].data_type or not fits:
            raise RefusedError(f"{name}: {datatype_of(array)} {array.shape}, expected {wanted[name].data_type} {shape}")


@contextmanager
def running_systems(folder: Path) -> Iterator[Systems]:
    with FakeEndpoint().running() as endpoint:
        yield Systems(endpoint, folder)


def image_file(path: Path) -> Path:
    pixels: Any = np.random.default_rng(0).integers(0, 256, (120, 160, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return path
