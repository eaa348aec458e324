"""A file of XGBoost or LightGBM → a model folder of backend FIL, completed from what the file states."""

from __future__ import annotations

from pathlib import Path

from tritonstack.adding.additions import SUPPORTED, Addition, AddOptions, TritonModel, config_text
from tritonstack.adding.conversions import boosted_statements, conversion_command, literal, new_file, python_program
from tritonstack.errors import InputError, Problem, refuse
from tritonstack.lint.backends.fil import INPUT, OUTPUT
from tritonstack.lint.backends.fil_file import SCORES_FROM, unread_file
from tritonstack.model_files.forest_file import Forest, ForestError, read_forest
from tritonstack.models.model_config import FIL_FILES, Tensor
from tritonstack.models.pbtxt import quoted

ROWS = 1024
"""max_batch_size: a row is a few numbers, and forests are fastest with many."""
_TWO_CLASSES = ("binary:logistic", "binary")
"""Objectives of XGBoost and LightGBM whose number is the probability of the second of two classes."""


def forest_addition(path: Path, name: str, options: AddOptions) -> Addition:
    """The folder of a forest. Raises :class:`InputError` with everything that FIL cannot serve of it."""
    try:
        forest = read_forest(path)
    except ForestError as error:
        raise InputError([Problem(file=str(path), found=str(error), allowed=SUPPORTED)]) from error
    if forest is None or forest.format == "treelite_checkpoint":
        advice = 'add the Triton model folder that has it: backend "fil", model_type "treelite_checkpoint"'
        raise InputError([Problem(file=str(path), found="a checkpoint of treelite", allowed=SUPPORTED, advice=advice)])
    given = [("--input", each.name) for each in options.inputs] + [("--output", each.name) for each in options.outputs]
    needless = [Problem(field=of, found=it, allowed=f"no {of}: the file states its features") for of, it in given]
    refuse(needless)
    if wrong := unread_file(forest, None):
        problem = Problem(file=str(path), found=wrong.found, allowed=wrong.allowed, advice=wrong.advice)
        raise InputError([problem])
    if forest.features is None or forest.classes is None:
        found, allowed = "a file that does not state how many features and classes it has", "num_feature and num_class"
        raise InputError([Problem(file=str(path), found=found, allowed=allowed)])
    file = FIL_FILES[forest.format]
    return Addition(
        name=name,
        model=name,
        kind="other",
        description=f"The {'XGBoost' if forest.is_xgboost else 'LightGBM'} model {path.name}.",
        models=(TritonModel(name=name, config=_config(path, name, forest), files={f"1/{file}": path}),),
        unknown=tuple(_unknown(forest)),
        otherwise=_conversion(path, name, forest),
    )


def _classifies(forest: Forest) -> bool:
    return forest.objective in _TWO_CLASSES or (forest.classes or 0) > 1


def _config(path: Path, name: str, forest: Forest) -> str:
    """The text of config.pbtxt, with parameters that every release of the backend takes."""
    numbers = max(forest.classes or 1, 2) if _classifies(forest) else 1
    text = config_text(
        head=f'# Written by tritonstack add from {path.name}.\nname: {quoted(name)}\nbackend: "fil"',
        max_batch_size=ROWS,
        inputs=[Tensor(name=INPUT, data_type="FP32", dims=(forest.features or 0,))],
        outputs=[Tensor(name=OUTPUT, data_type="FP32", dims=(numbers,))],
    )
    parameters = {"model_type": forest.format, "output_class": "false"}
    if _classifies(forest):  # output_class in every release; from 25.09 on also called is_classifier
        parameters |= {"output_class": "true", "threshold": "0.5", "predict_proba": "true"}
    lines = (
        f"parameters {{ key: {quoted(key)} value {{ string_value: {quoted(value)} }} }}\n"
        for key, value in parameters.items()
    )
    return text + "".join(lines)


def _unknown(forest: Forest) -> list[str]:
    found = [f"the file does not state how many rows are computed at once: max_batch_size is {ROWS}"]
    if _classifies(forest):
        found.append(
            f"predict_proba is true, so that clients get probabilities; for classes set it to false, and dims of "
            f"{OUTPUT} to [ 1 ]"
        )
    if forest.has_scores_by_target:
        found.append(f"files of XGBoost 3.1 and newer need release {SCORES_FROM} or newer")
    return found


def _conversion(path: Path, name: str, forest: Forest) -> str:
    """The command that makes an ONNX file of a forest and adds it; empty where onnxmltools converts none."""
    if forest.booster == "dart":
        return ""
    library = "xgboost" if forest.is_xgboost else "lightgbm"
    output = new_file(name)
    load = f"model = {library}.Booster(model_file={literal(str(path))})"
    program = python_program(
        f"import onnxmltools, {library}",
        *boosted_statements(library, load, features=forest.features or 0, output=output),
    )
    packages = ["onnxmltools", library]
    return conversion_command(tool=library, packages=packages, runs=[program], add=[output, "--name", f"{name}-onnx"])
