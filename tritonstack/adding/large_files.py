"""Large files of a new model folder: what version control would keep, and where else they can lie."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from tritonstack.lint.registry import shown
from tritonstack.models.digest import sha256_of
from tritonstack.models.recipe import RECIPE
from tritonstack.models.source_files import files_below
from tritonstack.naming import DIGEST_LENGTH

LARGE = 50_000_000
"""Bytes of a folder's files from which on somebody should choose where they lie. GitHub warns of a file from 50 MiB on
and refuses one of more than 100 MiB (docs.github.com: About large files on GitHub)."""
COUNTS = 10_000_000
"""Bytes of a file that is worth a place elsewhere."""


def large_file_advice(folder: Path, *, project: Path) -> Iterator[str]:
    """Lines on a folder of many bytes: its large files, and how Git LFS or a bucket keeps them; nothing for others.

    ``project``: the folder with ``.gitattributes``.
    """
    sizes = {name: path.stat().st_size for name, path in files_below(folder)}
    total, large = sum(sizes.values()), [name for name, size in sizes.items() if size >= COUNTS]
    if total < LARGE or not large:
        return
    yield f"{shown(folder)} would put {total / 1e6:,.0f} MB into git, which keeps them in every clone for ever:"
    yield from (f"  {name}  {sizes[name] / 1e6:,.0f} MB" for name in large)
    yield "Before the first commit, one of:"
    inside = folder.resolve().relative_to(project.resolve()).as_posix()
    tracked = " ".join(shlex.quote(f"{inside}/{name}") for name in large)
    yield f"  Git LFS:  git lfs install && git lfs track {tracked} && git add .gitattributes"
    yield "    which writes into .gitattributes:"
    yield from (f"      {inside}/{name} filter=lfs diff=lfs merge=lfs -text" for name in large)
    yield "  a bucket, from which builds download and check them (the folder's own are taken where they are there):"
    digests = {name: sha256_of(folder / name) for name in large}
    places = {name: f"s3://BUCKET/{folder.name}/{digests[name][:DIGEST_LENGTH]}/{Path(name).name}" for name in large}
    for name in large:
        yield f"    aws s3 cp {shlex.quote(shown(folder / name))} {shlex.quote(places[name])}"
    ignored = " ".join(shlex.quote(f"/{name}") for name in large)
    yield f"    printf '%s\\n' {ignored} >> {shlex.quote(shown(folder / '.gitignore'))}"
    yield f"    and in {shown(folder / RECIPE)}:"
    yield "      files:"
    # In quotes: a hash of digits alone, or with one e among them, is a number in YAML.
    yield from (f'        {name}: {{s3: {places[name]}, sha256: "{digests[name]}"}}' for name in large)
