"""Records what a model answers to its sample request, as the expected response of every later build."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonstack.disk import partial_folder
from tritonstack.errors import Problem, WorkFailedError, collecting, refuse
from tritonstack.models.adding.seeded_request import body_text
from tritonstack.models.inputs import sources_of
from tritonstack.models.manifest import Places
from tritonstack.models.programs import Report
from tritonstack.models.recipe import RECIPE
from tritonstack.models.source import ArchiveSource, BuildChoice
from tritonstack.models.staging import answer_sample
from tritonstack.paths import write_text

_DIGITS = {"FP16": 5, "FP32": 9}
"""Significant digits that name a value of the type exactly; FP64 has all that Python prints."""


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A recorded response."""

    file: Path
    outputs: tuple[str, ...]  # those in the file
    left_out: tuple[str, ...]  # those that JSON cannot hold: BYTES that are no text
    largest: float  # the largest absolute value of a floating-point output
    ran: tuple[str, ...]  # what answered: ``ONNX Runtime on the CPU, outside Triton``

    def __str__(self) -> str:
        ran = "; ".join(dict.fromkeys(line.partition(": ")[2] or line for line in self.ran)) or "the local Triton"
        left = f"; without {', '.join(self.left_out)}, whose bytes are no text" if self.left_out else ""
        return f"{', '.join(self.outputs)}, by {ran}{left}"


def record_samples(names: Sequence[str], *, choice: BuildChoice, places: Places, report: Report) -> list[Recorded]:
    """Record the responses of model folders, or of the folders of single archives, each once.

    Variants of a folder share its sample: the first of those that are named answers. Raises :class:`InputError` with
    every name that means nothing or has a response that an export makes, :class:`WorkFailedError` where a model fails.
    """
    problems: list[Problem] = []
    sources: dict[tuple[Path, str], ArchiveSource] = {}
    for name in names:
        found: tuple[ArchiveSource, ...] = ()
        with collecting(problems):
            found = sources_of(name, places.repositories, choice)
        for source in found:
            answer = source.recipe.sample.answer
            sources.setdefault((source.folder, answer), source)
            if any(answer in export.produces for export in source.recipe.exports):
                problems.append(
                    Problem(
                        file=str(source.folder / RECIPE),
                        field="sample.answer",
                        found=f"{answer}, which an export makes: the source framework answers",
                        allowed="a file of the folder",
                        advice=f"build {source.name} without --record-sample, or take it out of exports[].produces",
                    )
                )
    refuse(problems)
    return [record_sample(source, places=places, report=report) for source in sources.values()]


def record_sample(source: ArchiveSource, *, places: Places, report: Report) -> Recorded:
    """Answer a folder's sample request as a build proves it, and write that as the expected response.

    Raises :class:`InputError` for what is wrong with the folder, :class:`WorkFailedError` where the model fails, or
    answers nothing that can be compared; then the file stays as it was.
    """
    with partial_folder(places.archives, name=f".{source.name}.sample") as work:
        answered = answer_sample(source, work=work, places=places, report=report)
    kept: list[dict[str, Any]] = []
    left_out: list[str] = []
    for tensor in answered.outputs:
        try:
            kept.append({key: tensor[key] for key in ("name", "datatype", "shape")} | {"data": _data(tensor)})
        except UnicodeDecodeError:
            left_out.append(tensor["name"])
    numbers = {each["name"]: each["data"] for each in kept if each["datatype"].startswith("FP")}
    if wrong := [name for name, values in numbers.items() if any(map(math.isnan, values))]:
        advice = "Write a request that suits the model, then record again."
        raise WorkFailedError(
            f"{source.name}: {', '.join(wrong)} of the response holds NaN, which is no response to expect.\n{advice}"
        )
    if not kept:
        raise WorkFailedError(f"{source.name}: its response holds no output that JSON can state: {', '.join(left_out)}")
    file = source.folder / source.recipe.sample.answer
    write_text(file, body_text("outputs", kept))
    finite = [abs(value) for values in numbers.values() for value in values if math.isfinite(value)]
    return Recorded(
        file=file,
        outputs=tuple(each["name"] for each in kept),
        left_out=tuple(left_out),
        largest=max(finite, default=0.0),
        ran=answered.stand_ins,
    )


def _data(tensor: Mapping[str, Any]) -> list[Any]:
    if tensor["datatype"] == "BYTES":
        return [base64.b64decode(item).decode() for item in tensor["data"]]
    digits = _DIGITS.get(tensor["datatype"])
    return [float(f"{value:.{digits}g}") for value in tensor["data"]] if digits else list(tensor["data"])
