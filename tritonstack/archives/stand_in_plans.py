"""Keeps files of trtexec's stand-in, which hold an ONNX graph in a plan's place, out of every cloud."""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from tritonstack.archives.contents import TENSORRT
from tritonstack.archives.manifest import Manifest
from tritonstack.archives.marked_plan import MARK
from tritonstack.errors import WorkFailedError
from tritonstack.unpacking import IsalError, open_gzip


def refuse_stand_in(manifest: Manifest, archive: Path | None) -> None:
    """Raise :class:`WorkFailedError` where an archive holds a stand-in's plan, by its manifest or by its own content.

    Only archives with a TensorRT model are looked into: nothing else loads a plan. ``archive`` is streamed; None where
    it is not what will be published, and its manifest may be.
    """
    named = [entry.plan for entry in manifest.engines.values() if entry.stand_in]
    if not named and archive is not None and TENSORRT in manifest.backends:
        named = list(marked_plans(archive))
    if named or manifest.plan is False:
        held = ", ".join(named) or "the ONNX graph of an engine that is not built"
        raise WorkFailedError(
            f"{manifest.archive.file} holds no TensorRT engine, but {held}"
            + (", which trtexec-stand-in wrote" if named else "")
            + "\n  allowed: the local AWS, whose stand-in for TensorRT runs the graph\n"
            "  do:      build the engine on its GPU: tritonstack prepare"
        )


def marked_plans(archive: Path) -> Iterator[str]:
    """The names of the files in an archive that trtexec's stand-in wrote; it is streamed, and nothing is unpacked.

    Raises :class:`WorkFailedError` where the archive cannot be read.
    """
    try:
        with open_gzip(archive, "rb") as plain, tarfile.open(fileobj=plain, mode="r|") as tar:
            for member in tar:
                stream = tar.extractfile(member) if member.isreg() else None
                if stream is not None and stream.read(len(MARK)) == MARK:
                    yield member.name
    except (tarfile.TarError, zlib.error, IsalError, EOFError, OSError) as error:
        raise WorkFailedError(f"{archive} cannot be read: {error}") from error
