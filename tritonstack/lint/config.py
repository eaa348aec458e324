"""Rules about config.pbtxt as text: protobuf's text format, fields of the release, names, keys of ``parameters``."""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tritonstack.errors import nearest
from tritonstack.lint.registry import Finding
from tritonstack.lint.view import RepositoryView, at_field, at_line
from tritonstack.models.model_config import Complaint, Node, dated_fields
from tritonstack.models.model_view import ModelView
from tritonstack.models.source_files import CONFIG


def check_syntax(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What Triton's reader of the text format refuses: syntax, unknown fields, wrong types, repeated fields."""
    node = model.config.node
    if CONFIG in model.folders:  # over which Triton ends: core src/filesystem/implementations/local.h (ReadTextFile)
        yield Finding(file=model.file, rule="config", found=f"a folder called {CONFIG}", allowed="a file, or none")
    elif not model.config.complaints and not node.scalars and not node.messages:
        allowed = "a model's configuration: backend, max_batch_size, input and output"
        rule = "config-empty" if view.is_built else "auto-completed"
        found = "an empty file" if CONFIG in model.files else "no config.pbtxt"
        yield Finding(file=model.file, rule=rule, found=found, allowed=allowed)
    for complaint in model.config.complaints:
        found = f"{complaint.path}: {complaint.found}" if complaint.path else complaint.found
        finding = at_line(model, complaint.line, "config", found, complaint.allowed, _advice(complaint))
        yield replace(finding, column=complaint.column)


def _advice(complaint: Complaint) -> str:
    """Advice on what to write: the value that was probably meant, or the most similar word."""
    if complaint.found == f'"{complaint.meant}"' and complaint.allowed.startswith("one of "):
        return f"write {complaint.meant} without quotes: it is no text, but a value of an enumeration"
    if complaint.meant:
        return f"write {complaint.meant}"
    word = complaint.found.replace('"', "").split()[-1:]
    return nearest(word[0], complaint.allowed.removeprefix("one of ").split(", ")) if word else ""


def check_newer_fields(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Fields that came after the release: its reader of the text format refuses them."""
    release = view.target.release
    if release is None:
        return
    for path, line, since in dated_fields(model.config.node):
        if not release.at_least(since):
            found, allowed = f"{path} in release {release.version}", f"no {path}, or release {since} or newer"
            yield at_line(model, line, "field-newer", found, allowed)


# Source: core src/model_config_utils.cc (ValidateModelMetrics), branch r24.11.


def check_metrics(_view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Check a model's own metrics for missing fields."""
    metrics = model.config.node.node("model_metrics")
    for control in metrics.nodes("metric_control") if metrics else ():
        family, buckets = control.node("metric_identifier"), control.node("histogram_options")
        lacking = {
            "metric_identifier": family is None,
            "family": family is not None and not family.text("family"),
            "histogram_options": buckets is None,
            "buckets": buckets is not None and not buckets.scalars.get("buckets"),
        }
        for field in (name for name, is_lacking in lacking.items() if is_lacking):
            allowed = "metric_identifier with a family, and histogram_options with buckets"
            yield at_line(model, control.line, "model-metrics", f"metric_control without {field}", allowed)


def check_name(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """The directory's name against the configuration's. The addressed model's is hidden in multi-model mode."""
    name = model.config.name
    if not name or name == model.name:
        return
    multi_model = view.target.multi_model
    is_hidden = multi_model or (multi_model is None and not view.is_built)  # what is built may be served in either mode
    rule = "name-differs-hidden" if is_hidden and model.name == view.served else "name-differs"
    yield at_field(model, "name", rule, f'name: "{name}"', f'name: "{model.name}", the directory\'s name, or none')


@functools.cache
def known_parameters() -> Mapping[str, Mapping[str, Any]]:
    """Backend → ``keys`` of the parameters that it reads, ``values`` of some of them with what a value means,
    ``numbers``: keys whose values are whole numbers, and the ``source`` of all. A backend that is not in it takes any.
    """
    content = importlib.resources.files(__package__).joinpath("backend_parameters.json").read_text(encoding="utf-8")
    backends: Mapping[str, Mapping[str, Any]] = json.loads(content)["backends"]
    return backends


def check_parameters(_view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Parameters that the backend does not support, or whose value it does not support."""
    known = known_parameters().get(model.backend)
    if known is None:
        return
    keys, values = known["keys"], known.get("values", {})
    for key, entry in model.config.node.entries("parameters").items():
        line = entry.line if isinstance(entry, Node) else model.config.node.line_of("parameters")
        value = entry.text("string_value") if isinstance(entry, Node) else ""
        found = f'parameter {key}: "{value}"'
        if key not in keys:
            advice = nearest(key, keys, most=1)
            yield at_line(model, line, "parameter-unknown", f"parameter {key}", ", ".join(sorted(keys)), advice)
        elif key in values and not {value, value.lower()} & values[key].keys():
            allowed = ", ".join(f'"{each}"{f" ({word})" if word else ""}' for each, word in values[key].items())
            yield at_line(model, line, "parameter-value", found, allowed)
        elif key in known.get("numbers", ()) and not value.isdecimal():
            yield at_line(model, line, "parameter-value", found, "a whole number, in quotes")
