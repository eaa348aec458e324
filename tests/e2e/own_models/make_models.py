"""Models as people bring them, by the libraries that people train and export with, and what these libraries compute.

    python make_models.py FOLDER SEED [KIND…]

Another seed is another version: the same tensors, other weights. Run by the interpreter of ``.envs/trainers``. Each
kind makes ``FOLDER/<kind>/`` with what ``tritonstack add`` is given, and ``FOLDER/<kind>.json``: inputs of a request
and the outputs that the library itself computes for it, in KServe's JSON form; ``text`` in place of inputs where the
request is a text. Weights are random, files and formats are real.
"""

# mypy: ignore-errors
# None of these libraries is in the environment that checks types.

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np

DATATYPES = {"float32": "FP32", "float64": "FP64", "int64": "INT64", "int32": "INT32", "object": "BYTES"}
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "seven", "small", "boats", "sail", "slowly", "past", "the", "harbour", ".")
TEXT = "Seven small boats sail slowly past the harbour."
SEED = int(sys.argv[2]) if __name__ == "__main__" else 0
ROWS = np.random.default_rng(SEED).uniform(0, 1, (200, 4)).astype(np.float32)
CLASSES = (ROWS.sum(axis=1) > 2).astype(np.int64)
THREE = ROWS[:3]


def tensors(**arrays):
    """Arrays in KServe's JSON form."""
    made = {name: np.asarray(array) for name, array in arrays.items()}
    return [
        {"name": name, "datatype": DATATYPES[str(each.dtype)], "shape": list(each.shape), "data": each.ravel().tolist()}
        for name, each in made.items()
    ]


def sklearn_pipeline(folder):
    """A pipeline over a column of strings and one of numbers, through skl2onnx."""
    import pandas
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    table = pandas.DataFrame({"age": [20.0, 40.0, 60.0, 30.0], "city": ["Oslo", "Rome", "Rome", "Oslo"]})
    columns = ColumnTransformer([("scale", StandardScaler(), ["age"]), ("city", OneHotEncoder(), ["city"])])
    model = make_pipeline(columns, LogisticRegression()).fit(table, [0, 1, 1, 0])
    given = [("age", FloatTensorType([None, 1])), ("city", StringTensorType([None, 1]))]
    made = to_onnx(model, initial_types=given, options={"zipmap": False})
    (folder / "churn.onnx").write_bytes(made.SerializeToString())
    asked = pandas.DataFrame({"age": [25.0, 55.0], "city": ["Rome", "Oslo"]})
    return {
        "inputs": tensors(age=asked[["age"]].to_numpy(np.float32), city=asked[["city"]].to_numpy(dtype=object)),
        "outputs": tensors(probabilities=model.predict_proba(asked).astype(np.float32)),
    }


def lightgbm_onnx(folder):
    """A classifier of LightGBM, through onnxmltools."""
    import lightgbm
    from onnxmltools import convert_lightgbm
    from onnxmltools.convert.common.data_types import FloatTensorType

    model = lightgbm.LGBMClassifier(n_estimators=10, verbose=-1).fit(ROWS, CLASSES)
    made = convert_lightgbm(model, initial_types=[("rows", FloatTensorType([None, 4]))], zipmap=False)
    (folder / "leaves.onnx").write_bytes(made.SerializeToString())
    return {
        "inputs": tensors(rows=THREE),
        "outputs": tensors(probabilities=model.predict_proba(THREE).astype(np.float32)),
    }


def xgboost_onnx(folder):
    """A classifier of XGBoost, through onnxmltools."""
    import xgboost
    from onnxmltools import convert_xgboost
    from onnxmltools.convert.common.data_types import FloatTensorType

    model = xgboost.XGBClassifier(n_estimators=10).fit(ROWS, CLASSES)
    made = convert_xgboost(model, initial_types=[("rows", FloatTensorType([None, 4]))])
    (folder / "boosted.onnx").write_bytes(made.SerializeToString())
    return {"inputs": tensors(rows=THREE), "outputs": tensors(probabilities=model.predict_proba(THREE))}


def _cnn():
    import torch

    torch.manual_seed(SEED)
    layers = [torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(8, 5)).eval()
    image = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        return model, image, model(image).numpy()


def cnn_onnx(folder):
    """A convolutional network of PyTorch, as its exporter writes it today."""
    import torch

    model, image, logits = _cnn()
    batch = torch.export.Dim("batch")
    exported = torch.onnx.export(
        model, (image,), input_names=["image"], output_names=["logits"], dynamic_shapes=({0: batch},), dynamo=True
    )
    exported.save(folder / "cnn.onnx")
    return {"inputs": tensors(image=image.numpy()), "outputs": tensors(logits=logits)}


def cnn_torchscript(folder):
    """The same network, traced."""
    import torch

    model, image, logits = _cnn()
    torch.jit.trace(model, image).save(str(folder / "traced.pt"))
    return {"inputs": tensors(input=image.numpy()), "outputs": tensors(OUTPUT__0=logits)}


def _tokenizer(folder):
    """A tokenizer of words, saved as Hugging Face's libraries do."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.WordPiece({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    marks = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    fast = PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=64, **marks)
    fast.save_pretrained(folder)
    return fast


def _encoder(kind):
    """A classifier of texts of two layers, with random weights."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, DistilBertConfig
    from transformers import DistilBertForSequenceClassification as DistilBert

    torch.manual_seed(SEED)
    size, labels = {"vocab_size": len(WORDS), "max_position_embeddings": 64}, {0: "calm", 1: "storm"}
    if kind == "bert":
        shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
        return BertForSequenceClassification(BertConfig(**size, **shape, id2label=labels)).eval()
    return DistilBert(DistilBertConfig(**size, dim=32, n_layers=2, n_heads=2, hidden_dim=64, id2label=labels)).eval()


def _texts(folder, kind):
    """An encoder exported by PyTorch beside its tokenizer.json, and its logits for a text."""
    import torch

    model, tokenizer = _encoder(kind), _tokenizer(folder / "tokenizer")
    given = tokenizer(TEXT, return_tensors="pt", return_token_type_ids=kind == "bert")
    names = [name for name in ("input_ids", "attention_mask", "token_type_ids") if name in given]
    model.config.return_dict = False
    free = {name: {0: "batch", 1: "length"} for name in names}
    with torch.no_grad():
        logits = model(**given)[0].numpy()
        torch.onnx.export(
            model, (), folder / f"{kind}.onnx", kwargs={name: given[name] for name in names}, input_names=names,
            output_names=["logits"], dynamic_axes={**free, "logits": {0: "batch"}}, dynamo=False, opset_version=17,
        )  # fmt: skip
    return {"text": TEXT, "outputs": tensors(logits=logits)}


def encoder_of_two_inputs(folder):
    """DistilBERT's shape: input_ids and attention_mask."""
    return _texts(folder, "distilbert")


def encoder_of_three_inputs(folder):
    """BERT's shape: token_type_ids, too."""
    return _texts(folder, "bert")


def _saved_encoder(folder):
    """A folder as save_pretrained writes it: config.json, model.safetensors and the tokenizer; its logits."""
    import torch

    model, tokenizer = _encoder("bert"), _tokenizer(folder)
    model.save_pretrained(folder)
    with torch.no_grad():
        logits = model(**tokenizer(TEXT, return_tensors="pt")).logits.numpy()
    return {"text": TEXT, "outputs": tensors(logits=logits)}


def optimum_folder(folder):
    """The folder that optimum exports of a saved classifier."""
    known = _saved_encoder(folder.parent / "saved-for-optimum")
    program = Path(sys.executable).with_name("optimum-cli")
    command = [program, "export", "onnx", "--model", folder.parent / "saved-for-optimum"]
    subprocess.run([*command, "--task", "text-classification", folder / "storms"], check=True, stdin=subprocess.DEVNULL)
    return known


def safetensors(folder):
    """A folder of Hugging Face's libraries with weights alone, which no backend loads."""
    return _saved_encoder(folder / "weights")


def saved_model(folder):
    """A SavedModel of Keras, which no backend of newer releases loads."""
    import keras

    keras.utils.set_random_seed(SEED)
    model = keras.Sequential([keras.layers.Input((4,), name="rows"), keras.layers.Dense(3, activation="softmax")])
    model.export(folder / "flowers", verbose=False)
    return {"inputs": tensors(rows=THREE), "outputs": tensors(output_0=np.asarray(model(THREE)))}


_SLUGS = """
import numpy as np
import triton_python_backend_utils as pb_utils
from rapidfuzz.distance import Levenshtein
from slugify import slugify


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.set_max_batch_size(8)
        config.add_input({"name": "title", "data_type": "TYPE_STRING", "dims": [1]})
        config.add_output({"name": "slug", "data_type": "TYPE_STRING", "dims": [1]})
        config.add_output({"name": "changes", "data_type": "TYPE_INT32", "dims": [1]})
        return config

    def execute(self, requests):
        responses = []
        for request in requests:
            titles = [row[0].decode() for row in pb_utils.get_input_tensor_by_name(request, "title").as_numpy()]
            slugs = [slugify(title, separator="SEPARATOR") for title in titles]
            changes = [[Levenshtein.distance(*pair)] for pair in zip(titles, slugs)]
            slug = pb_utils.Tensor("slug", np.array([[each] for each in slugs], dtype=object))
            tensors = [slug, pb_utils.Tensor("changes", np.array(changes, dtype=np.int32))]
            responses.append(pb_utils.InferenceResponse(output_tensors=tensors))
        return responses
"""


def python_packages(folder):
    """A program with two packages of the index, one of them (rapidfuzz) compiled."""
    separator = "-_"[SEED % 2]
    _write(folder / "slugs", {"config.pbtxt": 'backend: "python"\n', "1/model.py": _slugs(separator)})
    return _known_slugs(separator)


def _slugs(separator):
    return _SLUGS.replace("SEPARATOR", separator)


def _known_slugs(separator):
    titles = np.array([["Seven small boats"], ["Über den Hafen"]], dtype=object)
    slugs = np.array(
        [[f"seven{separator}small{separator}boats"], [f"uber{separator}den{separator}hafen"]], dtype=object
    )
    return {"inputs": tensors(title=titles), "outputs": tensors(slug=slugs, changes=np.int32([[3], [4]]))}


PACKED_PYTHON = "3.12"
"""Of the environment that conda-pack packs: the Python of Triton's images from 24.11 on."""
_NOT_COPIED = (
    "site-packages",
    "test",
    "__pycache__",
    "idlelib",
    "ensurepip",
    "tkinter",
    "config-*",
    "EXTERNALLY-MANAGED",
)


def conda_packed(folder):
    """The same program with its packages in an environment that conda-pack packs.

    conda itself is not on the package index: the environment's prefix is a copy of another Python of that version,
    with its library, in which the installer puts the packages. What packs it is conda-pack.
    """
    uv = str(next(Path(sys.executable).parents[2].glob("uv-*/bin/uv")))
    base, standard, libraries, library = _another_python()
    prefix = folder.parent / "prefix"
    packages = prefix / f"lib/python{PACKED_PYTHON}/site-packages"
    shutil.copytree(standard, packages.parent, ignore=shutil.ignore_patterns(*_NOT_COPIED))
    shutil.copy(Path(libraries) / library, prefix / "lib" / library)
    _write(prefix, {"conda-meta/history": ""})
    (prefix / "bin").mkdir()
    shutil.copy(base, prefix / f"bin/python{PACKED_PYTHON}")
    for name in ("python", "python3"):
        (prefix / "bin" / name).symlink_to(f"python{PACKED_PYTHON}")
    names = ["numpy<2", "python-slugify", "rapidfuzz"]
    options = ["--quiet", "--no-build", "--python-version", PACKED_PYTHON, "--target", str(packages)]
    subprocess.run([uv, "pip", "install", *options, *names], check=True, stdin=subprocess.DEVNULL)
    separator = "-_"[SEED % 2]
    _write(folder / "titles", {"config.pbtxt": 'backend: "python"\n', "1/model.py": _slugs(separator)})
    packing = [str(Path(sys.executable).with_name("conda-pack")), "--prefix", str(prefix), "--compress-level", "1"]
    output = str(folder / "titles/env.tar.gz")
    subprocess.run([*packing, "--quiet", "--output", output], check=True, stdin=subprocess.DEVNULL)
    shutil.rmtree(prefix)
    return _known_slugs(separator)


def _another_python():
    """Program, standard library, folder of the library and its name, of an interpreter of PACKED_PYTHON."""
    wanted = "sysconfig.get_path('stdlib'), sysconfig.get_config_var('LIBDIR'), sysconfig.get_config_var('INSTSONAME')"
    question = f"import json, sys, sysconfig; print(json.dumps([sys.executable, {wanted}]))"
    managed = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob(f"versions/{PACKED_PYTHON}.*/bin/python3")
    fetched = Path(sys.executable).parents[2].glob(f"python/*/bin/python{PACKED_PYTHON}")
    for program in (f"python{PACKED_PYTHON}", *map(str, [*fetched, *managed])):
        if shutil.which(program) is None:
            continue
        asked = subprocess.run([program, "-I", "-c", question], capture_output=True, check=False)
        found = json.loads(asked.stdout) if not asked.returncode else []
        if found and Path(found[2], found[3]).is_file():
            return found
    raise SystemExit(f"no Python {PACKED_PYTHON} with its shared library: apt-get install libpython{PACKED_PYTHON}")


_HALVES = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        found = [pb_utils.get_input_tensor_by_name(request, "pixels").as_numpy() / 255 for request in requests]
        tensors = [pb_utils.Tensor("rows", each.astype(np.float32)) for each in found]
        return [pb_utils.InferenceResponse(output_tensors=[tensor]) for tensor in tensors]
"""
_HALVES_CONFIG = """
name: "scale"
backend: "python"
max_batch_size: 8
input [ { name: "pixels" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "rows" data_type: TYPE_FP32 dims: [ 4 ] } ]
"""
_ENSEMBLE_CONFIG = """
name: "scaled"
platform: "ensemble"
max_batch_size: 8
input [ { name: "pixels" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "probabilities" data_type: TYPE_FP32 dims: [ 2 ] } ]
ensemble_scheduling { step [
  { model_name: "scale" model_version: -1 input_map { key: "pixels" value: "pixels" }
    output_map { key: "rows" value: "scaled_rows" } },
  { model_name: "classify" model_version: -1 input_map { key: "rows" value: "scaled_rows" }
    output_map { key: "probabilities" value: "probabilities" } }
] }
"""
_CLASSIFY_CONFIG = """
name: "classify"
platform: "onnxruntime_onnx"
max_batch_size: 8
"""


def _write(folder, files):
    for name, content in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.lstrip("\n").encode())


def _regression():
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression().fit(ROWS, CLASSES)
    given = [("rows", FloatTensorType([None, 4]))]
    made = to_onnx(model, initial_types=given, options={"zipmap": False})
    return model, made.SerializeToString()


def ensemble(folder):
    """An ensemble of a Python step and an ONNX step."""
    model, made = _regression()
    files = {
        "scale/config.pbtxt": _HALVES_CONFIG,
        "scale/1/model.py": _HALVES,
        "classify/config.pbtxt": _CLASSIFY_CONFIG,
        "classify/1/model.onnx": made,
        "scaled/config.pbtxt": _ENSEMBLE_CONFIG,
        "scaled/1/.gitkeep": "",
    }
    _write(folder / "scaled-repository", files)
    return {
        "inputs": tensors(pixels=THREE * 255),
        "outputs": tensors(probabilities=model.predict_proba(THREE).astype(np.float32)),
    }


def model_archive(folder):
    """SageMaker's model.tar.gz with a Triton model repository."""
    model, made = _regression()
    files = {"rates/config.pbtxt": 'name: "rates"\nplatform: "onnxruntime_onnx"\nmax_batch_size: 16\n'}
    files["rates/1/model.onnx"] = made
    _write(folder / "unpacked", files)
    with tarfile.open(folder / "model.tar.gz", "w:gz") as tar:
        tar.add(folder / "unpacked" / "rates", "rates")
    return {
        "inputs": tensors(rows=THREE),
        "outputs": tensors(probabilities=model.predict_proba(THREE).astype(np.float32)),
    }


def recurrent(folder):
    """A GRU over sequences of any length."""
    import torch

    torch.manual_seed(SEED)

    class Recurrent(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.cells, self.head = torch.nn.GRU(6, 12, batch_first=True), torch.nn.Linear(12, 2)

        def forward(self, steps):
            return self.head(self.cells(steps)[0][:, -1])

    model, steps = Recurrent().eval(), torch.rand(2, 9, 6)
    axes = {"steps": {0: "batch", 1: "length"}, "scores": {0: "batch"}}
    with torch.no_grad():
        torch.onnx.export(
            model, (steps,), folder / "recurrent.onnx", input_names=["steps"], output_names=["scores"],
            dynamic_axes=axes, dynamo=False, opset_version=17,
        )  # fmt: skip
        return {"inputs": tensors(steps=steps.numpy()), "outputs": tensors(scores=model(steps).numpy())}


def external_data(folder):
    """A graph with 300 MB of weights in a file beside it."""
    import onnx
    from onnx import helper, numpy_helper

    width = 8660
    weights = np.random.default_rng(SEED).standard_normal((width, width), dtype=np.float32) / width
    value = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["rows", "weights"], ["scores"])], "wide",
        [helper.make_tensor_value_info("rows", value, ["batch", width])],
        [helper.make_tensor_value_info("scores", value, ["batch", width])],
        [numpy_helper.from_array(weights, "weights")],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save_model(made, folder / "wide.onnx", save_as_external_data=True, location="wide.bin")
    rows = np.random.default_rng(SEED + 1).uniform(0, 1, (1, width)).astype(np.float32)
    return {"inputs": tensors(rows=rows), "outputs": tensors(scores=rows @ weights)}


KINDS = (
    *(sklearn_pipeline, lightgbm_onnx, xgboost_onnx, cnn_onnx, cnn_torchscript, encoder_of_two_inputs),
    *(encoder_of_three_inputs, optimum_folder, python_packages, conda_packed, ensemble, model_archive),
    *(recurrent, external_data, saved_model, safetensors),
)


def main(folder, _seed, *wanted):
    """Make the kinds that are named, or all."""
    for make in KINDS:
        kind = make.__name__.replace("_", "-")
        if wanted and kind not in wanted:
            continue
        (folder / kind).mkdir(parents=True, exist_ok=True)
        (folder / f"{kind}.json").write_text(json.dumps(make(folder / kind)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
