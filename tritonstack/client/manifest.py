"""Manifests of archives: a model's tensor table, and the client files (tokenizers, labels) next to it."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from tritonclient.utils import np_to_triton_dtype

from tritonstack.adapters import Adapters, Answers
from tritonstack.aws.session import code_of
from tritonstack.client.body import Array
from tritonstack.client.errors import ClientFileError
from tritonstack.client.releases import ModelRelease
from tritonstack.errors import Problem
from tritonstack.naming import artifact_parameter, manifests_prefix
from tritonstack.paths import HOME_VARIABLE, write_bytes
from tritonstack.untrusted.foreign_text import parse_json

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class ClientFile:
    """One file in the bucket."""

    name: str  # as adapters and outputs name it (``tokenizer.json``)
    sha256: str  # of its content, 64 hexadecimal digits
    bytes: int  # its length
    bucket: str  # where it is
    key: str  # its key there

    def __post_init__(self) -> None:
        """Raise ValueError for an invalid SHA-256, which becomes a file's name."""
        if not _SHA256.fullmatch(self.sha256):
            raise ValueError(f"client file {self.name}: {self.sha256!r} is no SHA-256")


def cache_folder() -> Path:
    """Folder of client files: below TRITONSTACK_HOME, else in the user's cache folder (XDG base directories)."""
    if home := os.environ.get(HOME_VARIABLE):
        return Path(home).resolve() / "client-files"
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "tritonstack" / "client-files"


class ClientFiles:
    """Fetches client files, each at most once. Thread safe, and processes may share the folder.

    A file's key is its SHA-256, so models that share a tokenizer share the file, and its name in the manifest never
    becomes a path.
    """

    def __init__(self, *, s3: Callable[[], Any], folder: Path | None = None) -> None:
        """``s3`` gives the boto3 client. ``folder``: default :func:`cache_folder`."""
        self._s3 = s3
        self._folder = folder
        self._checked: set[Path] = set()
        self._lock = threading.Lock()

    def paths(self, files: Mapping[str, ClientFile], names: Iterable[str]) -> dict[str, Path]:
        """Name → path, for each of the names.

        Raises:
            ClientFileError: a file was not published, cannot be fetched or kept, or is not the one that was published.
        """
        wanted = list(names)
        missing = [name for name in wanted if name not in files]
        if missing:
            raise ClientFileError(f"no client file {', '.join(missing)} was published next to the model's manifest")
        return {name: self.path(files[name]) for name in wanted}

    def path(self, file: ClientFile) -> Path:
        """Path of a file. Raises ClientFileError as :meth:`paths`."""
        path = (self._folder or cache_folder()) / file.sha256
        if path in self._checked:  # without the lock, so that one download does not block other files
            return path
        with self._lock:
            try:
                if not path.exists() or _sha256(path.read_bytes()) != file.sha256:
                    content = self._fetched(file)
                    write_bytes(path, content)
            except OSError as error:
                raise ClientFileError(
                    f"client file {file.name} cannot be kept: {error}\n"
                    f"  do: set {HOME_VARIABLE} or XDG_CACHE_HOME to a folder that can be written"
                ) from error
            self._checked.add(path)
        return path

    def _fetched(self, file: ClientFile) -> bytes:
        place = f"s3://{file.bucket}/{file.key}"
        try:
            body = self._s3().get_object(Bucket=file.bucket, Key=file.key)["Body"]
            content: bytes = body.read(file.bytes + 1)  # no more: a wrong object may be of any length
        except (ClientError, BotoCoreError) as error:
            raise ClientFileError(f"client file {file.name} cannot be fetched from {place}: {error}") from error
        if _sha256(content) != file.sha256:
            raise ClientFileError(f"{place} is not the file that was published")
        return content


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True, kw_only=True)
class TensorSpec:
    """One input or output."""

    name: str  # as in ``config.pbtxt``
    datatype: str  # KServe's name: ``FP32``, ``BYTES``, …
    shape: tuple[int, ...]  # with the batch dimension where the model has one; -1 where any length will do

    def __str__(self) -> str:
        return f"{self.name} {self.datatype} {shape_text(self.shape)}"


@dataclass(frozen=True, kw_only=True)
class TensorTable:
    """Inputs and outputs of a model."""

    inputs: tuple[TensorSpec, ...]  # in the order of ``config.pbtxt``
    outputs: tuple[TensorSpec, ...]  # likewise
    max_batch_size: int  # 0 where the model does not batch
    optional_inputs: frozenset[str]  # the names of the inputs that a request may leave out
    adapters: Adapters = field(default_factory=Adapters)  # how an image or a text becomes inputs
    answers: Answers = field(default_factory=Answers)  # how an output is interpreted
    client_files: Mapping[str, ClientFile] = field(default_factory=dict)  # name → file in the bucket

    def input(self, name: str) -> TensorSpec | None:
        """The input of that name."""
        return next((spec for spec in self.inputs if spec.name == name), None)

    def problems(
        self, inputs: Mapping[str, Array], outputs: Sequence[str] | None = None, *, file: str | None = None
    ) -> list[Problem]:
        """Everything in a request that the model would refuse."""
        problems = []
        for name, array in inputs.items():
            spec, place = self.input(name), f"inputs.{name}"
            if spec is None:
                problems.append(Problem(file=file, field=place, found="no such input", allowed=_listed(self.inputs)))
            else:
                problems += [
                    Problem(file=file, field=place, found=found, allowed=allowed, advice=advice)
                    for found, allowed, advice in self._misfits(spec, array)
                ]
        for spec in self.inputs:
            if spec.name not in inputs and spec.name not in self.optional_inputs:
                problems.append(Problem(file=file, field=f"inputs.{spec.name}", found="nothing", allowed=str(spec)))
        for name in outputs or ():
            if name not in {spec.name for spec in self.outputs}:
                allowed = _listed(self.outputs)
                problems.append(Problem(field=f"outputs.{name}", found="no such output", allowed=allowed))
        return problems

    def _misfits(self, spec: TensorSpec, array: Array) -> Iterator[tuple[str, str, str]]:
        datatype = datatype_of(array)
        if datatype != spec.datatype:
            yield f"datatype {datatype} (NumPy's {array.dtype})", f"datatype {spec.datatype}", ""
        if not _fits(array.shape, spec.shape):
            lacks_batch = self.max_batch_size and _fits(array.shape, spec.shape[1:])
            advice = "put the batch dimension in front: array[None]" if lacks_batch else ""
            yield f"shape {shape_text(array.shape)}", f"shape {shape_text(spec.shape)}", advice
        elif self.max_batch_size and array.shape[0] > self.max_batch_size:
            yield f"a batch of {array.shape[0]}", f"at most {self.max_batch_size}", "send it in several requests"


def datatype_of(array: Array) -> str:
    """KServe's name of an array's type; NumPy's own where there is none."""
    if array.dtype.kind in "OSU":
        return "BYTES"
    return np_to_triton_dtype(array.dtype.newbyteorder("=")) or str(array.dtype)


def shape_text(shape: Sequence[int]) -> str:
    """``[-1, 8, 8]``, as Triton writes shapes."""
    return f"[{', '.join(map(str, shape))}]"


def _fits(shape: Sequence[int], wanted: Sequence[int]) -> bool:
    return len(shape) == len(wanted) and all(want in (-1, have) for have, want in zip(shape, wanted, strict=True))


def _listed(specs: Sequence[TensorSpec]) -> str:
    return "; ".join(map(str, specs)) or "none"


log = logging.getLogger(__name__)
_UNREADABLE = (ClientError, BotoCoreError, KeyError, TypeError, ValueError, OverflowError)


class ManifestReader:
    """Reads manifests from the bucket that the environment's SSM parameter names. Thread safe.

    A manifest never changes, so one that was read is kept. Clients do not have the endpoint's platform; the
    tensor table is the same on each.
    """

    def __init__(self, *, environment: str, ssm: Callable[[], Any], s3: Callable[[], Any]) -> None:
        """``ssm`` and ``s3`` give the boto3 clients."""
        self._environment = environment
        self._ssm = ssm
        self._s3 = s3
        self._kept: dict[ModelRelease, tuple[Mapping[str, Any], TensorTable]] = {}

    def manifest(self, release: ModelRelease) -> Mapping[str, Any] | None:
        """The manifest of an archive as JSON reads it, or None where it cannot be read; the reason is logged."""
        found = self._found(release)
        return None if found is None else found[0]

    def table(self, release: ModelRelease) -> TensorTable | None:
        """The tensor table of an archive, or None where its manifest cannot be read, or is none."""
        found = self._found(release)
        return None if found is None else found[1]

    def _found(self, release: ModelRelease) -> tuple[Mapping[str, Any], TensorTable] | None:
        if release not in self._kept:
            try:
                manifest, bucket, folder = self._read(release)
                self._kept[release] = manifest, read_table(manifest, bucket=bucket, folder=folder)
            except _UNREADABLE as error:
                log.info("no manifest of %s: %s", release.archive, error)
                return None
        return self._kept[release]

    def _read(self, release: ModelRelease) -> tuple[Any, str, str]:
        """The manifest, its bucket, and the prefix of its client files. Raises _UNREADABLE."""
        name = artifact_parameter(environment=self._environment, value="bucket-name")
        bucket = self._ssm().get_parameter(Name=name)["Parameter"]["Value"]
        prefix = manifests_prefix(release.endpoint)
        pages = self._s3().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, Delimiter="/")
        platforms = [common["Prefix"] for page in pages for common in page.get("CommonPrefixes", ())]
        for platform in sorted(platforms, reverse=True):
            folder = f"{platform}{release.archive.stem}"
            try:
                manifest = parse_json(self._s3().get_object(Bucket=bucket, Key=f"{folder}.json")["Body"].read())
            except ClientError as error:
                if code_of(error) not in {"NoSuchKey", "404"}:
                    raise
            else:
                return manifest, bucket, folder
        raise KeyError(f"nothing under s3://{bucket}/{prefix}")


def read_table(manifest: Any, *, bucket: str = "", folder: str = "") -> TensorTable:
    """The tensor table that a manifest holds.

    Args:
        manifest: as JSON reads it.
        bucket: where it is.
        folder: the prefix of its client files: its own key without ``.json``.

    Raises:
        KeyError, TypeError, ValueError: it is no manifest as ``tritonstack publish`` writes them.
    """
    model = manifest["model"]
    return TensorTable(
        inputs=tuple(_spec(tensor) for tensor in model["inputs"]),
        outputs=tuple(_spec(tensor) for tensor in model["outputs"]),
        max_batch_size=int(model["max_batch_size"]),
        optional_inputs=frozenset(tensor["name"] for tensor in model["inputs"] if tensor.get("optional")),
        adapters=Adapters.model_validate(manifest.get("adapters") or {}),
        answers=Answers.model_validate(manifest.get("answers") or {}),
        client_files={
            name: ClientFile(
                name=name, sha256=file["sha256"], bytes=int(file["bytes"]), bucket=bucket, key=f"{folder}/{name}"
            )
            for name, file in dict(manifest.get("client_files") or {}).items()
        },
    )


def _spec(tensor: Any) -> TensorSpec:
    return TensorSpec(name=tensor["name"], datatype=tensor["datatype"], shape=tuple(map(int, tensor["shape"])))
