"""The files that a client needs beside the tensors (tokenizers, labels), fetched once and kept by their content."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.client.errors import ClientFileError

HOME_VARIABLE = "TRITONSTACK_HOME"
_CHUNK = 1 << 20
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class ClientFile:
    """One file in the bucket.

    Attributes:
        name: as adapters and answers write it (``tokenizer.json``).
        sha256: of its content, 64 hexadecimal digits.
        bytes: its length.
        bucket: where it lies.
        key: its key there.
    """

    name: str
    sha256: str
    bytes: int
    bucket: str
    key: str

    def __post_init__(self) -> None:
        """Raises ValueError for what is no SHA-256: it becomes a file's name."""
        if not _SHA256.fullmatch(self.sha256):
            raise ValueError(f"client file {self.name}: {self.sha256!r} is no SHA-256")


def cache_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Where client files are kept: below TRITONSTACK_HOME, else in the user's cache folder (XDG base directories)."""
    variables = os.environ if environment is None else environment
    if home := variables.get(HOME_VARIABLE):
        return Path(home).resolve() / "client-files"
    caches = Path(variables.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return caches / "tritonstack" / "client-files"


class ClientFiles:
    """Fetches client files, each at most once. Thread safe, and processes may share the folder.

    A file lies under its SHA-256, so models that share a tokenizer share the file, and its name in the manifest never
    becomes a path.
    """

    def __init__(self, *, s3: Callable[[], Any], folder: Path | None = None) -> None:
        """Takes a function that gives the boto3 S3 client, and the folder; without it :func:`cache_folder`."""
        self._s3 = s3
        self._folder = folder
        self._checked: set[Path] = set()
        self._lock = threading.Lock()

    def paths(self, files: Mapping[str, ClientFile], names: Iterable[str]) -> dict[str, Path]:
        """Name → where the file lies now, for each of the names.

        Raises:
            ClientFileError: a file was not published, cannot be fetched or kept, or is not the one that was published.
        """
        wanted = list(names)
        missing = [name for name in wanted if name not in files]
        if missing:
            raise ClientFileError(f"no client file {', '.join(missing)} was published beside the model's manifest")
        return {name: self.path(files[name]) for name in wanted}

    def path(self, file: ClientFile) -> Path:
        """Where a file lies now. Raises ClientFileError as :meth:`paths`."""
        folder = self._folder or cache_folder()
        path = folder / file.sha256
        if path in self._checked:  # without the lock: nobody waits for another's download
            return path
        with self._lock:
            if path not in self._checked:
                try:
                    if not _is(path, file):
                        self._fetch(file, path)
                except OSError as error:
                    raise ClientFileError(
                        f"client file {file.name} cannot be kept: {error}\n"
                        f"  do: set {HOME_VARIABLE} or XDG_CACHE_HOME to a folder that can be written"
                    ) from error
                self._checked.add(path)
        return path

    def _fetch(self, file: ClientFile, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}.", delete=False) as stream:
            temporary = Path(stream.name)
            try:
                self._download(file, stream)
                stream.flush()
                if not _is(temporary, file):
                    raise ClientFileError(f"s3://{file.bucket}/{file.key} is not the file that was published")
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)

    def _download(self, file: ClientFile, stream: Any) -> None:
        place = f"s3://{file.bucket}/{file.key}"
        try:
            body = self._s3().get_object(Bucket=file.bucket, Key=file.key)["Body"]
            got = 0
            while chunk := body.read(_CHUNK):
                got += len(chunk)
                if got > file.bytes:  # a wrong object may be of any length
                    break
                stream.write(chunk)
        except (ClientError, BotoCoreError) as error:
            raise ClientFileError(f"client file {file.name} cannot be fetched from {place}: {error}") from error


def _is(path: Path, file: ClientFile) -> bool:
    """Whether the published file lies there, whole."""
    try:
        if path.stat().st_size != file.bytes:
            return False
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest() == file.sha256
    except FileNotFoundError:
        return False
