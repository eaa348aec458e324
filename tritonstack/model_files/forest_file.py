"""What the file of a forest states: features, classes, objective. XGBoost's JSON and UBJSON, LightGBM's text, treelite.

Source: XGBoost doc/model.schema and src/learner.cc (LearnerModelParam); LightGBM src/boosting/gbdt_model_text.cpp
(SaveModelToString); treelite docs/serialization/v4.rst and src/model_loader/ (xgboost_json.cc, lightgbm.cc).
"""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tritonstack.model_files.outline import Outline, OutlineError, json_outline, ubjson_outline

ForestFormat = Literal["xgboost_json", "xgboost_ubj", "lightgbm", "treelite_checkpoint"]
"""As the FIL backend's ``model_type`` calls them."""

_TEXT_BYTES = 16 << 20
"""Of LightGBM's text: its head is before the first tree, in kilobytes."""
_LINE = 1000
"""Characters of a line of it that is read."""


class ForestError(ValueError):
    """The file is no forest, or is damaged."""


@dataclass(frozen=True, kw_only=True)
class Forest:
    """A file's own statements; None and empty where it has none, or is larger than what is read."""

    format: ForestFormat
    features: int | None = None  # columns of a row
    classes: int | None = None  # numbers that it gives for a row: 1 for a value or one probability
    targets: int | None = None  # values that are predicted of a row, each with its classes
    objective: str = ""  # ``binary:logistic`` (XGBoost), ``multiclass`` (LightGBM)
    booster: str = ""  # XGBoost's: ``gbtree``, ``dart``, ``gblinear``
    version: tuple[int, ...] = ()  # of XGBoost or treelite, which wrote it
    has_linear_leaves: bool = False  # of LightGBM with ``linear_tree``
    has_scores_by_target: bool = False  # a list for ``base_score``, as XGBoost writes it from 3.1

    @property
    def is_xgboost(self) -> bool:
        return self.format in ("xgboost_json", "xgboost_ubj")


def forest_format(path: Path) -> ForestFormat | None:
    """The format that a file's beginning shows; None for any other, XGBoost's old binary one included."""
    with path.open("rb") as stream:
        head = stream.read(64)
    begins = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if re.match(rb'\{\s*["}]|\[\s*[{\]]', begins):
        return "xgboost_json"
    if re.match(rb"\{(?:[iUIlL]\x00*[\x01-\xff]|[$#}])", head):
        return "xgboost_ubj"
    if re.match(rb"tree\r?\n", head):
        return "lightgbm"
    return "treelite_checkpoint" if _checkpoint_version(head) else None


def read_forest(path: Path) -> Forest | None:
    """What a file states, None where it is of no format that is read. Trees are passed over.

    Raises :class:`ForestError` where the file is damaged, or is something else in the same format.
    """
    state = path.stat()
    return _read_forest(path, state.st_size, state.st_mtime_ns)


@functools.lru_cache(maxsize=32)
def _read_forest(path: Path, _size: int, _changed: int) -> Forest | None:
    """The same of a file that has not changed: a linter reads it for several rules."""
    found = forest_format(path)
    try:
        if found == "xgboost_json":
            return _xgboost(found, json_outline(path))
        if found == "xgboost_ubj":
            return _xgboost(found, ubjson_outline(path))
    except OutlineError as error:
        raise ForestError(str(error)) from None
    return _lightgbm(path) if found == "lightgbm" else _checkpoint(path) if found else None


def _xgboost(found: ForestFormat, outline: Outline | None) -> Forest:
    if outline is None:
        return Forest(format=found)
    # What ``Booster.save_raw`` and pickles hold beside the model: ``{"Config": …, "Model": {"learner": …}}``.
    root: tuple[str, ...] = ("Model",) if any(path[:2] == ("Model", "learner") for path in outline) else ()
    if not any(path[: len(root) + 1] == (*root, "learner") for path in outline):
        raise ForestError("no model that XGBoost's save_model writes: it has no learner")
    numbers = {
        path[-1]: value for path, value in outline.items() if path[:-1] == (*root, "learner", "learner_model_param")
    }
    classes = _number(numbers, "num_class")
    return Forest(
        format=found,
        features=_number(numbers, "num_feature") or None,
        classes=None if classes is None else max(classes, 1),
        targets=_number(numbers, "num_target"),
        objective=outline.get((*root, "learner", "objective", "name"), ""),
        booster=outline.get((*root, "learner", "gradient_booster", "name"), ""),
        version=tuple(int(each) for each in re.findall(r"[0-9]{1,9}", outline.get((*root, "version"), ""))),
        has_scores_by_target=numbers.get("base_score", "").startswith("["),
    )


def _number(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name, "").strip()
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None


def _lightgbm(path: Path) -> Forest:
    with path.open("rb") as stream:
        text = stream.read(_TEXT_BYTES).decode(errors="replace")
    head, has_trees, trees = text.partition("\nTree=")
    head = head if has_trees else head.partition("\nend of trees")[0]
    fields = {name: _line(head, name) for name in ("max_feature_idx", "num_class", "objective")}
    if lacking := [name for name in ("max_feature_idx", "num_class") if has_trees and not fields[name]]:
        raise ForestError(f"LightGBM's text without {lacking[0]}")
    last, classes = _number(fields, "max_feature_idx"), _number(fields, "num_class")
    return Forest(
        format="lightgbm",
        features=None if last is None else last + 1,
        classes=None if classes is None else max(classes, 1),
        targets=1,
        objective=fields["objective"].split(" ")[0] or "custom",
        has_linear_leaves=re.search(r"^is_linear=1\s*$", trees, re.MULTILINE) is not None,
    )


def _line(text: str, name: str) -> str:
    """The value of a line ``name=value``; empty where there is none."""
    found = re.search(rf"^{name}=(.{{0,{_LINE}}})$", text, re.MULTILINE)
    return found[1].strip() if found else ""


_HEAD = struct.Struct("<iii")
_OF_V4 = struct.Struct("<iiiBBQiBBiQi")
"""Version, types, num_tree, num_feature, task_type, average_tree_output, num_target, num_class (length, first)."""
_TYPES = (1, 2, 3)


def _checkpoint_version(head: bytes) -> tuple[int, ...]:
    """Treelite's version at the beginning of its checkpoint; empty for any other file."""
    if len(head) < _OF_V4.size:
        return ()
    version, types = _HEAD.unpack_from(head), head[_HEAD.size : _HEAD.size + 2]
    is_version = version[0] in (2, 3, 4) and all(0 <= each < 100 for each in version[1:])
    return version if is_version and all(each in _TYPES for each in types) else ()


def _checkpoint(path: Path) -> Forest:
    with path.open("rb") as stream:
        head = stream.read(_OF_V4.size)
    version = _checkpoint_version(head)
    if version[0] != 4:  # others have no description of their own
        return Forest(format="treelite_checkpoint", version=version)
    *_, features, _task, _average, targets, length, classes = _OF_V4.unpack(head)
    return Forest(
        format="treelite_checkpoint",
        features=features if features > 0 else None,
        classes=classes if (targets, length) == (1, 1) and classes > 0 else None,
        targets=targets if targets > 0 else None,
        version=version,
    )
