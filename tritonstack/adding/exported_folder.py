"""A folder that Hugging Face's optimum exported → a model folder: the graph, its tokenizer or images, its classes.

Such a folder has an ONNX file, or several, ``config.json`` of transformers and mostly ``tokenizer.json``, for images
``preprocessor_config.json``. Sources:
huggingface/optimum-onnx, optimum/exporters/onnx (names of files); transformers, configuration of each model
(``max_position_embeddings``, ``id2label``); sentence-transformers, CrossEncoder (key ``sentence_transformers``).
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tritonstack.adapter_proposals import TOKENIZER
from tritonstack.adding.additions import SUPPORTED, Addition, AddOptions, folder_name, tensor_text
from tritonstack.adding.conversions import PYTHON_MODEL
from tritonstack.adding.image_processor import UnlikeAdapterError, adapter_of_processor
from tritonstack.adding.input_adapter import with_adapter, with_fields
from tritonstack.adding.model_file import onnx_addition
from tritonstack.archives.programs import Report
from tritonstack.errors import InputError, Problem
from tritonstack.model_files.framework_files import read_folder_json
from tritonstack.models.model_config import ModelConfig, Tensor, read_config
from tritonstack.models.source_files import CONFIG
from tritonstack.untrusted.folder_files import unfit

LABELS = "labels.txt"
_CONFIG, _TOKENIZER_CONFIG, _SENTENCES = "config.json", "tokenizer_config.json", "sentence_bert_config.json"
_PROCESSOR = "preprocessor_config.json"
_PARTS = ("encoder", "decoder", "with_past", "text_model", "vision_model", "unet", "vae")
"""In the names of a model's parts, which its library calls in turn; other files are variants of one model."""
_UNLIMITED = 1_000_000
"""``model_max_length`` of tokenizers without a limit is above."""
_OFFSET_POSITIONS = ("roberta", "xlm-roberta", "camembert", "xlm-roberta-xl", "longformer", "mpnet", "roformer")
"""Models whose positions begin behind the padding token's number: two of them are never used."""
_OFFSET = 2
_OF_PAIRS = ("entailment", "contradiction", "not_entailment", "duplicate", "not_duplicate", "equivalent")
"""Labels of models that compare two texts."""


def graph_files(folder: Path) -> tuple[Path, ...]:
    """The ONNX files of an exported folder; none where it is no such folder."""
    is_exported = (folder / _CONFIG).is_file() or (folder / TOKENIZER).is_file()
    if not is_exported or (folder / CONFIG).is_file():
        return ()
    return tuple(sorted([*folder.glob("*.onnx"), *folder.glob("onnx/*.onnx")]))


def exported_addition(folder: Path, options: AddOptions, *, work: Path, report: Report) -> Addition:
    """The model folder of an exported folder with one ONNX file. ``work`` keeps what is made for it.

    Raises :class:`InputError` where it has several, or where Triton cannot serve the graph.
    """
    graphs = graph_files(folder)
    if len(graphs) > 1:
        raise InputError([_several(folder, graphs)])
    name = folder_name(options.name or folder.resolve().name, given=options.name is not None, source=folder)
    if reason := unfit(graphs[0], folder):
        raise InputError([Problem(file=str(graphs[0]), found=reason, allowed="a file of the folder")])
    addition = onnx_addition(graphs[0], name, options, work=work, report=report)
    about = read_folder_json(folder / _CONFIG)
    config = read_config(addition.addressed.config)
    architecture = _architecture(about) or "model"
    addition = dataclasses.replace(addition, description=f"The {architecture} of {folder.resolve().name}, in ONNX.")
    addition = _with_answers(addition, about, config, work=work)
    if options.text is not None or options.image is not None:
        return addition  # the user names the input; the command fills the rest
    if (folder / _PROCESSOR).is_file() and (image := _image_input(config)) is not None:
        return _with_images(addition, folder, image)
    ids = next((each.name for each in config.inputs if each.name in ("input_ids", "input_word_ids")), None)
    if ids is None:
        return addition
    tokenizer = options.tokenizer or folder / TOKENIZER
    if not tokenizer.is_file() or unfit(tokenizer, tokenizer.parent):
        lacking = f"which tokens texts become: no {TOKENIZER} beside the graph; tokenizer.save_pretrained writes it"
        return dataclasses.replace(addition, unknown=(*addition.unknown, lacking))
    why_pairs = "--text-pairs" if options.text_pairs else _why_pairs(about)
    given = dataclasses.replace(
        options, text=ids, tokenizer=tokenizer, text_pairs=bool(why_pairs), longest_text=_longest(folder, about)
    )
    adapted = with_adapter(addition, given)
    pairs = f"taken as pairs ({why_pairs})" if why_pairs else "taken as single ones; --text-pairs takes pairs"
    return dataclasses.replace(adapted, unknown=(*adapted.unknown, f"whether texts come in pairs: {pairs}"))


def _image_input(config: ModelConfig) -> Tensor | None:
    """The one input of a model that takes pixels, and nothing besides."""
    needed = [each for each in config.inputs if not each.optional]
    is_image = len(needed) == 1 and needed[0].name == "pixel_values" and len(needed[0].dims[-3:]) == 3
    return needed[0] if is_image and needed[0].data_type.startswith("FP") else None


def _with_images(addition: Addition, folder: Path, image: Tensor) -> Addition:
    """The model with the adapter that its processor's file states; what that has no setting for, where it has none."""
    without = f"how images become {image.name}: {_PROCESSOR} has"
    try:
        fields = adapter_of_processor(read_folder_json(folder / _PROCESSOR), image=image.name)
    except UnlikeAdapterError as error:
        lacking = f"{without} {error}; a request needs its pixels as an array"
        return dataclasses.replace(addition, unknown=(*addition.unknown, lacking))
    side = fields["crop"]
    taken = zip((3, side, side), image.dims[-3:], strict=True)
    if any(axis not in (-1, wanted) for wanted, axis in taken):
        lacking = f"{without} images of {side} by {side} pixels, and the graph takes {list(image.dims)}"
        return dataclasses.replace(addition, unknown=(*addition.unknown, lacking))
    return with_fields(_of_three_channels(addition, image), fields, is_image=True)


def _of_three_channels(addition: Addition, image: Tensor) -> Addition:
    """The model with an input of the channels that an adapter makes, where the graph leaves their number free."""
    *batch, channels, height, width = image.dims
    if channels != -1:
        return addition
    stated = dataclasses.replace(image, dims=(*batch, 3, height, width))
    model = addition.addressed
    own = dataclasses.replace(model, config=model.config.replace(tensor_text(image), tensor_text(stated)))
    return dataclasses.replace(addition, models=tuple(own if each is model else each for each in addition.models))


def _several(folder: Path, graphs: tuple[Path, ...]) -> Problem:
    names = [str(each.relative_to(folder)) for each in graphs]
    if any(part in name for name in names for part in _PARTS):
        advice = f"its parts call each other, as its library does: {PYTHON_MODEL.removeprefix('or ')}"
        return Problem(
            file=str(folder),
            found=f"a model in {len(names)} parts: {', '.join(names)}",
            allowed=SUPPORTED,
            advice=advice,
        )
    first = next((each for each in graphs if each.name == "model.onnx"), graphs[0])
    command = [
        "tritonstack",
        "add",
        str(first),
        "--name",
        folder_name(folder.resolve().name, given=False, source=folder),
    ]
    if (folder / TOKENIZER).is_file():
        command += ["--text", "input_ids", "--tokenizer", str(folder / TOKENIZER)]
    others = ", ".join(name for name, each in zip(names, graphs, strict=True) if each != first)
    return Problem(
        file=str(folder),
        found=f"{len(names)} ONNX files: {', '.join(names)}",
        allowed="a folder with one, or the one that shall be served",
        advice=f"{shlex.join(command)}  # or {others}",
    )


def _architecture(about: Mapping[str, Any]) -> str:
    """Its class in transformers; empty where the configuration names none."""
    names = about.get("architectures")
    return str(names[0]) if isinstance(names, list) and names else ""


def _why_pairs(about: Mapping[str, Any]) -> str:
    """Why the texts of a model come in pairs, by its configuration; empty where they do not."""
    architecture, labels = _architecture(about), _labels(about)
    if architecture.endswith("ForQuestionAnswering"):
        return "a question and its context"
    if not architecture.endswith("ForSequenceClassification"):
        return ""
    if any(label.lower() in _OF_PAIRS for label in labels):
        return f"labels {', '.join(labels)}"
    if "sentence_transformers" in about:
        return "a cross-encoder of sentence-transformers"
    return "one score, as cross-encoders have" if len(labels) == 1 else ""


def _labels(about: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of classes in the order of the scores; empty where some lack one."""
    given = about.get("id2label")
    if not isinstance(given, dict) or not all(str(index) in given for index in range(len(given))):
        return ()
    return tuple(str(given[str(index)]) for index in range(len(given)))


def _longest(folder: Path, about: Mapping[str, Any]) -> int | None:
    """The most tokens that the model takes, by its tokenizer and its positions."""
    limits = [
        read_folder_json(folder / _SENTENCES).get("max_seq_length"),
        read_folder_json(folder / _TOKENIZER_CONFIG).get("model_max_length"),
        about.get("max_position_embeddings"),
    ]
    if isinstance(limits[2], int) and about.get("model_type") in _OFFSET_POSITIONS:
        limits[2] -= _OFFSET
    known = [each for each in limits if isinstance(each, int) and 1 <= each < _UNLIMITED]
    return min(known, default=None)


def _with_answers(addition: Addition, about: Mapping[str, Any], config: ModelConfig, *, work: Path) -> Addition:
    """Meaning of the output for a reader: named classes, or a vector for the text."""
    outputs = {each.name: each for each in config.outputs}
    labels = _labels(about)
    if "sentence_embedding" in outputs:
        return dataclasses.replace(addition, answers={"embedding": {"output": "sentence_embedding"}})
    logits = outputs.get("logits")
    if logits is None or len(labels) < 2 or logits.dims[-1:] != (len(labels),) or len(logits.dims) > 1:
        return addition
    classes: dict[str, Any] = {"output": "logits"}
    if about.get("problem_type") != "multi_label_classification":
        classes["softmax"] = True
    if any("\n" in each for each in labels):
        return dataclasses.replace(addition, answers={"classes": classes})
    file = work / LABELS
    file.write_text("".join(f"{each}\n" for each in labels), encoding="utf-8")
    classes["labels"] = LABELS
    return dataclasses.replace(addition, answers={"classes": classes}, client_files={LABELS: file})
