"""``docs/engines.md``: for every release and GPU, trtexec's options or the reason why no engine is built.

``python -m tritonstack.engines.table`` prints it; ``--write`` writes the file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from tritonstack.catalogue import load_catalogue, release_order
from tritonstack.engines.trtexec import PRECISIONS, engine_options, engine_problems, tensorrt_versions
from tritonstack.models.engine_recipe import Engine
from tritonstack.paths import repository_path

PATH = repository_path("docs/engines.md")
SHAPES = {"input": {"min": [1, 128], "opt": [8, 128], "max": [16, 128]}}
FULL_GPU = "L4"
"""A GPU that has all that a field may ask for: what is refused on it, the release refuses."""

REFUSED = "refused"

FIELDS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("optimisation_level: 5", {"optimisation_level": 5}),
    ("tf32: false", {"tf32": False}),
    ("structured_sparsity: true", {"structured_sparsity": True}),
    ("version_compatible: true", {"version_compatible": True}),
    ("hardware_compatibility: ampere+", {"hardware_compatibility": "ampere+"}),
    ("hardware_compatibility: same-compute-capability", {"hardware_compatibility": "same-compute-capability"}),
)

HEAD = """# TensorRT engines: what is built for which release and GPU

Generated from the catalogue by `python -m tritonstack.engines.table --write`; do not edit.

An engine is built on the GPU that serves it, by `trtexec` of the release's own image. `trtexec` fails on an option that
its TensorRT does not know. So an option is given only where every TensorRT that the release may have knows it: one
version where the release's is known, several where it is not (the build reads the real one in the image and stops
unless it is one of these). A capital letter is a set of options, a number the reason of a refusal; both follow.
Releases in *italics* have no image in AWS's lists: without an `image` of the environment's own they are refused.
Which machine builds, and what is refused for want of one, `tritonstack builders ENVIRONMENT` shows.

Every engine has a profile (`--minShapes`, `--optShapes`, `--maxShapes`) and a workspace (`workspace_mib`), and the
files `--onnx`, `--saveEngine` and, unless `timing_cache: false`, `--timingCacheFile`. The sets show the input `input`
with 128 tokens, in batches of 1 to 16.
"""


class Legend:
    """Texts, each under the name it got when it was first met."""

    def __init__(self, *, letters: bool) -> None:
        """``letters``: A, B, … Otherwise 1, 2, …"""
        self._letters = letters
        self._names: dict[str, str] = {}

    def name(self, text: str) -> str:
        """The text's name."""
        place = len(self._names)
        return self._names.setdefault(text, chr(ord("A") + place) if self._letters else str(place + 1))

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Name and text, in the order of the names."""
        return ((name, text) for text, name in self._names.items())


def page() -> str:
    """The whole file."""
    sets, reasons = Legend(letters=True), Legend(letters=False)
    parts = [HEAD]
    for precision in PRECISIONS:
        parts += [f"## precision: {precision}\n", _precision_table(precision, sets, reasons)]
    parts += ["## Sets of options\n"]
    parts += [f"**{name}**\n\n```\n{text}\n```\n" for name, text in sets]
    parts += ["## Reasons\n", "".join(f"{name}. {text}\n" for name, text in reasons)]
    parts += [f"## Further fields\n\nWhat an engine in FP32 on an {FULL_GPU} gets.\n", _field_table()]
    parts += [
        "".join(_gpu_refusals()),
        "## Releases that are refused for every GPU\n",
        _unknown_releases(),
    ]
    return "\n".join(parts)


def _engine(**fields: Any) -> Engine:
    return Engine.model_validate({"shapes": SHAPES, **fields})


def _gpus() -> list[str]:
    """Every GPU of the catalogue, the least compute capability first."""
    rows = {row.gpu: row.compute_capability for row in load_catalogue().instances.values()}
    return sorted(rows, key=lambda gpu: (rows[gpu], gpu))


def _precision_table(precision: str, sets: Legend, reasons: Legend) -> str:
    engine = _engine(precision=precision)
    rows = [
        [
            _shown(release),
            ", ".join(tensorrt_versions(release)),
            *(_cell(engine, release, gpu, sets, reasons) for gpu in _gpus()),
        ]
        for release in load_catalogue().releases
    ]
    return _table(["release", "TensorRT", *_gpus()], rows)


def _cell(engine: Engine, release: str, gpu: str, sets: Legend, reasons: Legend) -> str:
    problems = engine_problems(engine, release=release, gpu=gpu, own_image=True)
    if problems:
        said = [f"{problem.found}. Allowed: {problem.allowed}." for problem in problems]
        said = [text.replace(f"release {release} with", "a release with") for text in said]
        return ", ".join(reasons.name(text) for text in said)
    return sets.name(" ".join(engine_options(engine, release=release, gpu=gpu)))


def _field_table() -> str:
    releases = list(load_catalogue().releases)
    rows = [[f"`{name}`", *(_field_cell(wish, release) for release in releases)] for name, wish in FIELDS]
    columns = zip(["release", *map(_shown, releases)], *rows, strict=True)
    head, *body = (list(column) for column in columns)
    return _table(head, body)


def _field_cell(wish: dict[str, Any], release: str) -> str:
    plain, wished = _engine(precision="fp32"), _engine(precision="fp32", **wish)
    if engine_problems(wished, release=release, gpu=FULL_GPU, own_image=True):
        return REFUSED
    before = engine_options(plain, release=release, gpu=FULL_GPU)
    added = [option for option in engine_options(wished, release=release, gpu=FULL_GPU) if option not in before]
    return " ".join(f"`{option}`" for option in added)


def _gpu_refusals() -> Iterator[str]:
    """A sentence for each GPU that is refused a field with every release, though some release has it."""
    releases = load_catalogue().releases
    for name, wish in FIELDS:
        engine = _engine(precision="fp32", **wish)
        on_all = {
            gpu
            for gpu in _gpus()
            if all(engine_problems(engine, release=release, gpu=gpu, own_image=True) for release in releases)
        }
        if FULL_GPU not in on_all:
            yield from (f"`{name}` is refused on {gpu} with every release.\n" for gpu in _gpus() if gpu in on_all)


def _unknown_releases() -> str:
    unknown = load_catalogue().release_table.images_without_a_row
    rows = [[release, unknown[release]] for release in sorted(unknown, key=release_order)]
    return _table(["release", "reason"], rows)


def _shown(release: str) -> str:
    has_image = release in load_catalogue().image_table.regions
    return release if has_image else f"*{release}*"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(prog="python -m tritonstack.engines.table", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PATH.name} instead of printing")
    if not parser.parse_args(arguments).write:
        sys.stdout.write(page())
        return 0
    fresh = PATH.with_suffix(".md.part")
    fresh.write_text(page(), encoding="utf-8")
    fresh.replace(PATH)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
