"""Rules about a forest's configuration against its file: features, classes, objective, and what a release reads.

Source: triton-inference-server/fil_backend src/tl_model.h, src/gpu_forest_model.h, src/model.h (predict),
src/tl_utils.h (tl_get_num_classes), docs/model_support.md; rapidsai/rapids-triton
cpp/include/rapids_triton/model/shared_state.hpp (output_shapes_); treelite src/model_loader/, by the version that
cmake/thirdparty/get_treelite.cmake pins.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tritonstack.catalogue.triton_releases import TritonRelease, release_order
from tritonstack.lint.backends.fil import (
    BACKEND,
    INPUT,
    OUTPUT,
    REWRITTEN_IN,
    SHAP,
    fil_facts,
    given_parameters,
    is_before,
    is_classifier,
)
from tritonstack.lint.registry import Finding
from tritonstack.lint.view import RepositoryView, at_line
from tritonstack.model_files.file_formats import Mismatch
from tritonstack.model_files.forest_file import Forest, ForestError, read_forest
from tritonstack.models.model_config import Tensor
from tritonstack.models.model_view import ModelView


def check_forest(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Check a forest's configuration against its file, and that a release reads the file."""
    if model.backend != BACKEND or not model.is_readable:
        return
    forest: Forest | None = None
    for version in model.served_versions:
        path = model.on_disk(f"{version}/{model.model_file}") if model.model_file else None
        try:
            forest = read_forest(path) if path else None
        except ForestError:  # reported by model-file-content, as is a file of another format
            forest = None
        if path is not None and forest is not None and forest.format == model.config.forest_type:
            passes = given_parameters(model).get("xgboost_allow_unknown_field") == "true"
            if wrong := unread_file(forest, view.target.release, passes_unknown=passes):
                yield Finding(file=path, rule="fil-file", found=wrong.found, allowed=wrong.allowed, advice=wrong.advice)
        else:
            forest = None
    yield from _dims(view, model, forest)
    if forest is not None:
        yield from _objective(model, forest)


XGBOOST_2_FROM = "23.11"
"""The first release with treelite 3.9, which knows ``iteration_indptr`` of XGBoost 2.0 and newer."""
SCORES_FROM = "26.01"
"""The first release whose treelite (4.6.1) reads the list that XGBoost writes for ``base_score`` from 3.1 on."""
TREELITE_4_FROM = "24.03"
"""The first release with treelite 4: fil_backend docs/model_support.md (Version Compatibility)."""


IN_PYTHON = "serve it as a Python model, with its library in the execution environment"
IN_ONNX = "write it so, or convert it to ONNX with onnxmltools"


def unread_file(forest: Forest, release: TritonRelease | None, *, passes_unknown: bool = False) -> Mismatch | None:
    """The part of a file that a release cannot read; without a release, that no release can. None where all is read.

    ``passes_unknown``: whether fields unknown to treelite are ignored: ``xgboost_allow_unknown_field``.
    """
    found, allowed = "", ""
    if forest.booster == "gblinear":
        found, allowed = "booster gblinear, which has no trees", "gbtree or dart"
    elif forest.targets is not None and forest.targets > 1:
        found, allowed = f"a forest of {forest.targets} targets", "one target a forest"
    elif forest.has_linear_leaves:
        found = "linear functions in its leaves (linear_tree), which are left out or refused"
        allowed = "constant leaves: linear_tree=False"
    if found:
        return Mismatch(found=found, allowed=allowed, advice=IN_PYTHON)
    return None if release is None else _newer_file(forest, release, passes_unknown=passes_unknown)


def _newer_file(forest: Forest, release: TritonRelease, *, passes_unknown: bool) -> Mismatch | None:
    """The same for files that a newer release reads."""
    version, refused = ".".join(map(str, forest.version)), fil_facts()["refused_objectives"]
    reads = f"XGBoost {'3.0' if release.at_least(XGBOOST_2_FROM) else '1.7'} or older in release {release.version}"
    if forest.has_scores_by_target and not release.at_least(SCORES_FROM):
        found = f"a file of XGBoost {version}, whose base_score is a list"
        return Mismatch(found=found, allowed=f"{reads}: newer files are read from {SCORES_FROM} on", advice=IN_ONNX)
    if forest.is_xgboost and forest.version >= (2,) and not release.at_least(XGBOOST_2_FROM) and not passes_unknown:
        found = f"a file of XGBoost {version}, with fields that treelite does not know"
        or_else = ', or the parameter xgboost_allow_unknown_field "true"' if release.at_least("23.10") else ""
        return Mismatch(found=found, allowed=f"{reads}{or_else}", advice=IN_ONNX)
    if forest.objective in refused["names"] and release.order <= release_order(refused["last"]):
        allowed = f"another objective in release {release.version}, whose treelite has no name for it"
        return Mismatch(
            found=f"objective {forest.objective}", allowed=allowed, advice="convert it to ONNX with onnxmltools"
        )
    if forest.format == "treelite_checkpoint" and not _reads_checkpoint(release, forest.version):
        reads = f"treelite {'4, or 3.9' if release.at_least(TREELITE_4_FROM) else '3, or 2.4'}"
        allowed = f"{reads} in release {release.version}"
        return Mismatch(
            found=f"a checkpoint of treelite {version}", allowed=allowed, advice="write it with such a version"
        )
    return None


def _reads_checkpoint(release: TritonRelease, version: tuple[int, ...]) -> bool:
    """Whether a release reads a checkpoint of a version of treelite."""
    if release.at_least(TREELITE_4_FROM):
        return version[0] == 4 or version[:2] == (3, 9)
    return version[0] == 3 or version[:2] == (2, 4)


def _dims(view: RepositoryView, model: ModelView, forest: Forest | None) -> Iterator[Finding]:
    """Lengths of a row of inputs and outputs. The backend compares none: it reads and writes past the tensors' ends."""
    features = forest.features if forest else None
    for tensor in model.config.inputs:
        if tensor.name != INPUT or not tensor.dims:
            continue
        dims, row = tensor.dims, tensor.reshape if tensor.reshape is not None else tensor.dims
        if not model.is_batched and len(row) == 1:
            found = f"{INPUT} {list(dims)} with max_batch_size 0, of which every number is taken for a row"
            allowed = f"max_batch_size: 1 or more, or dims: [ -1, {features or '…'} ]"
            yield at_line(model, tensor.line, "fil-dims", found, allowed)
            continue
        length = _product(row if model.is_batched else row[1:])
        if features is not None and length not in (None, features):
            found, allowed = f"{INPUT} of {length} numbers a row", f"{features}, the features of {model.model_file}"
            yield at_line(model, tensor.line, "fil-dims", found, allowed)
    for tensor in model.config.outputs:
        given = _length(tensor)
        if given is None:
            continue
        if tensor.name == OUTPUT:
            yield from _output(view, model, forest, tensor, given)
        elif tensor.name == SHAP and features is not None and forest is not None and forest.classes is not None:
            wanted = (features + 1) * forest.classes
            if given != wanted:
                allowed = f"{wanted}: {forest.classes} x ({features} features and the bias)"
                yield at_line(model, tensor.line, "fil-dims", f"{SHAP} of {given} numbers a row", allowed)


def _length(tensor: Tensor) -> int | None:
    """Numbers that the backend makes room for in each row of an output; a leading -1 is taken for the batch."""
    dims = tensor.dims if tensor.reshape is None else tensor.reshape
    return _product(dims[1:] if dims[:1] == (-1,) else dims) if dims else None


def _product(dims: Sequence[int]) -> int | None:
    return None if any(length < 1 for length in dims) else math.prod(dims)


def _output(
    view: RepositoryView, model: ModelView, forest: Forest | None, tensor: Tensor, given: int
) -> Iterator[Finding]:
    parameters, before = given_parameters(model), is_before(view, REWRITTEN_IN)
    has_probabilities = parameters.get("predict_proba") == "true"
    classes = forest.classes if forest else None
    wanted = _lengths(classes, has_probabilities=has_probabilities, classifies=is_classifier(parameters), before=before)
    found = f"{OUTPUT} of {given} {'number' if given == 1 else 'numbers'} a row"
    found += " with predict_proba" if has_probabilities else ""
    if wanted and given not in wanted:
        allowed = f"{' or '.join(map(str, wanted))}: " + (
            "one for each class of the file" if has_probabilities else "with predict_proba one for each class"
        )
        yield at_line(model, tensor.line, "fil-dims", found, allowed)
    elif has_probabilities and given == 1 and classes is None and before:
        yield at_line(model, tensor.line, "fil-dims", found, "2 or more: one for each class")
    elif has_probabilities and given == 1 and classes in (None, 1) and before is None:
        allowed = f"dims: [ 2 ] for two classes: [ 1 ] is right from release {REWRITTEN_IN} on alone"
        yield at_line(model, tensor.line, "fil-probabilities", found, allowed)


def _lengths(
    classes: int | None, *, has_probabilities: bool, classifies: bool | None, before: bool | None
) -> tuple[int, ...]:
    """Number of values that the backend may write for each row; none where file, parameters and release leave it open.

    ``before``: whether the release is older than the rewritten backend, None where it is not known.
    """
    if not has_probabilities and classifies:
        return (1,)
    if classes is None or classifies is None:
        return ()
    if not has_probabilities:  # of several classes older releases write one number on a GPU, all of them on a CPU
        return (classes,) if classes == 1 or before is False else ()
    if classes > 1:
        return (classes,)
    if before:
        return (2,)
    return (1, 2) if classifies or before is None else (1,)


def _objective(model: ModelView, forest: Forest) -> Iterator[Finding]:
    """Class output for a model that predicts values; a threshold that every probability passes, or none."""
    given, facts = given_parameters(model), fil_facts()
    line = model.config.node.line_of("parameters")
    if forest.objective in facts["values"]:
        asked = [name for name in ("output_class", "is_classifier", "predict_proba") if given.get(name) == "true"]
        if asked:
            found = f'{asked[0]} "true" for objective {forest.objective}, which predicts values'
            yield at_line(model, line, "fil-objective", found, f'{asked[0]} "false", which answers them')
    elif forest.objective in facts["probabilities"] and is_classifier(given) and given.get("predict_proba") != "true":
        try:
            threshold = float(given.get("threshold", "0.5"))
        except ValueError:
            return
        if not 0 <= threshold < 1:
            found = f"threshold {threshold:g} for objective {forest.objective}, which predicts probabilities"
            yield at_line(model, line, "fil-objective", found, "0 or more, and less than 1")
