"""Models of training frameworks: recognised by content, refused at once with the command that converts them."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import pickle
import shlex
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.lint.onnx_files import number, part
from tests.models.folders import places_in
from tritonstack.adding.additions import AddOptions
from tritonstack.adding.sources import read_source
from tritonstack.errors import InputError, Problem
from tritonstack.lint import ServingTarget
from tritonstack.model_files.framework_files import framework_model
from tritonstack.model_files.pickle_outline import PickledObject, PickleError, objects_of, read_pickle

FIXTURES = Path(__file__).with_name("fixtures")


class Model:
    """Stands in for a class of a library: pickles name it by ``__module__`` and ``__qualname__``."""


def pickled(name: str, state: dict[str, Any], *, protocol: int = 4) -> bytes:
    """A pickle of an object of a class that this process does not have, written opcode by opcode."""
    module, _, cls = name.rpartition(".")
    head = b"" if protocol < 2 else bytes([0x80, protocol])
    made = f"c{module}\n{cls}\n".encode() + (b")\x81" if protocol >= 2 else b"(tR")
    body = pickle.dumps(state, protocol=min(protocol, 2))
    return head + made + body.removeprefix(b"\x80\x02").removesuffix(b".") + b"b."


IRIS = pickled("sklearn.linear_model._logistic.LogisticRegression", {"n_features_in_": 4, "_sklearn_version": "1.5.2"})
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "zlib": zlib.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "lzma": lambda content: lzma.compress(content, format=lzma.FORMAT_ALONE),
}


def refused(path: Path, root: Path, *, name: str | None = None, release: str | None = None) -> Problem:
    target = ServingTarget.of_names(release=release, instance_type=None) if release else None
    with (
        pytest.raises(InputError) as caught,
        read_source(path, AddOptions(name=name), places=places_in(root), report=lambda _: None, target=target),
    ):
        pass
    return caught.value.problems[0]


@pytest.mark.parametrize("packing", PACKED)
def test_a_pickle_names_its_class_version_and_inputs_however_it_is_compressed(tmp_path: Path, packing: str) -> None:
    path = tmp_path / "iris.bin"
    path.write_bytes(PACKED[packing](IRIS))
    problem = refused(path, tmp_path)
    assert problem.found.startswith("a pickled sklearn.linear_model._logistic.LogisticRegression of scikit-learn 1.5.2")
    assert "scikit-learn==1.5.2 skl2onnx" in problem.advice
    assert 'initial_types=[("features", FloatTensorType([None, 4]))]' in problem.advice
    assert problem.advice.endswith(" && tritonstack add iris.onnx")


def test_columns_of_a_pipeline_are_inputs_with_their_types(tmp_path: Path) -> None:
    problem = refused(FIXTURES / "loan.joblib", tmp_path, name="credit")
    assert "which takes age, city (text)" in problem.found
    types = '[("age", FloatTensorType([None, 1])), ("city", StringTensorType([None, 1]))]'
    assert types in problem.advice
    assert problem.advice.endswith(" && tritonstack add credit.onnx")


@pytest.mark.parametrize("protocol", range(6))
def test_every_protocol_is_read_and_nothing_of_it_is_run(protocol: int) -> None:
    content = {"a": [1, 2.5, "text", None, True, b"x"], "b": (Model(), {"c": 1 << 70}), "d": np.arange(3), "e": {1, 2}}
    outline = read_pickle(io.BytesIO(pickle.dumps(content, protocol=protocol)))
    assert outline.is_whole
    assert isinstance(outline.root, dict)
    assert outline.root["a"][:5] == [1, 2.5, "text", None, True]
    assert f"{__name__}.Model" in {each.name for each in objects_of(outline.root)}
    assert isinstance(outline.root["d"], PickledObject)


def test_a_pickle_that_is_cut_off_still_names_what_came_before(tmp_path: Path) -> None:
    whole = pickled("sklearn.svm._classes.SVC", {"n_features_in_": 3, "rest": "x" * 500})
    for cut in range(60, len(whole), 7):
        path = tmp_path / "model.pkl"
        path.write_bytes(whole[:cut])
        assert "sklearn.svm._classes.SVC" in refused(path, tmp_path).found
    with pytest.raises(PickleError):
        read_pickle(io.BytesIO(b"no pickle"))


class Bomb:
    """Would write a file where it was unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, (str(self.path), "w"))


def test_a_pickle_is_never_run(tmp_path: Path) -> None:
    path = tmp_path / "model.pkl"
    path.write_bytes(pickle.dumps(Bomb(tmp_path / "written")))
    assert "a pickled" in refused(path, tmp_path).found
    assert not (tmp_path / "written").exists()


def zipped(**members: str | bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members.items():
                archive.writestr(name.replace("__", "/").replace("_dot_", "."), content)

    return write


def content(data: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(data)

    return write


def safetensors(header: dict[str, Any]) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text


WEIGHT = {"conv1.weight": {"dtype": "F32", "shape": [64, 3, 7, 7], "data_offsets": [0, 0]}}
CLASSIFIER = safetensors({
    "base_model.model.classifier.dense.weight": {"dtype": "F32", "shape": [32, 32], "data_offsets": [0, 0]},
    "base_model.model.classifier.out_proj.weight": {"dtype": "F32", "shape": [5, 32], "data_offsets": [0, 0]},
})  # fmt: skip
"""Weights beside an adapter: the last layer of a classifier of five classes."""
GRAPH = part(1, part(1, b"x") + part(2, b"Placeholder")) + part(1, part(1, b"y") + part(2, b"Relu") + part(3, b"x"))
TENSOR = part(1, b"x:0") + number(2, 1) + part(3, part(2, number(1, 4)))
SIGNATURE = part(1, part(1, b"x") + part(2, TENSOR)) + part(2, part(1, b"y") + part(2, TENSOR))
SAVED = number(1, 1) + part(2, part(5, part(1, b"serving_default") + part(2, SIGNATURE)))

KERAS = zipped(config_dot_json="{}", metadata_dot_json='{"keras_version": "3.9.0"}', model_dot_weights_dot_h5="")
DUMP = b'{"name": "tree", "max_feature_idx": 3, "num_tree_per_iteration": 1}'
SERVED = zipped(**{"MAR-INF__MANIFEST_dot_json": "{}", "net_dot_pt": ""})
OPTIONS = pickled("argparse.Namespace", {"epochs": 3})
LINEAR = pickled("torch.nn.modules.linear.Linear", {"_modules": {}})
CHECKPOINT = (
    b"\x80\x04}("
    + b"".join(
        pickle.dumps(key, protocol=2)[2:-1] + value[2:-1] for key, value in (("args", OPTIONS), ("model", LINEAR))
    )
    + b"u."
)
"""A mapping of a trainer's options and a module."""


def skops(name: str, **state: Any) -> dict[str, Any]:
    """A node of skops' schema: an object with numbers, texts, lists, tuples and objects in its state."""
    module, _, cls = name.rpartition(".")

    def node(value: Any) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        if isinstance(value, list | tuple):
            loader = "TupleNode" if isinstance(value, tuple) else "ListNode"
            return {"__loader__": loader, "content": [node(each) for each in value]}
        return {"__loader__": "JsonNode", "content": json.dumps(value)}

    content = {"__loader__": "DictNode", "content": {key: node(value) for key, value in state.items()}}
    return {"__loader__": "ObjectNode", "__module__": module, "__class__": cls, "content": content}


def skops_texts(*texts: str) -> dict[str, Any]:
    """A node of a NumPy array of texts."""
    nodes = [{"__loader__": "JsonNode", "content": json.dumps(each)} for each in texts]
    return {"__loader__": "NdArrayNode", "type": "json", "content": nodes}


SKOPS = json.dumps(
    skops("sklearn.linear_model._logistic.LogisticRegression", n_features_in_=4, _sklearn_version="1.5.2")
)
FILES: list[tuple[str, Callable[[Path], None], str, str]] = [
    ("a.keras", KERAS, "a model of Keras 3.9.0", 'keras.saving.load_model("a.keras")'),
    ("a.h5", content(b"\x89HDF\r\n\x1a\n" + b"\0model_config\0"), "a model of Keras", "tf2onnx.convert --saved-model"),
    ("w.h5", content(b"\x89HDF\r\n\x1a\n" + b"\0layers\0"), "weights of Keras alone", 'model.load_weights("w.h5")'),
    ("a.tflite", content(b"\x1c\0\0\0TFL3"), "TensorFlow Lite", "--tflite a.tflite --opset 17 --output a.onnx"),
    ("a.pb", content(GRAPH), "inputs x and outputs y", "--graphdef a.pb --inputs x:0 --outputs y:0"),
    ("a.gguf", content(b"GGUF\3\0\0\0"), "llama.cpp", "a server for language models"),
    ("a.pmml", content(b'<?xml version="1.0"?>\n<PMML version="4.4">'), "PMML", "add what it was written from"),
    ("a.cbm", content(b"CBM1\0\0"), "CatBoost", 'catboost.CatBoost().load_model("a.cbm")'),
    ("a.json", content(b'{"model_info": {"a": 1}, "features_info": {}}'), "CatBoost", 'format="json"'),
    ("a.json", content(b'[ { "nodeid": 0, "leaf": 1 } ]'), "XGBoost's dump", "save_model('model.json')"),
    ("a.json", content(DUMP), "LightGBM's dump", "save"),
    ("a.mlmodel", content(number(1, 5) + part(2, b"") + part(500, b"")), "Core ML", "PyTorch or TensorFlow"),
    ("a.bin", content(safetensors(WEIGHT)), "conv1.weight [64, 3, 7, 7]", "torch.rand(2, 3, 224, 224)"),
    ("a.pt2", zipped(a__archive_format="pt2"), "torch.export.save", 'torch.export.load("a.pt2")'),
    ("a.mar", SERVED, "TorchServe", "tritonstack add a/net.pt"),
    ("a.npz", zipped(x_dot_npy=""), "arrays of NumPy", "tritonstack invoke MODEL"),
    ("a.ort", content(b"\x18\0\0\0ORTM"), "own format (.ort)", "the ONNX file"),
    ("x.pkl", content(pickled("xgboost.sklearn.XGBClassifier", {})), "of XGBoost", "onnxmltools.convert_xgboost("),
    ("x.pkl", content(pickled("lightgbm.basic.Booster", {})), "of LightGBM", "model.num_feature()"),
    ("x.pkl", content(pickled("catboost.core.CatBoost", {})), "catboost.core.CatBoost", 'joblib.load("x.pkl")'),
    ("x.pkl", content(pickled("mine.Model", {})), "classes of mine", "tritonstack docs python-models"),
    ("x.pkl", content(pickle.dumps({"scaler": 1})), "a pickled Python object", "tritonstack docs python-models"),
    ("x.pt", zipped(x__data_dot_pkl=pickled("ultralytics.nn.tasks.DetectionModel", {})), "Ultralytics", "yolo export"),
    ("x.pt", zipped(x__data_dot_pkl=pickled("mine.Net", {})), "a pickled mine.Net of PyTorch", "weights_only=False"),
    ("x.pt", zipped(x__data_dot_pkl=CHECKPOINT), "of PyTorch", 'weights_only=False)["model"]; torch.onnx.export('),
    ("a.skops", zipped(schema_dot_json='{"__loader__": 1}'), "a model of skops", 'skops.io.load("a.skops", trusted='),
    ("a.skops", zipped(schema_dot_json=SKOPS), "LogisticRegression of scikit-learn 1.5.2", '("features", Float'),
]  # fmt: skip


@pytest.mark.parametrize(("file", "write", "found", "advice"), FILES)
def test_a_file_of_a_framework_is_refused_with_its_own_conversion(  # noqa: PLR0917  (a row of the table)
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, write: Callable[[Path], None], found: str, advice: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path(file))
    problem = refused(Path(file), tmp_path)
    assert found in problem.found
    assert advice in problem.advice
    Path(file).rename("model")  # by content: the name says nothing
    assert found in refused(Path("model"), tmp_path).found


@pytest.mark.parametrize(
    ("files", "found", "advice"),
    [
        ({"saved_model.pb": SAVED}, "serving_default takes x FP32 [4] and gives y", "--signature_def serving_default"),
        ({"saved_model.pb": number(1, 1) + part(2, b"")}, "without a signature", "tf.saved_model.save("),
        (
            {"config.json": b'{"architectures": ["BertForTokenClassification"]}', "model.safetensors": b""},
            "weights of BertForTokenClassification",
            "--model net --task token-classification net-onnx && tritonstack add net-onnx --name net",
        ),
        (
            {"config.json": b'{"architectures": ["LlamaForCausalLM"]}', "model-00001-of-00002.safetensors": b""},
            "generates text token by token",
            "a server for language models",
        ),
        ({"adapter_config.json": b"{}", "adapter_model.safetensors": b""}, "LoRA", 'save_pretrained("net-merged")'),
        (
            {"adapter_config.json": b'{"task_type": "TOKEN_CLS"}', "adapter_model.safetensors": b""},
            "adapter weights (LoRA)",
            "--task token-classification net-onnx && tritonstack add net-onnx --name net",
        ),
        (
            {"adapter_config.json": b'{"task_type": "SEQ_CLS"}', "adapter_model.safetensors": CLASSIFIER},
            "adapter weights (LoRA)",
            "AutoPeftModelForSequenceClassification.from_pretrained(given, num_labels=5)",
        ),
        (
            {"adapter_config.json": b'{"task_type": "CAUSAL_LM"}', "adapter_model.safetensors": b""},
            "generates text token by token",
            "a server for language models",
        ),
        ({"MLmodel": b"", "model.onnx": b""}, "MLflow with model.onnx", "tritonstack add net/model.onnx --name net"),
        (
            {"MLmodel": b"", "model.pkl": IRIS},
            "MLflow with model.pkl: a pickled sklearn",
            " && tritonstack add net.onnx",
        ),
        ({"MLmodel": b"flavors:"}, "MLflow with no file of a model", "serve it by a Python model"),
        ({"Manifest.json": b"{}", "Data/x": b""}, "Core ML", "PyTorch or TensorFlow"),
    ],
)
def test_a_folder_of_a_framework_is_refused_with_its_own_conversion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes], found: str, advice: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, data in files.items():
        (Path("net") / name).parent.mkdir(parents=True, exist_ok=True)
        (Path("net") / name).write_bytes(data)
    problem = refused(Path("net"), tmp_path)
    assert found in problem.found
    assert advice in problem.advice


def test_columns_of_a_pipeline_of_skops_are_inputs_and_one_command_makes_onnx_of_it(tmp_path: Path) -> None:
    """As skops writes it of a ColumnTransformer over a column of numbers and one of texts, and a classifier."""
    encoder = skops("sklearn.preprocessing._encoders.OneHotEncoder", categories_=[skops_texts("Oslo", "Rome")])
    columns = skops(
        "sklearn.compose._column_transformer.ColumnTransformer",
        transformers_=[("scale", "passthrough", ["age"]), ("city", encoder, ["city"])],
        feature_names_in_=skops_texts("age", "city"),
        _sklearn_version="1.5.2",
    )
    path = tmp_path / "churn.skops"
    zipped(schema_dot_json=json.dumps(skops("sklearn.pipeline.Pipeline", steps=[("columns", columns)])))(path)
    problem = refused(path, tmp_path)
    assert problem.found.startswith(
        "a model of skops: sklearn.pipeline.Pipeline of scikit-learn 1.5.2, which takes age"
    )
    assert '[("age", FloatTensorType([None, 1])), ("city", StringTensorType([None, 1]))]' in problem.advice
    assert "scikit-learn==1.5.2 skl2onnx pandas skops" in problem.advice
    assert problem.advice.endswith(" && tritonstack add churn.onnx")


def test_a_saved_model_in_tritons_layout_needs_a_release_with_its_backend(tmp_path: Path) -> None:
    place = tmp_path / "net/1/model.savedmodel/saved_model.pb"
    place.parent.mkdir(parents=True)
    place.write_bytes(SAVED)
    problem = refused(tmp_path / "net", tmp_path, release="25.09")
    assert "the image of release 25.09 has no backend tensorflow" in problem.found
    assert f"--saved-model {place.parent} " in problem.advice
    assert problem.advice.endswith(" && tritonstack add net.onnx")
    assert (
        problem.field != refused(tmp_path / "net", tmp_path, release="24.09").field
    )  # there config.pbtxt is asked for


def test_what_triton_loads_is_none_of_these() -> None:
    for path in sorted(FIXTURES.iterdir()):
        if path.suffix in (".onnx", ".json", ".ubj", ".txt", ".tl") or path.name == "pair.pt":
            assert framework_model(path) is None, path.name


def test_names_from_a_file_stay_literals_of_the_command(tmp_path: Path) -> None:
    path = tmp_path / "it's; rm -rf $HOME.pkl"
    path.write_bytes(pickle.dumps({'"]); evil(': 1}) and IRIS)
    problem = refused(path, tmp_path)
    words = shlex.split(problem.advice)
    program = words[words.index("-c") + 1]
    assert compile(program, "program", "exec")
    assert json.dumps(str(path)) in program
    assert words[-1] == "it-s-rm-rf-home.onnx"


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("iris.onnx").write_bytes(b"")
    Path("iris.pkl").write_bytes(IRIS)
    assert refused(Path("iris.pkl"), tmp_path).advice.endswith(" && tritonstack add iris-2.onnx")
