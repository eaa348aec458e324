"""Rules about the configuration of a forest, which backend FIL serves: model_type, parameters, tensors.

Source: triton-inference-server/fil_backend src/shared_state.h (load), src/serialization.h, src/model.h (predict);
rapidsai/rapids-triton cpp/include/rapids_triton/model/shared_state.hpp (get_config_param), triton/input.hpp; by release
in ``fil.json``.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from tritonstack.catalogue.triton_releases import TritonRelease, release_order
from tritonstack.errors import nearest
from tritonstack.lint.registry import Finding
from tritonstack.lint.view import RepositoryView, at_line
from tritonstack.models.model_config import FIL_FILES, Node
from tritonstack.models.model_view import ModelView

BACKEND = "fil"
REWRITTEN_IN = "25.09"
"""The release whose backend computes with other libraries: ``is_classifier`` in place of ``output_class``."""
INPUT, OUTPUT, SHAP = "input__0", "output__0", "treeshap_output"


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A parameter that some release reads."""

    form: str  # of its value: ``truth``, ``number``, ``whole`` (number), ``word``, ``type`` (of model)
    words: tuple[str, ...] = ()
    since: str | None = None  # the first release that reads it; None for all of the catalogue
    last: str | None = None  # the last one
    instead: str = ""  # what newer ones read in its place

    def in_release(self, release: TritonRelease | None) -> bool:
        """Whether a release reads it; True where the release is not known."""
        if release is None:
            return True
        is_old = self.last is None or release.order <= release_order(self.last)
        return is_old and (self.since is None or release.at_least(self.since))


@functools.cache
def fil_facts() -> Mapping[str, Any]:
    """The formats and parameters that the backend reads, by release: ``fil.json``."""
    text = importlib.resources.files(__package__).joinpath("fil.json").read_text(encoding="utf-8")
    facts: Mapping[str, Any] = json.loads(text)
    return facts


@functools.cache
def _parameters() -> Mapping[str, Parameter]:
    rows = fil_facts()["parameters"].items()
    return {name: Parameter(**row | {"words": tuple(row.get("words", ()))}) for name, row in rows}


def given_parameters(model: ModelView) -> Mapping[str, str]:
    """Parameters of a configuration → their ``string_value``."""
    entries = model.config.node.entries("parameters").items()
    return {key: entry.text("string_value") if isinstance(entry, Node) else "" for key, entry in entries}


def is_classifier(given: Mapping[str, str]) -> bool | None:
    """Whether the model returns classes; None where that is unknown."""
    for name in ("output_class", "is_classifier"):  # newer releases take the old one first
        if given.get(name) in ("true", "false"):
            return given[name] == "true"
    return None


def is_before(view: RepositoryView, release: str) -> bool | None:
    """Whether the target's release is older than ``release``; None where it has none."""
    return None if view.target.release is None else not view.target.release.at_least(release)


def check_fil(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Check a forest's configuration for values that the backend refuses or ignores, or that fail every request."""
    if model.backend != BACKEND or not model.is_readable:
        return
    yield from _model_type(view, model)
    yield from _required(view, model)
    yield from _values(view, model)
    yield from _tensors(model)


def _line(model: ModelView, name: str) -> int:
    """The line of a parameter, or of the first one where it is not there."""
    entry = model.config.node.entries("parameters").get(name)
    return entry.line if isinstance(entry, Node) else model.config.node.line_of("parameters")


def _written(name: str, value: str) -> str:
    return f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}'


def _model_type(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """A type that no release has, or not this one."""
    release, rows = view.target.release, fil_facts()["model_types"]
    known = [name for name, row in rows.items() if Parameter(form="type", **row).in_release(release)]
    named, line = model.config.forest_type, _line(model, "model_type")
    if named not in known:
        since = rows.get(named, {}).get("since")
        of_release = f" ({release.version}; {named} is read from release {since} on)" if release and since else ""
        advice = "" if since else nearest(named, known, most=1)
        found, allowed = f'model_type "{named}"', f"{', '.join(known)}{of_release}"
        yield at_line(model, line, "fil-model-type", found, allowed, advice)


def other_file(model: ModelView, version: str) -> str:
    """Advice where a version has a file of another type or name than the one that is loaded; else empty."""
    if model.config.node.text("default_model_filename"):
        return ""
    for kind, file in FIL_FILES.items():
        if f"{version}/{file}" in model.files:
            return f"{file} is there: {_written('model_type', kind)}"
    suffix = PurePosixPath(model.model_file).suffix
    alike = [name for name in model.files if re.fullmatch(rf"{version}/[^/]+{re.escape(suffix)}", name)]
    return f'default_model_filename: "{PurePosixPath(alike[0]).name}" loads it' if len(alike) == 1 else ""


def _required(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Parameters that the backend does not load without."""
    given = given_parameters(model)
    before = is_before(view, REWRITTEN_IN)
    reads = ("output_class",) if before else ("output_class", "is_classifier")
    if not any(name in given for name in reads):
        name = "output_class" if before in (True, None) else "is_classifier"
        allowed = f"{_written(name, 'true')} for classes, false for the model's own numbers"
        if "is_classifier" in given:  # and the release is one that does not read it
            allowed += f": is_classifier is read from release {REWRITTEN_IN} on"
        yield at_line(model, _line(model, ""), "fil-required", f"no parameter {name}", allowed)
    if is_classifier({name: given[name] for name in reads if name in given}) and "threshold" not in given:
        found = "no parameter threshold, with classes to be answered"
        yield at_line(model, _line(model, "output_class"), "fil-required", found, _written("threshold", "0.5"))


# What C++'s ``>>`` reads of a text: white space is passed over, and what follows the number is not looked at.
_WHOLE = re.compile(r"\s*[+-]?[0-9]+")
_NUMBER = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def _values(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Parameters that the release does not read, and values that it reads as nothing or as something else."""
    release, known, given = view.target.release, _parameters(), given_parameters(model)
    of_release = [name for name, row in known.items() if row.in_release(release)]
    for name, value in given.items():
        line, found = _line(model, name), f'parameter {name}: "{value}"'
        form = known.get(name)
        if form is None or not form.in_release(release):
            advice = nearest(name, of_release, most=1)
            if form is not None and form.last:
                advice = (
                    f"{form.instead} is read instead from release {REWRITTEN_IN} on" if form.instead else "remove it"
                )
            elif form is not None:
                advice = f"release {form.since} is the first that reads it"
            yield at_line(model, line, "parameter-unknown", f"parameter {name}", ", ".join(sorted(of_release)), advice)
        elif form.form == "truth" and value not in ("true", "false"):
            if name == "output_class" and "is_classifier" in given and not is_before(view, REWRITTEN_IN):
                continue  # passed over for is_classifier
            allowed, near = '"true", "false"', value.strip().lower()
            meant = {"1": "true", "yes": "true", "0": "false", "no": "false"}.get(near, near)
            advice = f'write "{meant}"' if meant in ("true", "false") else ""
            yield at_line(model, line, "parameter-value", found, allowed, advice)
        elif form.form == "number" and is_classifier(given) is not False and not _is_read(_NUMBER, value):
            yield at_line(model, line, "parameter-value", found, 'a number with a point, in quotes: "0.5"')
        elif form.form == "whole" and not _is_read(_WHOLE, value):
            start = _WHOLE.match(value)
            taken = f", of which {start[0].strip()} is read" if start else ", for which the default is taken"
            yield at_line(model, line, "parameter-default", f"{found}{taken}", "a whole number, in quotes")
        elif form.words and value.strip() and value.split()[0] not in form.words and _may_run_on_gpu(view, model):
            allowed = ", ".join(f'"{word}"' for word in form.words)
            yield at_line(model, line, "parameter-value", found, allowed, nearest(value, form.words, most=1))


def _is_read(form: re.Pattern[str], value: str) -> bool:
    start = form.match(value)
    return start is not None and not value[start.end() :].strip()


def _may_run_on_gpu(view: RepositoryView, model: ModelView) -> bool:
    """Whether an instance may lie on a GPU: only there words such as ``algo`` are looked at."""
    if view.target.instance is not None and not view.target.instance.gpu:
        return False
    groups = model.config.node.nodes("instance_group")
    return not groups or any(group.text("kind") != "KIND_CPU" for group in groups)


def _tensors(model: ModelView) -> Iterator[Finding]:
    """Tensors that the backend requires in every request, by name and type."""
    node = model.config.node
    allowed = f'name: "{INPUT}" data_type: TYPE_FP32'
    names = [tensor.name for tensor in model.config.inputs]
    if INPUT not in names:
        found = f"no input {INPUT}" + (f", but {', '.join(names)}" if names else "")
        yield at_line(model, node.line_of("input"), "fil-tensor", found, allowed)
    names = [tensor.name for tensor in model.config.outputs]
    if OUTPUT not in names:
        found = f"no output {OUTPUT}" + (f", but {', '.join(names)}" if names else "")
        yield at_line(model, node.line_of("output"), "fil-tensor", found, f'name: "{OUTPUT}" data_type: TYPE_FP32')
    for tensor in model.config.inputs:
        if tensor.name == INPUT and tensor.data_type != "FP32":
            yield at_line(model, tensor.line, "fil-tensor", f"{INPUT} as {tensor.data_type or 'no type'}", allowed)
        elif tensor.name != INPUT and INPUT in [each.name for each in model.config.inputs]:
            found = f"input {tensor.name}, which the backend does not read"
            yield at_line(model, tensor.line, "fil-tensor-ignored", found, f"{INPUT} alone")
    for tensor in model.config.outputs:
        if tensor.name in (OUTPUT, SHAP):
            if tensor.data_type != "FP32":
                found = f"{tensor.name} as {tensor.data_type or 'no type'}, which is returned as FP32"
                yield at_line(model, tensor.line, "fil-tensor-ignored", found, "data_type: TYPE_FP32")
        elif OUTPUT in names:
            found = f"output {tensor.name}, which the backend does not return"
            yield at_line(model, tensor.line, "fil-tensor-ignored", found, f"{OUTPUT}, and {SHAP} for Shapley values")
