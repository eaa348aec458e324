"""A model of a training framework as its file states it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tritonstack.model_files.tensorflow_files import Signature

Framework = Literal[
    "catboost", "coreml", "exported-program", "frozen-graph", "gguf", "keras", "keras-weights", "lightgbm",
    "lightgbm-dump", "mlflow", "numpy", "ort", "peft", "pickle", "pmml", "safetensors", "saved-model", "sklearn",
    "skops", "tflite", "torch-module", "torch-weights", "torchserve", "transformers", "transformers-generation",
    "xgboost", "xgboost-dump",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table that a pipeline of scikit-learn takes, or all numbers of a row."""

    name: str
    is_text: bool
    width: int = 1


@dataclass(frozen=True, kw_only=True)
class FrameworkModel:
    """A model as its file states it. Fields of other formats are empty."""

    format: Framework
    path: Path  # the file or folder to convert
    made_by: str = ""  # its class, or the framework with its version
    version: str = ""  # of the library that wrote it
    columns: tuple[Column, ...] = ()  # of scikit-learn; none where they are not known
    vectorizers: tuple[str, ...] = ()  # classes that split texts into words, inside a model of scikit-learn
    boosted: tuple[str, ...] = ()  # classes of XGBoost and LightGBM inside a pipeline of scikit-learn
    key: str | None = None  # of the model in a pickled mapping
    own_modules: tuple[str, ...] = ()  # modules of the classes in a pickle that are no library's
    signature: str = ""  # of a SavedModel: its name
    of_signature: Signature | None = None
    inputs: tuple[str, ...] = ()  # of a frozen graph
    outputs: tuple[str, ...] = ()
    first_weight: tuple[str, tuple[int, ...]] | None = None  # of weights: name and shape of the first one
    architecture: str = ""  # of transformers: BertForSequenceClassification
    task: str = ""  # as optimum calls it; of adapter weights as peft does
    classes: int | None = None  # of adapter weights: those of the classifier beside them; None where there is none
    files: tuple[str, ...] = ()  # of an MLflow folder: the model files in it
