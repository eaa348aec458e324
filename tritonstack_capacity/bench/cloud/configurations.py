"""What Inference Recommender tests: an endpoint's model as it is deployed, or an archive that no endpoint serves."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from tritonstack.client.errors import InvokeTarget
from tritonstack.client.model_client import ModelClient
from tritonstack.client.releases import ModelRelease
from tritonstack.config import EndpointSettings, Environment
from tritonstack.errors import Problem, collecting, refuse
from tritonstack.local_aws import is_local
from tritonstack.naming import archive_key, payloads_prefix
from tritonstack.served import Served
from tritonstack_capacity.bench.document import ResultPart, result_part
from tritonstack_capacity.bench.subject import BenchTarget, Subject, describe_endpoint, find_target, payload_of

GENERATOR = "SageMaker Inference Recommender"


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """A single-model endpoint's model as it is deployed, and the request to it."""

    result: ResultPart  # of the document, without figures: what stays where a job finds nothing
    # of the deployed model, as SageMaker describes it
    container: dict[str, Any]
    vpc: dict[str, list[str]] | None
    # where its sample request lies, packed, and of what type that is
    payload_url: str
    content_type: str
    payload: bytes = b""  # what is to lie there

    @property
    def name(self) -> str:
        """Name in tables."""
        return self.result.configuration


REQUEST = "request"
"""The one file of a payload's archive."""


def deployed_configuration(
    endpoint: EndpointSettings, *, environment: Environment, session: Any, bucket: str, test: str
) -> Configuration:
    """The endpoint's model as it is deployed, with its sample request.

    Raises ReleaseLookupError: it is not deployed; InputError: its sample cannot be read, or cannot be written in
    JSON.
    """
    client = ModelClient(environment=environment.environment, session=session)
    name = f"{endpoint.name}/{endpoint.models[0]}"
    target = find_target(client, session, name=name)
    _, _, model = describe_endpoint(session.client("sagemaker"), target.call.endpoint_name)
    return _configuration(
        endpoint.models[0],
        endpoint,
        client=client,
        target=target,
        container=model["PrimaryContainer"],
        vpc=model.get("VpcConfig"),
        payload_url=f"s3://{bucket}/{payloads_prefix(test=test)}{endpoint.models[0]}.tar.gz",
    )


class ArchiveClient(ModelClient):
    """A client of models by their archives, which no endpoint serves: manifest, inputs, client files; no requests."""

    def __init__(self, *, environment: str, session: Any, releases: Mapping[str, ModelRelease]) -> None:
        """``releases``: name → archive, where release records have none."""
        super().__init__(environment=environment, session=session)
        self._archives = releases

    def resolve(self, name: str) -> ModelRelease:
        """The archive of a name."""
        return self._archives[name]


def archived_configurations(
    endpoints: Sequence[EndpointSettings], *, served: Served, session: Any, bucket: str, test: str
) -> list[Configuration]:
    """Configurations from their archives alone, under the names of the endpoints that no stack makes.

    Raises InputError: archives are not in the bucket, or a sample cannot be written in JSON; all at once.
    """
    environment = served.environment
    matched = [each for each in environment.endpoints if each.name in {one.name for one in endpoints}]
    releases = {
        each.name: ModelRelease(endpoint=each.name, model=model, digest=digest)
        for each in matched
        for model, digest in served.release_sets[each.name].items()
    }
    client = ArchiveClient(environment=environment.environment, session=session, releases=releases)
    local = " --local" if is_local(session.client("s3")) else ""
    problems: list[Problem] = []
    found = []
    for each in matched:
        key = archive_key(endpoint=each.name, platform=each.platform, archive=releases[each.name].archive)
        if client.manifest(each.name) is None or not _is_there(session.client("s3"), bucket, key):
            problems.append(
                Problem(
                    field=each.name,
                    found=f"no archive s3://{bucket}/{key}, or no manifest of it",
                    allowed="the archive of each configuration, built and published before the test",
                    advice=f"tritonstack prepare -e {environment.environment}{local}",
                )
            )
            continue
        container = {
            "Image": each.image_uri(environment.region),
            "ModelDataUrl": f"s3://{bucket}/{key}",
            "Environment": each.container_environment(),
        }
        target = BenchTarget(
            name=each.name,
            release=releases[each.name],
            call=InvokeTarget(endpoint_name=each.sagemaker_name(environment.environment), target_model=None),
        )
        with collecting(problems):
            found.append(
                _configuration(
                    each.name,
                    each,
                    client=client,
                    target=target,
                    container=container,
                    vpc=None,
                    payload_url=f"s3://{bucket}/{payloads_prefix(test=test)}{each.name}.tar.gz",
                )
            )
    refuse(problems)
    return found


def _is_there(s3: Any, bucket: str, key: str) -> bool:
    try:
        s3.head_object(Bucket=bucket, Key=key)
    except ClientError as error:
        # Who may start a test need not be able to read archives: then Inference Recommender reports a missing one.
        return error.response["Error"]["Code"] in ("403", "AccessDenied")
    return True


def _configuration(
    name: str,
    endpoint: EndpointSettings,
    *,
    client: ModelClient,
    target: BenchTarget,
    container: dict[str, Any],
    vpc: dict[str, list[str]] | None,
    payload_url: str,
) -> Configuration:
    payload = payload_of(client, target.name, files=(), outputs=())
    body = payload.body("json")  # no documentation states that Inference Recommender takes the binary form
    subject = Subject(
        configuration=name,
        target=target,
        payload=payload,
        payload_format="json",
        manifest=client.manifest(target.name),
    )
    tested = {
        "variant": None,
        "instance_type": endpoint.instance_type,
        "instance_count": 1,
        "image": container["Image"],
        "generator": GENERATOR,
        "ended_by": "it was never started",
    }
    return Configuration(
        result=result_part(subject, body, local=False, container=False).model_copy(update=tested),
        container=container,
        vpc=vpc,
        payload_url=payload_url,
        content_type=body.content_type,
        payload=packed(body.content),
    )


def packed(content: bytes) -> bytes:
    """A request as Inference Recommender takes samples: a ``.tar.gz`` of files; the same bytes for the same request."""
    entry = tarfile.TarInfo(REQUEST)
    entry.size = len(content)
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(raw.getvalue(), mtime=0)
