"""Archives in the bucket: where they are, their manifests, copies, and the inputs of recorded digests."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.archives.bucket import MOST_PARTS, ArtifactBucket, Place, StoredObject, belongs, written_once
from tritonstack.archives.publish import stored_manifest
from tritonstack.archives.stored_inputs import INPUT_LIMITS, REPOSITORIES
from tritonstack.aws.session import Session, parameters_below
from tritonstack.errors import InputError, Problem, WorkFailedError, refuse
from tritonstack.models.digest import REQUIREMENTS, lock_files, model_digest, sha256_of
from tritonstack.models.manifest import Manifest
from tritonstack.models.recipe import Size, Weights
from tritonstack.models.selection import sources_of
from tritonstack.models.source import ArchiveSource, BuildChoice
from tritonstack.naming import DIGEST_PATTERN, NAME_PATTERN, ArchiveName, inputs_key, release_parameter
from tritonstack.paths import setup_command
from tritonstack.preparation.build_order import Order, OrderedArchive, build_set
from tritonstack.served import Served
from tritonstack.untrusted.unpacking import UnsafeArchiveError, unpack

if TYPE_CHECKING:
    from tritonstack.config import EndpointSettings


def stored_archives(bucket: ArtifactBucket) -> Mapping[ArchiveName, tuple[Place, ...]]:
    """Every archive in the bucket → its places, sorted: one listing."""
    found: dict[ArchiveName, set[Place]] = {}
    for stored in bucket.archives():
        name, place = stored.name, stored.place
        found.setdefault(name, set()).add(place)
    return {name: tuple(sorted(places)) for name, places in found.items()}


# Sources of recorded digests.

ADVICE = (
    "check out the commit that made the release (`tritonstack releases -e ENVIRONMENT` names it), make its "
    f"environments ({setup_command()}), and run `tritonstack prepare -e ENVIRONMENT` there"
)


def source_of_digest(
    model: str, digest: str, *, repositories: Path, bucket: ArtifactBucket, work: Path, choice: BuildChoice
) -> ArchiveSource:
    """The source of a digest: the model folders where they have it, else ``inputs/<digest>.tar.gz``.

    ``work``: a folder for unpacked inputs, kept as long as the source is used. ``choice``: size and weights, tried
    first, since the digest does not record them.

    Raises :class:`InputError` where no inputs are stored, or this checkout cannot build them (another lock file or
    digest); :class:`WorkFailedError` where they are damaged, or AWS refuses.
    """
    own = _with_digest(model, digest, repositories, choice)
    if own is not None:
        return own
    key = inputs_key(digest=digest)
    archive, folder = work / f"{digest}.tar.gz", work / f"inputs-{digest}"
    if not folder.is_dir():
        if not bucket.fetch(key, archive, most_bytes=INPUT_LIMITS.max_bytes):
            found = f"{model}.{digest}, which is not of the model folders as they are, and no {key} in {bucket.name}"
            raise InputError([Problem(found=found, allowed="a digest whose inputs are kept", advice=ADVICE)])
        _unpack(archive, folder, key)
    kept = _with_digest(model, digest, folder / REPOSITORIES, choice)
    if kept is None:
        found = f"{key}, which has another digest here: it is damaged, or another version of tritonstack made it"
        raise InputError([Problem(found=found, allowed=f"the inputs of {model}.{digest}", advice=ADVICE)])
    _refuse_other_locks(kept, repositories.parent / REQUIREMENTS)
    return kept


def _with_digest(model: str, digest: str, repositories: Path, choice: BuildChoice) -> ArchiveSource | None:
    """The archive's source with this digest, of any size and weights; None where there is none."""
    for each in _choices(choice):
        try:
            for source in sources_of(model, repositories, each):
                if source.name == model and model_digest(source) == digest:
                    return source
        except InputError:  # the folder is gone, or not readable any more: it is not this digest's
            continue
    return None


def _choices(first: BuildChoice) -> Iterator[BuildChoice]:
    """The given choice, then all others."""
    yield first
    every = (BuildChoice(size=s, weights=w) for s, w in itertools.product(get_args(Size), get_args(Weights)))
    yield from (each for each in every if each != first)


def _unpack(archive: Path, folder: Path, key: str) -> None:
    """Unpack stored inputs, and remove their archive."""
    try:
        unpack(archive, folder, limits=INPUT_LIMITS)
    except UnsafeArchiveError as error:
        raise WorkFailedError(f"{key}: {error}") from error
    finally:
        archive.unlink(missing_ok=True)


def _refuse_other_locks(source: ArchiveSource, requirements: Path) -> None:
    """Raise :class:`InputError` for every lock file that differs from this checkout's."""
    problems: list[Problem] = []
    for part in (source, *source.used):
        for lock in lock_files(part.folder, part.recipe):
            own = requirements / lock.name
            if own.is_file() and sha256_of(own) == sha256_of(lock):
                continue
            differs = "another here" if own.is_file() else "not there any more"
            found = f"{REQUIREMENTS}/{lock.name} is {differs} than when {source.name} was made"
            allowed = "the same versions: an export of other ones gives another model"
            problems.append(Problem(file=str(own), found=found, allowed=allowed, advice=ADVICE))
    refuse(problems)


ONE_COPY_BYTES = 1 << 30
"""Larger objects are copied in parts, several at once. CopyObject itself ends at 5 GiB (S3 API reference)."""

PART_BYTES = 256 << 20

_COPIES = 8


def copy_archive(
    bucket: ArtifactBucket, name: ArchiveName, manifest: Manifest, *, source: Place, target: Place
) -> bool:
    """Copy an archive, its manifest and client files to another place; False where another was first.

    Only the manifest is downloaded, which the caller has read. The archive's key is the commit point: it is
    written last, and only if none exists (``If-None-Match: *``). Objects have the bucket's encryption.

    Raises :class:`WorkFailedError` where AWS refuses, or the source is gone.
    """
    for file in manifest.client_files:
        _copy(bucket, source.client_file(name, file), target.client_file(name, file))
    bucket.put_once(target.manifest(name), manifest.to_json().encode())
    first = _copy(bucket, source.archive(name), target.archive(name))
    stored = bucket.look(target.archive(name))
    if stored is not None and belongs(manifest, stored) and stored_manifest(bucket, name, target, stored) is None:
        bucket.put(target.manifest(name), manifest.to_json().encode())  # whichever run wrote either first
    return first


def _copy(bucket: ArtifactBucket, source: str, target: str) -> bool:
    """Copy one object unless the target exists; whether it was copied."""
    stored = bucket.look(source)
    if stored is None:
        raise WorkFailedError(f"s3://{bucket.name}/{source} was removed before it was copied; start again")
    write = _in_parts if stored.bytes > ONE_COPY_BYTES else _whole
    try:
        return written_once(lambda: write(bucket, source, target, stored))
    except (ClientError, BotoCoreError) as error:
        message = f"could not copy s3://{bucket.name}/{source} to {target}: {error}"
        raise WorkFailedError(message) from error


def _whole(bucket: ArtifactBucket, source: str, target: str, _stored: StoredObject) -> None:
    """One CopyObject, which copies the metadata."""
    bucket.s3.copy_object(
        Bucket=bucket.name, Key=target, CopySource={"Bucket": bucket.name, "Key": source}, IfNoneMatch="*"
    )


def _in_parts(bucket: ArtifactBucket, source: str, target: str, stored: StoredObject) -> None:
    """A multipart copy; a part is copied within S3."""
    part_bytes = max(PART_BYTES, math.ceil(stored.bytes / MOST_PARTS))

    def copied(part: Mapping[str, Any]) -> dict[str, Any]:
        first = (part["PartNumber"] - 1) * part_bytes
        last = min(first + part_bytes, stored.bytes) - 1
        place = {"Bucket": bucket.name, "Key": source}
        copy = bucket.s3.upload_part_copy(**part, CopySource=place, CopySourceRange=f"bytes={first}-{last}")
        return {"ETag": copy["CopyPartResult"]["ETag"]}

    count = math.ceil(stored.bytes / part_bytes)
    bucket.write_parts(target, stored.metadata, parts=count, at_once=_COPIES, write=copied)


# Orders with recorded digests.


def orders_of(served: Served, endpoints: Sequence[EndpointSettings], *, session: Session) -> tuple[Order, ...]:
    """An order for each endpoint of a matched environment: its build set, and the digests of its release records.

    Clients may use a recorded digest until a deployment moves the record. ``lambda/model_builds`` does the same for one
    endpoint of a deployment. Raises :class:`WorkFailedError` where SSM refuses.
    """
    environment = served.environment.environment
    return tuple(
        with_recorded(
            build_set(served, endpoint), recorded_digests(session, environment=environment, endpoint=endpoint.name)
        )
        for endpoint in endpoints
    )


def with_recorded(order: Order, recorded: Mapping[str, str]) -> Order:
    """An order with the archives of recorded digests (model → digest) that it does not name yet."""
    named = {(row.model, row.digest) for row in order.archives}
    more = (OrderedArchive(model=model, digest=digest) for model, digest in recorded.items() - named)
    return order.with_archives([*order.archives, *more])


def recorded_digests(session: Session, *, environment: str, endpoint: str) -> dict[str, str]:
    """Model → the digest that its release record names; other values are left out.

    Raises :class:`WorkFailedError` where SSM refuses.
    """
    folder = release_parameter(environment=environment, endpoint=endpoint, model="")
    return {
        model: digest
        for model, digest in parameters_below(session, folder).items()
        if re.search(NAME_PATTERN, model) and re.fullmatch(DIGEST_PATTERN, digest)
    }
