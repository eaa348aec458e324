"""``docs/engines.md``: trtexec's options, or the reason of a refusal, for every release and GPU of the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from scripts.documentation.markdown import code, head, table
from tritonstack.catalogue import load_catalogue, release_order
from tritonstack.catalogue.instances import version_parts
from tritonstack.engines.trtexec import PRECISIONS, engine_options, engine_problems, tensorrt_versions
from tritonstack.models.runtime_options import Engine

SHAPES = {"input": {"min": [1, 128], "opt": [8, 128], "max": [16, 128]}}

FIELDS: tuple[tuple[str, Any], ...] = (
    ("optimisation_level", 5),
    ("tf32", False),
    ("version_compatible", True),
    ("hardware_compatibility", "ampere_plus"),
    ("hardware_compatibility", "same_compute_capability"),
    ("verbose", True),
)

ABOUT = Path(__file__).with_suffix(".md")
"""What a recipe's fields do, between the introduction and the tables."""

INTRODUCTION = """\
An engine is built on the GPU that serves it, by `trtexec` of the release's own image. `trtexec` fails on an option that
its TensorRT does not support. So an option is given only where every TensorRT that the release may contain supports it:
one version where the release's is known, several where it is not (the build reads the real one in the image and stops
unless it is one of these). `tritonstack builders -e ENVIRONMENT` shows which machine builds each engine.

Every engine has a profile (`--minShapes`, `--optShapes`, `--maxShapes`), `--memPoolSize=workspace:` with the recipe's
`workspace_mib`, `--onnx`, `--saveEngine` and, unless `timing_cache: false`, `--timingCacheFile`. The tables show the
options that differ. A range covers every release of the catalogue between its ends; [releases](reference/releases.md)
shows which of them have an image in AWS's lists.
"""


def engines_page() -> str:
    """The whole page."""
    parts = [
        head("TensorRT engines: trtexec's options by release and GPU", source="the catalogue"),
        INTRODUCTION,
        ABOUT.read_text(encoding="utf-8"),
    ]
    for precision in PRECISIONS:
        engine = _engine(precision=precision)
        rows = _by_ranges(partial(_options, engine))
        parts += [f"## precision: {precision}\n", table(["releases", "TensorRT", "GPUs", "options, or refused"], rows)]
    parts.append("## Further fields\n\nThe option that each field adds to an engine in FP32.\n")
    field_rows = [
        [code(f"{name}: {_yaml(value)}"), releases, gpus, option]
        for name, value in FIELDS
        for releases, _, gpus, option in _by_ranges(partial(_added, _engine(precision="fp32", **{name: value})))
    ]
    parts.append(table(["field", "releases", "GPUs", "option, or refused"], field_rows))
    unknown = load_catalogue().images_without_a_row
    parts.append("## Releases that are refused for every GPU\n")
    reasons = sorted((reason, release) for release, reason in unknown.items())
    by_reason = [(reason, [each for _, each in group]) for reason, group in groupby(reasons, key=lambda row: row[0])]
    parts.append(
        table(["releases", "reason"], [[", ".join(sorted(names, key=release_order)), why] for why, names in by_reason])
    )
    return "\n".join(parts)


def _by_ranges(cell: Callable[[str, str], str]) -> list[list[str]]:
    """Rows of releases, TensorRT versions, GPUs and cell: a range is neighbouring releases that agree on every GPU."""
    gpus = {row.gpu: row.compute_capability for row in load_catalogue().instances.values()}
    ordered = sorted(gpus, key=lambda gpu: (gpus[gpu], gpu))
    rows = []
    for cells, group in groupby(load_catalogue().releases, key=lambda release: [cell(release, gpu) for gpu in ordered]):
        releases = list(group)
        versions = sorted({each for release in releases for each in tensorrt_versions(release)}, key=version_parts)
        for text in dict.fromkeys(cells):
            on = [gpu for gpu, each in zip(ordered, cells, strict=True) if each == text]
            rows.append([_range(releases), _range(versions), _named(on, ordered), text])
    return rows


def _options(engine: Engine, release: str, gpu: str) -> str:
    """The options besides the profile and the workspace, or why none are given."""
    given = ("--minShapes", "--optShapes", "--maxShapes", "--memPoolSize")
    return _refusal(engine, release, gpu) or _typed(engine, release, gpu, without=given)


def _added(engine: Engine, release: str, gpu: str) -> str:
    before = engine_options(_engine(precision="fp32"), release=release, gpu=gpu)
    return _refusal(engine, release, gpu) or _typed(engine, release, gpu, without=before)


def _refusal(engine: Engine, release: str, gpu: str) -> str:
    """Why an engine is refused; without the versions, which are in the row, and the alternatives, which have rows."""
    problems = engine_problems(engine, release=release, gpu=gpu)
    reasons = [problem.found.partition(" for a release with TensorRT ")[2] or problem.found for problem in problems]
    return "; ".join(f"refused: {each.partition(', whose ')[2] or each}" for each in reasons)


def _typed(engine: Engine, release: str, gpu: str, *, without: tuple[str, ...]) -> str:
    """An engine's options but those that begin so."""
    options = engine_options(engine, release=release, gpu=gpu)
    return " ".join(code(each) for each in options if not each.startswith(without))


def _yaml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _range(names: Iterable[str]) -> str:
    first, *others = names
    return f"{first} to {others[-1]}" if others else first


def _engine(**fields: Any) -> Engine:
    return Engine.model_validate({"shapes": SHAPES, **fields})


def _named(gpus: list[str], every: list[str]) -> str:
    """The GPUs of a row; by those that it lacks where these are fewer."""
    others = [gpu for gpu in every if gpu not in gpus]
    if not others:
        return "all"
    return f"all but {', '.join(others)}" if len(others) < len(gpus) else ", ".join(gpus)
