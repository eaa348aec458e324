"""Models in the formats of training frameworks, which no Triton backend loads: which one a file has, what it states.

Recognised by content: first bytes, members of a zip file, keys of JSON, names of classes in a pickle. Reading is
bounded, and nothing of a file is made or run. Sources: keras/src/saving/saving_lib.py (members of .keras),
tensorflow/lite/schema (TFL3), apple/coremltools mlmodel/format/Model.proto, dmg.org PMML 4.4, the GGUF specification,
safetensors' README, torch/export/pt2_archive/constants.py, mlflow's MLmodel file.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

from tritonstack.model_files.framework_model import Framework, FrameworkModel
from tritonstack.model_files.outline import OutlineError, json_outline
from tritonstack.model_files.pickle_outline import PickleError, read_pickle
from tritonstack.model_files.pickled_models import pickled_model, skops_model, torch_model
from tritonstack.model_files.protobuf_fields import ProtobufError, message_fields
from tritonstack.model_files.skops_outline import skops_outline
from tritonstack.model_files.tensorflow_files import graph_ends, signatures
from tritonstack.untrusted.foreign_text import parse_json
from tritonstack.untrusted.zip_reading import DAMAGED_ZIP, open_zip, read_member

_HEAD = 4096
_JSON_BYTES = 8 << 20
_SAFETENSORS_HEADER = 16 << 20
_SKOPS_BYTES = 64 << 20
"""Of the tree of a model's objects: each node of a forest is an array beside it."""
_HDF5_BYTES = 4 << 20
"""Of an HDF5 file's beginning, where its root group has the attributes of a Keras model."""


def framework_model(path: Path) -> FrameworkModel | None:
    """What a file or folder is; None for what is none of these formats. Raises OSError where it cannot be read."""
    if path.is_dir():
        return _folder(path)
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
    if not head:
        return None
    for read in (_by_beginning, _zip, _safetensors, _json, pickled_model, _protobuf):
        found = read(path, head)
        if found is not None:
            return found
    return None


_BEGINNINGS: tuple[tuple[int, bytes, Framework, str], ...] = (
    (4, b"TFL3", "tflite", "TensorFlow Lite"),
    (0, b"GGUF", "gguf", "GGUF"),
    (0, b"CBM1", "catboost", "CatBoost"),
    (4, b"ORTM", "ort", "ONNX Runtime's own format"),
    (0, b"\x93NUMPY", "numpy", "a NumPy array"),
)
"""Place and bytes of a format's beginning."""


def _by_beginning(path: Path, head: bytes) -> FrameworkModel | None:
    for place, begins, name, what in _BEGINNINGS:
        if head[place : place + len(begins)] == begins:
            return FrameworkModel(format=name, path=path, made_by=what)
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        return _hdf5(path)
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") and re.search(rb"<PMML[\s>]", head):
        return FrameworkModel(format="pmml", path=path, made_by="PMML")
    return None


def _hdf5(path: Path) -> FrameworkModel:
    """Keras keeps the layers of a whole model in the attribute ``model_config``; weights alone have none."""
    with path.open("rb") as stream:
        text = stream.read(_HDF5_BYTES)
    is_whole = b"model_config" in text
    version = re.search(rb"keras_version.{0,200}?([0-9]+\.[0-9]+\.[0-9]+)", text, re.DOTALL)
    return FrameworkModel(
        format="keras" if is_whole else "keras-weights", path=path, version=version[1].decode() if version else ""
    )


def _zip(path: Path, head: bytes) -> FrameworkModel | None:  # noqa: PLR0911  (one for each format)
    if not head.startswith(b"PK\x03\x04"):
        return None
    try:
        with open_zip(path) as archive:
            names = archive.namelist()
            parts = {name.split("/", 1)[-1] for name in names}
            if {"config.json", "model.weights.h5"} <= set(names):
                text = read_member(archive, "metadata.json", most=_JSON_BYTES) if "metadata.json" in names else b"{}"
                version = str(parse_json(text).get("keras_version", ""))
                return FrameworkModel(format="keras", path=path, version=version)
            if "archive_format" in parts or "serialized_exported_program.json" in names:
                return FrameworkModel(format="exported-program", path=path)
            if "schema.json" in names:
                return _skops(path, read_member(archive, "schema.json", most=_SKOPS_BYTES))
            if "MAR-INF/MANIFEST.json" in names:
                models = tuple(name for name in names if name.endswith((".pt", ".onnx", ".pth")))
                return FrameworkModel(format="torchserve", path=path, files=models)
            if names and all(name.endswith(".npy") for name in names):
                return FrameworkModel(format="numpy", path=path, made_by="NumPy arrays")
            is_script = "constants.pkl" in parts or any(part.startswith("code/") for part in parts)
            if "data.pkl" not in parts or is_script:
                return None
            name = next(name for name in names if name.split("/", 1)[-1] == "data.pkl")
            return torch_model(path, read_pickle(io.BytesIO(read_member(archive, name, most=_JSON_BYTES))))
    except (*DAMAGED_ZIP, PickleError, AttributeError):
        return None


def _skops(path: Path, schema: bytes) -> FrameworkModel | None:
    if b"__loader__" not in schema:
        return None
    try:
        return skops_model(path, skops_outline(parse_json(schema)))
    except ValueError:  # of another version, or larger than is read: skops itself loads it
        return FrameworkModel(format="skops", path=path)


def _safetensors(path: Path, head: bytes) -> FrameworkModel | None:
    if head[8:9] != b"{" or len(head) < 9:
        return None
    shapes = _safetensors_shapes(path)
    if shapes is None:
        return None
    for name in (_PEFT, "config.json"):
        if (path.parent / name).is_file() and (folder := _folder(path.parent)) is not None:
            return folder
    first = next(((name, shape) for name, shape in shapes.items() if len(shape) > 1), None)
    return FrameworkModel(format="safetensors", path=path, first_weight=first)


def _safetensors_shapes(path: Path) -> dict[str, tuple[int, ...]] | None:
    """Tensor → shape, of a length of eight bytes and JSON behind it; None for what is no such file."""
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if not 2 <= length <= _SAFETENSORS_HEADER:
            return None
        text = stream.read(length)
    try:
        header = parse_json(text)
        return {name: tuple(each["shape"]) for name, each in header.items() if name != "__metadata__"}
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _json(path: Path, head: bytes) -> FrameworkModel | None:
    """Dumps of boosted trees, which no library reads back, and CatBoost's JSON."""
    begins = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if re.match(rb'\[\s*\{\s*"nodeid"', begins):
        return FrameworkModel(format="xgboost-dump", path=path, made_by="XGBoost's dump of its trees")
    if not re.match(rb'\{\s*"', begins):
        return None
    try:
        outline = json_outline(path)
    except (OutlineError, OSError):
        return None
    keys = {names[0] for names in outline or ()}
    if {"num_tree_per_iteration", "max_feature_idx"} <= keys:
        return FrameworkModel(format="lightgbm-dump", path=path, made_by="LightGBM's dump of its trees")
    if "model_info" in keys or "oblivious_trees" in keys:
        return FrameworkModel(format="catboost", path=path, made_by="CatBoost", key="json")
    return None


def _protobuf(path: Path, _head: bytes) -> FrameworkModel | None:
    """A frozen graph, the graph of a SavedModel, or a Core ML model; ONNX is none of these."""
    try:
        with path.open("rb") as stream:
            fields = {each.number: each.is_message for each in message_fields(stream, 0, path.stat().st_size)}
        if fields.get(2) and not fields.get(1, True) and fields.keys() <= {1, 2}:
            return _folder(path.parent) if path.name == "saved_model.pb" else None
        if fields.get(2) and not fields.get(1, True) and any(200 <= number <= 3000 for number in fields):
            return FrameworkModel(format="coreml", path=path, made_by="Core ML")
        if fields.get(1) and max(fields) <= 5:
            inputs, outputs = graph_ends(path)
            if inputs and outputs:
                return FrameworkModel(format="frozen-graph", path=path, inputs=inputs, outputs=outputs)
    except (ProtobufError, OSError):
        return None
    return None


_TASKS: tuple[tuple[str, str], ...] = (
    ("ForSequenceClassification", "text-classification"),
    ("ForTokenClassification", "token-classification"),
    ("ForQuestionAnswering", "question-answering"),
    ("ForMultipleChoice", "multiple-choice"),
    ("ForMaskedLM", "fill-mask"),
    ("ForImageClassification", "image-classification"),
    ("ForObjectDetection", "object-detection"),
    ("ForSemanticSegmentation", "semantic-segmentation"),
    ("ForAudioClassification", "audio-classification"),
    ("ForCTC", "automatic-speech-recognition"),
)
"""End of an architecture's name in transformers → the task of its ONNX export in optimum; else feature-extraction."""
_GENERATING = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "ForSpeechSeq2Seq", "ForSeq2SeqLM")
_OF_MLFLOW = (
    *("*.onnx", "*.skops", "*.pkl", "*.joblib", "*.pth", "*.pt", "*.pt2", "*.xgb", "*.ubj", "*.lgb", "*.cb", "*.keras"),
    "*.json",
)
_PEFT = "adapter_config.json"
_WEIGHTS = ("*.safetensors", "*.safetensors.index.json", "pytorch_model*.bin", "tf_model.h5")


def _folder(path: Path) -> FrameworkModel | None:  # noqa: PLR0911  (one for each format)
    """A SavedModel, a model of transformers, an MLflow model or a Core ML package."""
    if (path / "saved_model.pb").is_file():
        return _saved_model(path)
    if (path / "MLmodel").is_file():
        below = [each for pattern in _OF_MLFLOW for each in sorted(path.rglob(pattern)) if each.is_file()]
        names = tuple(dict.fromkeys(str(each.relative_to(path)) for each in below if "input_example" not in each.name))
        return FrameworkModel(format="mlflow", path=path, files=names)
    if (path / "Manifest.json").is_file() and (path / "Data").is_dir():
        return FrameworkModel(format="coreml", path=path, made_by="Core ML")
    if (path / _PEFT).is_file() and any(path.glob("adapter_model.*")):
        return _adapter(path)
    if not any(each for pattern in _WEIGHTS for each in path.glob(pattern)):
        return None
    config = read_folder_json(path / "config.json")
    if not ({"model_type", "architectures"} & config.keys()):
        return None
    architectures = config.get("architectures")
    architecture = str(architectures[0]) if isinstance(architectures, list) and architectures else ""
    if architecture.endswith(_GENERATING):
        return FrameworkModel(format="transformers-generation", path=path, architecture=architecture)
    task = next((task for end, task in _TASKS if architecture.endswith(end)), "feature-extraction")
    name = architecture or str(config["model_type"])
    return FrameworkModel(format="transformers", path=path, architecture=name, task=task)


_ADAPTER_WEIGHTS = "adapter_model.safetensors"
_CLASSIFIERS = (".classifier.weight", ".classifier.out_proj.weight", ".score.weight")
"""Ends of the names of a classifier's weights beside an adapter: a row for each class."""


def _adapter(path: Path) -> FrameworkModel:
    """Adapter weights of peft, and how many classes the classifier beside them has."""
    task = str(read_folder_json(path / _PEFT).get("task_type") or "")
    file = path / _ADAPTER_WEIGHTS
    shapes = (_safetensors_shapes(file) if file.is_file() else None) or {}
    rows = (shape[0] for name, shape in shapes.items() if name.endswith(_CLASSIFIERS) and len(shape) == 2)
    return FrameworkModel(
        format="peft", path=path, made_by="adapter weights (LoRA)", task=task, classes=next(rows, None)
    )


def read_folder_json(file: Path) -> dict[str, Any]:
    """An object of a small JSON file; empty where there is none."""
    try:
        if file.stat().st_size > _JSON_BYTES:
            return {}
        found = parse_json(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _saved_model(path: Path) -> FrameworkModel:
    try:
        known = signatures(path / "saved_model.pb")
    except (ProtobufError, OSError):
        known = {}
    name = "serving_default" if "serving_default" in known else next(iter(sorted(known)), "")
    return FrameworkModel(format="saved-model", path=path, signature=name, of_signature=known.get(name))
