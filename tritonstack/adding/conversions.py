"""Refusals of models that no Triton backend loads, each with the command that converts that very file, and adds it.

The command makes an environment of its own for the converter, so that neither the project's nor the user's changes.
Names that a file states (columns, signatures, keys) reach the command as literals of Python and quoted for the shell.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tritonstack.adding.additions import SUPPORTED, shape_text
from tritonstack.errors import Problem, listing
from tritonstack.lint.registry import shown
from tritonstack.model_files.framework_files import framework_model
from tritonstack.model_files.framework_model import Framework, FrameworkModel
from tritonstack.paths import LocalPaths

OPSET = 17
"""Of standard operators: ONNX Runtime of every release of the catalogue reads it."""
_OPSET_OF_PYTORCH = 18
"""The least that PyTorch's exporter writes."""
_SKLEARN_OPSETS = f'{{"": {OPSET}, "ai.onnx.ml": 3}}'
_BOOSTED_OPSET = 15
PYTHON_MODEL = "or serve it by a Python model, which loads it itself: tritonstack docs python-models"


def conversion_command(*, tool: str, packages: Sequence[str], runs: Sequence[Sequence[str]], add: Sequence[str]) -> str:
    """The command of a conversion: an environment below ``.local/convert``, its packages, programs of it, and ``add``.

    ``runs``: each the words of a program and its arguments, the program's name first.
    """
    place = LocalPaths.from_environment().root / "convert" / tool
    folder = shown(place)
    steps = [["python3", "-m", "venv", folder], [f"{folder}/bin/pip", "install", "-q", *packages]]
    steps += [[f"{folder}/bin/{words[0]}", *words[1:]] for words in runs]
    return " && ".join(shlex.join(step) for step in [*steps, ["tritonstack", "add", *add]])


def python_program(*statements: str) -> list[str]:
    """A program of a few statements as words of a command."""
    return ["python", "-c", "; ".join(statements)]


def literal(text: str) -> str:
    """A text as a literal of Python, in double quotes: the shell's single ones around a program stay readable."""
    return json.dumps(text, ensure_ascii=False)


def new_file(name: str, suffix: str = ".onnx") -> str:
    """The name of a file in the working folder that is not there yet."""
    names = (f"{name}{number}{suffix}" for number in ("", *(f"-{count}" for count in range(2, 100))))
    return next(each for each in names if not Path(each).exists())


def refusal(model: FrameworkModel, *, name: str) -> Problem:
    """Why a file of a framework is not added as it is, and what makes and adds a file of it that is.

    ``name``: of the model folder that shall be.
    """
    found, advice = _FORMATS[model.format](model, name)
    return Problem(file=str(model.path), found=found, allowed=SUPPORTED, advice=advice)


def _named(model: FrameworkModel, what: str) -> str:
    """What is found, with the modules that a pickle needs beside the library's."""
    if not model.own_modules:
        return what
    return f"{what}, with classes of {listing(model.own_modules)}: the command works where these can be imported"


def _load(model: FrameworkModel) -> str:
    loaded = f"joblib.load({literal(str(model.path))})"
    return f"model = {loaded}" if model.key is None else f"model = {loaded}[{literal(model.key)}]"


def _sklearn(model: FrameworkModel, name: str) -> tuple[str, str]:
    found, command = _sklearn_command(model, name, libraries=["joblib"], load=_load(model))
    return _named(model, f"a pickled {found}"), command


def _sklearn_command(model: FrameworkModel, name: str, *, libraries: Sequence[str], load: str) -> tuple[str, str]:
    """What a model of scikit-learn is, and the command that makes ONNX of it; ``load``: statement that loads it."""
    version = f" of scikit-learn {model.version}" if model.version else ""
    columns = ", ".join(f"{each.name}{' (text)' if each.is_text else ''}" for each in model.columns)
    where = f" in a mapping, by the key {model.key!r}" if model.key is not None else ""
    found = f"{model.made_by}{version}{where}{f', which takes {columns}' if columns else ''}"
    types = [
        f"({literal(each.name)}, {'String' if each.is_text else 'Float'}TensorType([None, {each.width}]))"
        for each in model.columns
    ]
    if not types:
        types = ['("features", FloatTensorType([None, model.n_features_in_]))']
    output = new_file(name)
    # Triton's images have no other locale: lint rule onnx-locale.
    vectorizers = [each.rpartition(".")[2] for each in model.vectorizers]
    splitting = "".join(f', {each}: {{"locale": "C.UTF-8"}}' for each in vectorizers)
    # Beside options of a class skl2onnx takes none for all models: then the last step's alone.
    zipmap = 'id(model.steps[-1][1]): {"zipmap": False}' if vectorizers else '"zipmap": False'
    imports = [
        f"import {', '.join(libraries)}, skl2onnx",
        "from skl2onnx.common.data_types import FloatTensorType, StringTensorType",
    ]
    program = python_program(
        *imports,
        *(f"from sklearn.feature_extraction.text import {each}" for each in vectorizers),
        *_registered(model.boosted),
        load,
        f"graph = skl2onnx.to_onnx(model, initial_types=[{', '.join(types)}], target_opset={_SKLEARN_OPSETS}, "
        f'options={{**({{{zipmap}}} if hasattr(model, "classes_") else {{}}){splitting}}})',
        f'open({literal(output)}, "wb").write(graph.SerializeToString())',
    )
    pinned = f"scikit-learn=={model.version}" if model.version else "scikit-learn"
    trees = {"xgboost" if "XGB" in each else "lightgbm" for each in model.boosted}
    more = [each.split(".")[0] for each in libraries if each != "joblib"]  # which scikit-learn brings
    packages = [pinned, "skl2onnx", "pandas", *more, *(["onnxmltools"] if trees else []), *sorted(trees)]
    return found, conversion_command(tool="sklearn", packages=packages, runs=[program], add=[output])


_OPTIONS = ', options={"nocl": [True, False], "zipmap": [True, False, "columns"]}'


def _registered(boosted: Sequence[str]) -> Iterator[str]:
    """Statements that make skl2onnx convert XGBoost's and LightGBM's models inside a pipeline."""
    for full in dict.fromkeys(boosted):
        library, _, cls = full.split(".")[0], None, full.rpartition(".")[2]
        if library not in ("xgboost", "lightgbm"):
            continue
        shapes = "classifier" if cls.endswith("Classifier") else "regressor"
        module, alias = ("XGBoost", cls) if library == "xgboost" else ("LightGbm", f"LightGbm{cls}")
        options = (
            ", options={'nocl': [True, False], 'zipmap': [True, False, 'columns']}" if shapes == "classifier" else ""
        )
        yield f"from {library} import {cls}"
        yield f"from onnxmltools.convert.{library}.operator_converters.{module} import convert_{library}"
        yield f"from skl2onnx.common.shape_calculator import calculate_linear_{shapes}_output_shapes as {shapes}"
        yield f"skl2onnx.update_registered_converter({cls}, {literal(alias)}, {shapes}, convert_{library}{options})"


def _boosted(model: FrameworkModel, name: str) -> tuple[str, str]:
    library = model.format
    if model.made_by.endswith(".Booster"):
        features = "model.num_features()" if library == "xgboost" else "model.num_feature()"
    else:
        features = "model.n_features_in_"
    output = new_file(name)
    program = python_program(
        "import joblib, onnxmltools", *boosted_statements(library, _load(model), features=features, output=output)
    )
    packages = ["onnxmltools", library, "scikit-learn", "joblib"]
    command = conversion_command(tool=library, packages=packages, runs=[program], add=[output])
    what = "XGBoost" if library == "xgboost" else "LightGBM"
    saved = 'model.save_model("model.json")' if library == "xgboost" else 'model.booster_.save_model("model.txt")'
    return _named(model, f"a pickled {model.made_by} of {what}"), f"{command}  # or save it for backend FIL: {saved}"


def boosted_statements(library: str, load: str, *, features: str | int, output: str) -> list[str]:
    """The statements that load a model of XGBoost or LightGBM and write its ONNX form."""
    types = f'initial_types=[("features", FloatTensorType([None, {features}]))]'
    more = "" if library == "xgboost" else ", zipmap=False"
    return [
        "from onnxmltools.convert.common.data_types import FloatTensorType",
        load,
        f"graph = onnxmltools.convert_{library}(model, {types}, target_opset={_BOOSTED_OPSET}{more})",
        f"onnxmltools.utils.save_model(graph, {literal(output)})",
    ]


def _catboost(model: FrameworkModel, name: str) -> tuple[str, str]:
    output, path = new_file(name), str(model.path)
    is_pickle = model.made_by.startswith("catboost.")
    form = ', format="json"' if model.key == "json" else ""
    load = _load(model) if is_pickle else f"model = catboost.CatBoost().load_model({literal(path)}{form})"
    program = python_program(
        f"import catboost, onnx{', joblib' if is_pickle else ''}",
        load,
        f'model.save_model({literal(output)}, format="onnx")',
        f"graph = onnx.load({literal(output)})",
        'maps = [each for each in graph.graph.node if each.op_type == "ZipMap"]',
        # Of a regressor the file states one axis, and gives two.
        "values = [onnx.helper.make_tensor_value_info(each.name, 1, [None, None]) for each in graph.graph.output[:1]]",
        "[graph.graph.output[0].CopyFrom(each) for each in values if not maps]",
        "scores = [onnx.helper.make_tensor_value_info(each.input[0], 1, [None, None]) for each in maps]",
        "[graph.graph.node.remove(each) for each in maps]",
        "[graph.graph.output[1].CopyFrom(each) for each in scores]",
        f"onnx.save(graph, {literal(output)})",
    )
    packages = ["catboost", "onnx", *(["joblib"] if is_pickle else [])]
    what = f"a pickled {model.made_by}" if is_pickle else "a model of CatBoost, as its save_model writes it"
    return _named(model, what), conversion_command(tool="catboost", packages=packages, runs=[program], add=[output])


_TENSORFLOW = ("tensorflow", "tf2onnx")


def _tf2onnx(source: Sequence[str], output: str) -> list[str]:
    return ["python", "-m", "tf2onnx.convert", *source, "--opset", str(OPSET), "--output", output]


def _saved_model(model: FrameworkModel, name: str) -> tuple[str, str]:
    signature = model.of_signature
    if signature is None:
        found = "a SavedModel of TensorFlow without a signature: nothing in it states inputs and outputs"
        return found, (
            "save it again with one, then add the folder: tf.saved_model.save(model, 'saved', "
            "signatures=model.__call__.get_concrete_function(tf.TensorSpec([None, 4], tf.float32, name='features')))"
        )
    inputs = ", ".join(f"{each.name} {each.datatype} {shape_text(each)}" for each in signature.inputs)
    outputs = ", ".join(each.name for each in signature.outputs)
    found = f"a SavedModel of TensorFlow; its signature {model.signature} takes {inputs} and gives {outputs}"
    output = new_file(name)
    source = ["--saved-model", str(model.path), "--tag", "serve", "--signature_def", model.signature]
    return found, conversion_command(
        tool="tensorflow", packages=_TENSORFLOW, runs=[_tf2onnx(source, output)], add=[output]
    )


def _keras(model: FrameworkModel, name: str) -> tuple[str, str]:
    output = new_file(name)
    folder = shown(LocalPaths.from_environment().root / "convert" / f"{name}-saved-model")
    export = python_program(
        "import keras", f"keras.saving.load_model({literal(str(model.path))}).export({literal(folder)})"
    )
    runs = [export, _tf2onnx(["--saved-model", folder], output)]
    found = f"a model of Keras{f' {model.version}' if model.version else ''}"
    return found, conversion_command(tool="tensorflow", packages=_TENSORFLOW, runs=runs, add=[output])


def _keras_weights(model: FrameworkModel, name: str) -> tuple[str, str]:
    whole = f"{name}.keras"
    found = "weights of Keras alone, without the layers, which are in the code that saved them"
    program = f"model.load_weights({literal(str(model.path))}); model.save({literal(whole)})"
    return found, f"in that code: {program}  # then: tritonstack add {whole}"


def _frozen_graph(model: FrameworkModel, name: str) -> tuple[str, str]:
    output = new_file(name)
    inputs, outputs = (",".join(f"{each}:0" for each in names) for names in (model.inputs, model.outputs))
    source = ["--graphdef", str(model.path), "--inputs", inputs, "--outputs", outputs]
    found = f"a frozen graph of TensorFlow with inputs {listing(model.inputs)} and outputs {listing(model.outputs)}"
    return found, conversion_command(
        tool="tensorflow", packages=_TENSORFLOW, runs=[_tf2onnx(source, output)], add=[output]
    )


def _tflite(model: FrameworkModel, name: str) -> tuple[str, str]:
    output = new_file(name)
    runs = [_tf2onnx(["--tflite", str(model.path)], output)]
    command = conversion_command(tool="tensorflow", packages=_TENSORFLOW, runs=runs, add=[output])
    return "a model of TensorFlow Lite", command


def _transformers(model: FrameworkModel, name: str) -> tuple[str, str]:
    output = new_file(name, "-onnx")
    export = ["optimum-cli", "export", "onnx", "--model", str(model.path), "--task", model.task, output]
    found = f"weights of {model.architecture} of transformers, whose code is in that library"
    add = [output, "--name", name]
    return found, conversion_command(tool="optimum", packages=["optimum-onnx[onnxruntime]"], runs=[export], add=add)


def _generation(model: FrameworkModel, _name: str) -> tuple[str, str]:
    found = f"weights of {model.architecture} of transformers, which generates text token by token"
    return found, f"{_LANGUAGE_SERVER}; {PYTHON_MODEL}"


_LANGUAGE_SERVER = "serve it by a server for language models"


_PEFT_TASKS = {
    "SEQ_CLS": ("SequenceClassification", "text-classification"),
    "TOKEN_CLS": ("TokenClassification", "token-classification"),
    "QUESTION_ANS": ("QuestionAnswering", "question-answering"),
    "FEATURE_EXTRACTION": ("FeatureExtraction", "feature-extraction"),
}
"""peft's task_type → the end of its class for it, and optimum's task."""
_PEFT_GENERATION = ("CAUSAL_LM", "SEQ_2_SEQ_LM")


def _peft(model: FrameworkModel, name: str) -> tuple[str, str]:
    found = "adapter weights (LoRA), which change another model's weights"
    if model.task in _PEFT_GENERATION:
        return f"{found}, and that one generates text token by token", f"{_LANGUAGE_SERVER}; {PYTHON_MODEL}"
    if model.task not in _PEFT_TASKS:
        line = f"model.merge_and_unload().save_pretrained({literal(f'{name}-merged')})"
        return found, f"merge them in the code that has the model: {line}  # then: tritonstack add {name}-merged"
    end, task = _PEFT_TASKS[model.task]
    # The base model mostly has no classifier: without its size transformers makes one of two classes.
    classes = "" if model.classes is None else f", num_labels={model.classes}"
    merged, output = shown(LocalPaths.from_environment().root / "convert" / f"{name}-merged"), new_file(name, "-onnx")
    program = python_program(
        "import os, peft, transformers",
        f"given = {literal(str(model.path))}",
        f"model = peft.AutoPeftModelFor{end}.from_pretrained(given{classes})",
        'base = model.peft_config["default"].base_model_name_or_path',
        f"model.merge_and_unload().save_pretrained({literal(merged)})",
        'own = os.path.exists(os.path.join(given, "tokenizer_config.json"))',
        f"transformers.AutoTokenizer.from_pretrained(given if own else base).save_pretrained({literal(merged)})",
    )
    export = ["optimum-cli", "export", "onnx", "--model", merged, "--task", task, output]
    packages = ["optimum-onnx[onnxruntime]", "peft"]
    add = [output, "--name", name]
    return found, conversion_command(tool="optimum", packages=packages, runs=[program, export], add=add)


def _example(model: FrameworkModel) -> str:
    """An input of the shape that the first weight suggests: of a convolution over images or signals, of a layer."""
    _, shape = model.first_weight or ("", ())
    if len(shape) == 4:
        return f"torch.rand(2, {shape[1]}, 224, 224)"
    if len(shape) == 3:
        return f"torch.rand(2, {shape[1]}, 128)"
    return f"torch.rand(2, {shape[1]})" if len(shape) == 2 else "torch.rand(2, 3, 224, 224)"


def _torch_export(model: FrameworkModel, output: str) -> str:
    names = 'input_names=["input"], output_names=["output"], dynamic_shapes=({0: torch.export.Dim("batch")},)'
    more = f"opset_version={_OPSET_OF_PYTORCH}, dynamo=True, external_data=False"
    return f"torch.onnx.export(model.eval(), ({_example(model)},), {literal(output)}, {names}, {more})"


_TORCH = ("torch", "onnxscript")
_SHAPE = "set the shape that your model takes in place of"


def _torch_module(model: FrameworkModel, name: str) -> tuple[str, str]:
    output = new_file(name)
    found = f"a pickled {model.made_by} of PyTorch: torch.save keeps no graph of it"
    if model.made_by.startswith("ultralytics."):
        made = str(model.path.with_suffix(".onnx"))
        runs = [["yolo", "export", f"model={model.path}", "format=onnx", f"opset={OPSET}"]]
        command = conversion_command(tool="ultralytics", packages=["ultralytics", "onnx"], runs=runs, add=[made])
        return f"a pickled {model.made_by} of Ultralytics", command
    load = f'torch.load({literal(str(model.path))}, map_location="cpu", weights_only=False)'
    program = python_program(
        "import torch",
        f"model = {load}{'' if model.key is None else f'[{literal(model.key)}]'}",
        _torch_export(model, output),
    )
    command = conversion_command(tool="torch", packages=_TORCH, runs=[program], add=[output])
    return _named(model, found), f"{command}  # {_SHAPE} {_example(model)}"


def _weights(model: FrameworkModel, name: str, load: str, *, packages: Sequence[str]) -> tuple[str, str]:
    output = new_file(name)
    first = f"; the first is {model.first_weight[0]} {list(model.first_weight[1])}" if model.first_weight else ""
    found = f"weights alone{first}: the code that computes with them is not in the file"
    program = "; ".join([
        f"import torch{''.join(f', {each}' for each in packages)}",
        f"model.load_state_dict({load})",
        _torch_export(model, output),
    ])  # fmt: skip
    return found, (
        f"in the code that has the model: {program}  # {_SHAPE} {_example(model)}; then: tritonstack add "
        f"{shlex.quote(output)}"
    )


def _torch_weights(model: FrameworkModel, name: str) -> tuple[str, str]:
    key = "" if model.key is None else f"[{literal(model.key)}]"
    load = f'torch.load({literal(str(model.path))}, map_location="cpu", weights_only=True){key}'
    return _weights(model, name, load, packages=())


def _safetensors(model: FrameworkModel, name: str) -> tuple[str, str]:
    return _weights(
        model, name, f"safetensors.torch.load_file({literal(str(model.path))})", packages=["safetensors.torch"]
    )


def _exported_program(model: FrameworkModel, name: str) -> tuple[str, str]:
    output = new_file(name)
    program = python_program(
        "import torch",
        f"program = torch.export.load({literal(str(model.path))})",
        f"torch.onnx.export(program, dynamo=True, external_data=False).save({literal(output)})",
    )
    found = "an exported program, as torch.export.save writes it"
    return found, conversion_command(tool="torch", packages=_TORCH, runs=[program], add=[output])


def _inside(model: FrameworkModel, name: str) -> tuple[str, str]:
    """A package of another server: the model is a file in it."""
    if model.format == "mlflow":
        found = f"a model of MLflow with {listing(model.files, none='no file of a model')}"
        if len(model.files) == 1 and (inside := framework_model(model.path / model.files[0])) is not None:
            what, command = _FORMATS[inside.format](inside, name)
            return f"{found}: {what}", command
        adds = [["tritonstack", "add", str(model.path / each), "--name", name] for each in model.files]
        return found, "; or ".join(map(shlex.join, adds)) or PYTHON_MODEL.removeprefix("or ")
    folder = model.path.stem
    commands = [f"tritonstack add {shlex.quote(f'{folder}/{each}')}" for each in model.files]
    unzip = shlex.join(["python3", "-m", "zipfile", "-e", str(model.path), folder])
    found = f"an archive of TorchServe with {listing(model.files, none='no file of a model')}"
    return found, f"{unzip} && {'; or '.join(commands)}" if commands else PYTHON_MODEL.removeprefix("or ")


def _skops(model: FrameworkModel, name: str) -> tuple[str, str]:
    path = literal(str(model.path))
    load = f"model = skops.io.load({path}, trusted=skops.io.get_untrusted_types(file={path}))"
    if model.version:
        found, command = _sklearn_command(model, name, libraries=["skops.io"], load=load)
        return _named(model, f"a model of skops: {found}"), command
    output = new_file(name, ".joblib")
    program = python_program("import joblib, skops.io", load, f"joblib.dump(model, {literal(output)})")
    found = f"a model of skops: {model.made_by or 'of a class that its schema does not state'}"
    packages = ["joblib", "scikit-learn", "skops"]
    return found, conversion_command(tool="sklearn", packages=packages, runs=[program], add=[output])


def _pickle(model: FrameworkModel, name: str) -> tuple[str, str]:
    what = f"a pickled {model.made_by}" if "." in model.made_by else model.made_by or "a pickled Python object"
    if "LZ4" in model.made_by:
        program = python_program(
            "import joblib", f"joblib.dump(joblib.load({literal(str(model.path))}), {literal(f'{name}-plain.joblib')})"
        )
        packages = ["joblib", "lz4", "scikit-learn"]
        return what, conversion_command(tool="sklearn", packages=packages, runs=[program], add=[f"{name}-plain.joblib"])
    found = f"{what}, which no Triton backend loads and no known converter takes"
    advice = f"export it to ONNX with its own library, if that can; {PYTHON_MODEL}"
    return _named(model, found), advice


def _of_text(found: str, advice: str) -> Callable[[FrameworkModel, str], tuple[str, str]]:
    return lambda _model, _name: (found, advice)


_FORMATS: Mapping[Framework, Callable[[FrameworkModel, str], tuple[str, str]]] = {
    "sklearn": _sklearn,
    "xgboost": _boosted,
    "lightgbm": _boosted,
    "catboost": _catboost,
    "saved-model": _saved_model,
    "keras": _keras,
    "keras-weights": _keras_weights,
    "frozen-graph": _frozen_graph,
    "tflite": _tflite,
    "transformers": _transformers,
    "transformers-generation": _generation,
    "peft": _peft,
    "torch-module": _torch_module,
    "torch-weights": _torch_weights,
    "safetensors": _safetensors,
    "exported-program": _exported_program,
    "mlflow": _inside,
    "torchserve": _inside,
    "pickle": _pickle,
    "skops": _skops,
    "gguf": _of_text(
        "weights of a language model for llama.cpp (GGUF)",
        "serve it by a server for language models, such as llama.cpp's",
    ),
    "coreml": _of_text(
        "a model of Core ML, which Apple's devices run and no converter turns into ONNX",
        "add the model of PyTorch or TensorFlow that it was made of",
    ),
    "pmml": _of_text(
        "a model in PMML, which no converter turns into ONNX",
        "add what it was written from: pickle the pipeline of scikit-learn, or save XGBoost's or LightGBM's own file",
    ),
    "xgboost-dump": _of_text(
        "XGBoost's dump of its trees, which is for people and cannot be loaded",
        "save the model itself, where it was trained: model.save_model('model.json')",
    ),
    "lightgbm-dump": _of_text(
        "LightGBM's dump of its trees, which is for people and cannot be loaded",
        "save the model itself, where it was trained: booster.save_model('model.txt')",
    ),
    "ort": _of_text(
        "a model in ONNX Runtime's own format (.ort), which Triton's backend does not load",
        "add the ONNX file that it was made of",
    ),
    "numpy": _of_text("arrays of NumPy, and no model", "a request takes them: tritonstack invoke MODEL --input FILE"),
}
"""Format → what was found, and what to do."""
