"""What a digest covers, as one zip: kept beside the archives, so that a recorded digest can be built again later."""

from __future__ import annotations

import shutil
import stat
import zipfile
import zlib
from pathlib import Path
from typing import IO

from tritonstack.disk import disk_full
from tritonstack.models.digest import library_files, lock_files
from tritonstack.models.folder import files_below
from tritonstack.models.source import ArchiveSource
from tritonstack.unpacking import UnpackLimits, UnsafeArchiveError, member_path

REPOSITORIES = "model_repos"
REQUIREMENTS = "requirements"
LIBRARY = "tritonstack/exporters"

INPUT_LIMITS = UnpackLimits(max_bytes=16 << 30, max_members=100_000)
"""Sources are small; weights that lie in a folder are sources too."""

_NO_TIME = (1980, 1, 1, 0, 0, 0)  # the first that a zip can name
_CHUNK = 1 << 20


def zip_inputs(source: ArchiveSource, target: Path) -> None:
    """Write the sources of an archive's folder, of the folders it uses, their lock files and the exporters' library.

    Inside: ``model_repos/<folder>/…``, ``requirements/<environment>.txt`` and ``tritonstack/exporters/…``, as the
    repository has them; the same bytes every time. Files that an export makes are left out.
    """
    members: dict[str, Path] = {}
    _collect(source, members)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(members):
            info = zipfile.ZipInfo(name, _NO_TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o100644 << 16
            with members[name].open("rb") as file, archive.open(info, "w", force_zip64=True) as stream:
                shutil.copyfileobj(file, stream, _CHUNK)


def unzip_inputs(archive: Path, folder: Path, *, limits: UnpackLimits = INPUT_LIMITS) -> None:
    """Unpack what :func:`zip_inputs` wrote into a new folder; nothing outside it is written, whatever the zip says.

    Raises :class:`UnsafeArchiveError` for a member that is no plain file of a model folder, the requirements or the
    library, for one that is there twice, and for what is damaged or over the limits. Then nothing is left.
    """
    folder.mkdir(parents=True)
    try:
        with zipfile.ZipFile(archive) as opened:
            _unzip(opened, folder, limits)
    except UnsafeArchiveError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError) as error:
        # zipfile's own: RuntimeError for an encrypted member, NotImplementedError for an unknown compression
        shutil.rmtree(folder, ignore_errors=True)
        if disk_full(error):
            raise
        raise UnsafeArchiveError(f"the zip is damaged or cannot be written: {error}") from error


def _unzip(opened: zipfile.ZipFile, folder: Path, limits: UnpackLimits) -> None:
    members = opened.infolist()
    if len(members) > limits.max_members:
        raise UnsafeArchiveError(f"more than {limits.max_members} members")
    left = limits.max_bytes
    for member in members:
        place = folder / _place(member)
        place.parent.mkdir(parents=True, exist_ok=True)
        with opened.open(member) as content, place.open("xb") as stream:
            left -= _copy(content, stream, most=left)


def _place(member: zipfile.ZipInfo) -> Path:
    """Where a member goes."""
    path = member_path(member.filename)
    kind = stat.S_IFMT(member.external_attr >> 16)
    inside = any(path.is_relative_to(root) and str(path) != root for root in (REPOSITORIES, REQUIREMENTS, LIBRARY))
    if member.is_dir() or kind not in (0, stat.S_IFREG) or not inside:
        raise UnsafeArchiveError(f"member {member.filename!r} is no file of a model folder or of what it is built with")
    return Path(path)


def _copy(content: IO[bytes], stream: IO[bytes], *, most: int) -> int:
    """The bytes written; their number in the zip's table may be a lie."""
    written = 0
    while chunk := content.read(_CHUNK):
        written += len(chunk)
        if written > most:
            raise UnsafeArchiveError("more bytes than allowed")
        stream.write(chunk)
    return written


def _collect(source: ArchiveSource, members: dict[str, Path]) -> None:
    folder = source.folder
    for name, path in files_below(folder):
        if name not in source.produced:
            members[f"{REPOSITORIES}/{folder.resolve().name}/{name}"] = path
    members |= {f"{REQUIREMENTS}/{lock.name}": lock for lock in lock_files(folder, source.recipe)}
    members |= {f"{LIBRARY}/{name}": path for name, path in library_files(source).items()}
    for used in source.used:
        _collect(used, members)
