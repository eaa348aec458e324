"""Pretrained weights that lie in S3: downloaded once, checked against the recipe's SHA-256, and kept under it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError, ProfileNotFound

from tritonstack.archives.bucket import Session, code_of
from tritonstack.archives.digest import sha256_of
from tritonstack.archives.partial import partial_folder
from tritonstack.archives.programs import Report
from tritonstack.archives.recipe import RECIPE
from tritonstack.archives.source import ArchiveSource
from tritonstack.errors import InputError, Problem, WorkFailedError

CHUNK = 8 << 20
_NO_SETTINGS = (NoCredentialsError, PartialCredentialsError, ProfileNotFound)
_ABSENT = {"404", "NoSuchKey", "NotFound", "NoSuchBucket"}


def fetch_source(source: ArchiveSource, folder: Path, *, report: Report, session: Session | None = None) -> Path | None:
    """The object that a recipe's ``source`` names, as ``<folder>/<sha256>``; None where its exports take no object.

    What lies there and has that digest is not downloaded again. ``session`` makes the client; without one the shell's
    own AWS settings do, for weights are an input of a build like the files of the folder, whatever it is built for.

    Raises :class:`InputError` where there is no such object, it has another digest, or there are no credentials;
    :class:`WorkFailedError` where AWS refuses or the download breaks off. Then nothing is kept.
    """
    part = source.recipe.source
    if part is None or part.s3 is None or part.sha256 is None or source.weights == "random":
        return None
    kept = folder / part.sha256
    if kept.is_file():
        report(f"checking the weights of {source.name}")
        if sha256_of(kept) == part.sha256:
            return kept
    with partial_folder(folder, name=part.sha256[:16]) as work:
        found = _download(part.s3, work / "object", source=source, report=report, session=session)
        if found != part.sha256:
            raise _wrong(source, "source.sha256", f"{part.s3} has the SHA-256 {found}", part.sha256)
        (work / "object").replace(kept)
    return kept


def _download(url: str, file: Path, *, source: ArchiveSource, report: Report, session: Session | None) -> str:
    """Stream an object into a file; its SHA-256."""
    bucket, _, key = url.removeprefix("s3://").partition("/")
    digest, done = hashlib.sha256(), 0
    try:
        client = (session or boto3.Session()).client("s3")
        answer = client.get_object(Bucket=bucket, Key=key)
        total = int(answer["ContentLength"])
        with file.open("wb") as stream:
            for chunk in _chunks(answer["Body"]):
                digest.update(chunk)
                stream.write(chunk)
                done += len(chunk)
                report(f"weights of {source.name}: {100 * done // max(total, 1)} % of {total / 1e6:,.1f} MB")
    except _NO_SETTINGS as error:
        advice = "set AWS_PROFILE or AWS_ACCESS_KEY_ID (local AWS: tritonstack local env), or build with random weights"
        allowed = f"credentials that may read {url}"
        raise InputError([Problem(field="AWS settings", found=str(error), allowed=allowed, advice=advice)]) from error
    except (BotoCoreError, ClientError, ValueError) as error:
        if code_of(error) in _ABSENT:
            raise _wrong(source, "source.s3", f"{url}: {code_of(error)}", "an object that is there") from error
        raise WorkFailedError(f"could not download {url}: {error}") from error
    return digest.hexdigest()


def _chunks(body: Any) -> Iterator[bytes]:
    """A streamed answer's content; botocore raises where it ends early."""
    yield from body.iter_chunks(CHUNK)


def _wrong(source: ArchiveSource, field: str, found: str, allowed: str) -> InputError:
    return InputError([Problem(file=str(source.folder / RECIPE), field=field, found=found, allowed=allowed)])
