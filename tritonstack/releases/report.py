"""Current and earlier releases of an environment's models, matched with the deployed release sets and the bucket."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from tritonstack.archives.bucket import ArtifactBucket, Place
from tritonstack.deployed.left import LeftEntry
from tritonstack.models.manifest import EngineMeasurement, measurements_of
from tritonstack.naming import ArchiveName, Platform, platform_prefix, release_parameter
from tritonstack.releases.records import READERS, DeployedSet, Record, Writer, uploads_again
from tritonstack.untrusted.foreign_text import parse_json


class _ReleasesModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ReleaseEntry(_ReleasesModel):
    """One value of a release record."""

    digest: str = Field(description="Of the inputs; part of the archive's name.")
    current: bool = Field(description="Whether clients get this archive now.")
    time: dt.datetime = Field(description="When the record got this value.")
    writer: Writer = Field(
        description="deployment; restored: CloudFormation, which undid a deployment; rollback: tritonstack rollback; "
        "dev: tritonstack local dev; unknown: the writer left no note."
    )
    platform: str | None = Field(description="Of the endpoint at that time; null where the writer did not say.")
    commit: str = Field(description="Where the model's inputs come from; or uncommitted, or unknown.")
    archive: bool = Field(description="Whether its archive lies under the endpoint's platform of now.")


class ModelReleases(_ReleasesModel):
    """A model of an endpoint."""

    model: str = Field(description="The model's name.")
    deployed: str | None = Field(
        description="The digest in the deployed release set; null where it has none, or is gone."
    )
    differs: str | None = Field(description="How record and deployed set differ; null: they agree.")
    fix: str | None = Field(description="What to do about it.")
    proof_skipped: str | None = Field(
        description="Why nothing proved the current release's archive before it was published; null: it was proven."
    )
    engines: tuple[EngineMeasurement, ...] = Field(
        default=(),
        description="What trtexec measured of the current release's TensorRT engines, by model and profile, when they "
        "were built; empty: it has none, or they were not measured.",
    )
    releases: tuple[ReleaseEntry, ...] = Field(description="Newest first; Systems Manager keeps the last 100.")


class EndpointReleases(_ReleasesModel):
    """An endpoint."""

    endpoint: str = Field(description="Its name in the environment.")
    stack: str | None = Field(description="The status of its stack; null where it is not deployed.")
    platform: str | None = Field(description="Triton release and GPU as deployed; null where it is not.")
    models: tuple[ModelReleases, ...] = Field(description="By name.")


class ReleasesReport(_ReleasesModel):
    """An environment."""

    environment: str = Field(description="Its name.")
    endpoints: tuple[EndpointReleases, ...] = Field(description="By name.")
    left: tuple[LeftEntry, ...] | None = Field(
        default=None,
        description="Deployed stacks that the environment's file no longer has, endpoints above among them; null: not "
        "known, or not looked at, as for one model.",
    )


def archives_under(bucket: ArtifactBucket, *, endpoint: str, platform: Platform) -> frozenset[ArchiveName]:
    """The archives under an endpoint's platform: one listing."""
    prefix = platform_prefix(endpoint=endpoint, platform=platform)
    names = (ArchiveName.parse(row["Key"].removeprefix(prefix)) for row in bucket.keys(prefix))
    return frozenset(name for name in names if name is not None)


@dataclass(frozen=True, kw_only=True)
class ManifestFacts:
    """Parts of a manifest, of whichever version wrote it, that a report shows."""

    proof_skipped: str | None = None  # why nothing proved the archive
    engines: tuple[EngineMeasurement, ...] = ()  # what trtexec measured


def manifest_facts(
    bucket: ArtifactBucket, archives: Iterable[ArchiveName], *, place: Place
) -> dict[str, ManifestFacts]:
    """Model → facts of its archive's manifest; several read at once."""

    def read(name: ArchiveName) -> ManifestFacts:
        try:
            manifest = parse_json(bucket.read(place.manifest(name)) or b"{}")
            figures = manifest.get("figures", {})
            return ManifestFacts(proof_skipped=manifest.get("proof_skipped"), engines=measurements_of(figures))
        except (ValueError, AttributeError, TypeError):
            return ManifestFacts()  # another command reports what is wrong with it

    names = tuple(archives)
    with ThreadPoolExecutor(READERS) as pool:
        return {name.model: facts for name, facts in zip(names, pool.map(read, names), strict=True)}


def endpoint_report(
    environment: str,
    endpoint: str,
    records: Iterable[Record],
    *,
    deployed: DeployedSet | None,
    archives: frozenset[ArchiveName],
    facts: Mapping[str, ManifestFacts],
) -> EndpointReleases:
    """Current and earlier releases of one endpoint's models.

    ``records``: of every model that is recorded or deployed. ``archives``: what is under the deployed platform.
    ``facts``: model → facts of its current release's manifest, where there is one.
    """
    wanted: Mapping[str, str] = deployed.models if deployed else {}
    models = []
    for record in sorted(records, key=lambda each: each.model):
        differs, fix = difference(environment, record, deployed=deployed) or (None, None)
        entries = [
            ReleaseEntry(
                digest=version.digest,
                current=version is record.versions[0],
                time=version.time,
                writer=version.writer,
                platform=version.platform,
                commit=version.commit,
                archive=ArchiveName(model=record.model, digest=version.digest) in archives,
            )
            for version in record.versions
        ]
        models.append(
            ModelReleases(
                model=record.model,
                deployed=wanted.get(record.model),
                differs=differs,
                fix=fix,
                proof_skipped=facts.get(record.model, ManifestFacts()).proof_skipped,
                engines=facts.get(record.model, ManifestFacts()).engines,
                releases=tuple(entries),
            )
        )
    return EndpointReleases(
        endpoint=endpoint,
        stack=deployed.status if deployed else None,
        platform=str(deployed.platform) if deployed else None,
        models=tuple(models),
    )


def difference(environment: str, record: Record, *, deployed: DeployedSet | None) -> tuple[str, str] | None:
    """How a record differs from what is deployed, in one sentence, and what to do about it; None where it does not."""
    if deployed is not None and deployed.gone is not None:
        fix = f"to upload it again: {uploads_again(environment=environment, endpoint=record.endpoint)}"
        return f"could not be compared with what is deployed: {deployed.gone}", fix
    name = f"{record.endpoint}/{record.model}"
    wanted = deployed.models.get(record.model) if deployed else None
    if wanted == record.digest:
        return None
    if deployed is not None and deployed.in_progress:
        return f"a deployment is under way ({deployed.status})", "look again when it has ended"
    if wanted is None:
        parameter = release_parameter(environment=environment, endpoint=record.endpoint, model=record.model)
        where = "the deployed set has no such model" if deployed else "the endpoint is not deployed"
        return where, f"to remove the record: aws ssm delete-parameter --name {parameter}"
    back = f"tritonstack rollback -e {environment} {name} --to {wanted} --yes"
    if record.digest is None:
        return "there is no record, and clients find no archive", f"to write it again: {back}"
    writer = record.versions[0].writer
    writers = {"rollback": "by tritonstack rollback", "dev": "by tritonstack local dev"}
    moved = writers.get(writer, "outside of a deployment")
    deploys = f"tritonstack local deploy -e {environment}" if writer == "dev" else "change the model and deploy it"
    return (
        f"moved {moved}; the deployed set has {wanted}, and deployments leave it until the model changes",
        f"{deploys}, or go back: {back}",
    )
