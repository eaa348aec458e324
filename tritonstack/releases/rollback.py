"""``tritonstack rollback``: which digest a record moves back to, and its archive under the platform of now."""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Callable, Sequence

from tritonstack.archives.bucket import ArtifactBucket, Place
from tritonstack.archives.programs import Report
from tritonstack.aws.session import Session, read_parameter
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.local_aws import is_local, poll_seconds
from tritonstack.naming import (
    DIGEST_PATTERN,
    ArchiveName,
    builds_parameter,
    order_key,
    serving_part,
    serving_stack,
    stack_path,
)
from tritonstack.preparation.build_order import Order, OrderedArchive
from tritonstack.preparation.codebuild_runner import CodeBuildJob
from tritonstack.preparation.gpu_step import EngineFailedError
from tritonstack.preparation.needed_work import copy_of
from tritonstack.preparation.prepare import preparation_of_project
from tritonstack.preparation.remote_job import await_job
from tritonstack.preparation.stored_archives import copy_archive, stored_archives
from tritonstack.releases.records import DeployedSet, Record

_DIGEST = re.compile(DIGEST_PATTERN)


def require_movable(record: Record, deployed: DeployedSet | None, *, environment: str) -> DeployedSet:
    """The deployed release set of a record's endpoint.

    Raises:
        InputError: there is no such endpoint, or it has one model, which its Model names and not the record.
        WorkFailedError: a deployment is under way, which may move the record too.
    """
    name = f"{record.endpoint}/{record.model}"
    if deployed is None:
        stack = serving_stack(environment=environment, endpoint=record.endpoint)
        advice = f"cdk deploy '{environment}/*'"
        raise InputError([Problem(field=name, found=f"no stack {stack}", allowed="a deployed endpoint", advice=advice)])
    if not deployed.multi_model:
        path = stack_path(environment=environment, part=serving_part(record.endpoint))
        found = f"{record.endpoint} is a single-model endpoint: its archive is fixed by the deployment"
        problem = Problem(
            field=name,
            found=found,
            allowed="a model of a multi-model endpoint",
            advice=f"revert the model's commit, then cdk deploy '{path}'",
        )
        raise InputError([problem])
    if deployed.in_progress:
        raise WorkFailedError(f"the stack {deployed.stack} is {deployed.status}; wait until its deployment has ended")
    return deployed


def chosen_digest(record: Record, *, to: str | None, stored: Sequence[str]) -> str:
    """The digest to move to: ``to``, else the last value of the record that is not the current one.

    ``stored``: the digests of the model whose archives are under any platform of the endpoint. Raises
    :class:`InputError` for the current digest, an unknown one, and where there is no earlier one.
    """
    name = f"{record.endpoint}/{record.model}"
    known = tuple(dict.fromkeys([*record.digests, *stored]))
    others = [digest for digest in known if digest != record.digest]
    listed = ", ".join(others) or "none: no other digest was ever recorded or published"
    if to is None:
        earlier = [digest for digest in record.digests if digest != record.digest]
        if earlier:
            return earlier[0]
        found = f"no earlier digest in the history of {name}"
    elif to == record.digest:
        found = f"{to}, which is the current digest of {name}"
    elif not _DIGEST.fullmatch(to) or to not in known:
        found = f"{to!r}, which {name} never had"
    else:
        return to
    raise InputError([Problem(field="--to", found=found, allowed=listed)])


ORDER_VARIABLE = "TRITONSTACK_ORDER"
"""The variable that the build project reads the URL of its order from."""


def ensure_archive(
    name: ArchiveName,
    place: Place,
    order: Callable[[], Order],
    *,
    environment: str,
    bucket: ArtifactBucket,
    session: Session,
    report: Report,
) -> str:
    """Make sure that an archive is at a place: copy it from elsewhere in the bucket, or build it.

    The environment's build project builds it; where the environment has none, this machine. ``order`` makes the
    build's input. Returns what was done: ``there already``, ``copied`` or ``built``.

    Raises:
        InputError: it cannot be built from this checkout; the message names the right one.
        WorkFailedError: the build failed, or AWS refuses.
    """
    if bucket.look(place.archive(name)) is not None:
        return "there already"
    report("looking for it under other platforms")
    row = OrderedArchive(model=name.model, digest=name.digest)
    copy = copy_of(row, place, stored_archives(bucket), bucket, local=is_local(bucket.s3))
    if copy is not None:
        report(f"copying it from {copy.source.archive(name)}")
        copy_archive(bucket, name, copy.manifest, source=copy.source, target=place)
        return "copied"
    wanted = order().with_archives([row])
    project = read_parameter(session, builds_parameter(environment=environment, value="project-name"))
    if project is None:
        # On this machine, as ``tritonstack prepare`` does; raises as ``Preparation.run``.
        with preparation_of_project([wanted], session=session, watch=lambda _name, text: report(text)) as preparation:
            preparation.run()
    else:
        _build_there(wanted, project, bucket, session, report=report)
    if bucket.look(place.archive(name)) is None:
        raise WorkFailedError(f"the build ended well, and s3://{bucket.name}/{place.archive(name)} is not there")
    return "built"


def _build_there(order: Order, project: str, bucket: ArtifactBucket, session: Session, *, report: Report) -> None:
    """Build it by the build project, and wait; an interruption stops the build."""
    key = order_key(order=uuid.uuid4().hex)
    bucket.put(key, order.to_json().encode())
    client = session.client("codebuild")
    variable = {"name": ORDER_VARIABLE, "value": f"s3://{bucket.name}/{key}", "type": "PLAINTEXT"}
    build = CodeBuildJob(client, projectName=project, environmentVariablesOverride=[variable])
    report(build.identity)
    state = await_job(build, stop=threading.Event(), interval=poll_seconds(client), report=report, what=build.identity)
    if not state.succeeded:
        log = build.log_tail(session.client("logs"), state)
        raise EngineFailedError(reason=build.reason(state), log_tail=log, link=build.link)
