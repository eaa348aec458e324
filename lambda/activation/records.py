"""Release records: SSM parameters, each with a note of who wrote it, and the environment's tags."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..shared.custom_resource import name_list

if TYPE_CHECKING:
    from mypy_boto3_ssm.client import SSMClient

    from .release_set import Properties

PARAMETERS_AT_ONCE = 10
"""The most that GetParameters and DeleteParameters take (Systems Manager API reference)."""
Note = Mapping[str, Any]
"""A record's description: ``writer`` (deployment, restored, rollback), ``digest`` (the value that it was written with:
a later writer may leave a description as it is), ``before``, ``platform``, ``commit``; of a deployment also ``set`` and
``over``, the tokens of its set and of the set that it replaced."""


def values_of(ssm: SSMClient, path: str, models: Iterable[str]) -> dict[str, str]:
    """The parameters of these models that exist under a path: model → value."""
    pages = (ssm.get_parameters(Names=[path + model for model in batch]) for batch in batches(models))
    return {entry["Name"].removeprefix(path): entry["Value"] for page in pages for entry in page["Parameters"]}


def notes_of(ssm: SSMClient, name: str) -> Iterator[Note]:
    """The notes of a record's versions, newest first; empty for a version whose writer left none. None: no record."""
    try:
        pages = list(ssm.get_paginator("get_parameter_history").paginate(Name=name))
    except ssm.exceptions.ParameterNotFound:
        return
    versions = [version for page in pages for version in page["Parameters"]]
    for version in sorted(versions, key=lambda version: version["Version"], reverse=True):
        try:
            note = json.loads(version.get("Description", ""))
            wanted = {"writer", "digest", "before"} | ({"set", "over"} if note["writer"] == "deployment" else set())
            yield note if wanted <= note.keys() and note["digest"] == version["Value"] else {}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):  # a note may be anybody's
            yield {}


def put(ssm: SSMClient, name: str, value: str, description: str) -> None:
    """Write one parameter."""
    ssm.put_parameter(Name=name, Value=value, Description=description, Type="String", Overwrite=True)


def delete(ssm: SSMClient, *, path: str, models: Iterable[str]) -> None:
    """Delete parameters; those that are gone already are no error."""
    for batch in batches(models):
        ssm.delete_parameters(Names=[path + model for model in batch])


def batches(models: Iterable[str]) -> Iterable[Sequence[str]]:
    """Slices of as many as one request takes, sorted."""
    items = sorted(models)
    return (items[start : start + PARAMETERS_AT_ONCE] for start in range(0, len(items), PARAMETERS_AT_ONCE))


def tag_records(
    ssm: SSMClient,
    now: Properties,
    before: Properties | None,
    *,
    moved: Iterable[str],
    all_models: Iterable[str],
    removed: Iterable[str] = (),
) -> None:
    """Put the environment's tags on records: CloudFormation's tags reach no parameter that a function writes.

    Where the tags themselves changed, all records get them. Tags that only the properties before have are removed;
    others, made by hand, stay. Properties of a version without tags leave all as it is.

    Args:
        ssm: the client.
        now: the properties in force.
        before: those that they replace, or None.
        moved: models whose records the event writes, or wrote when it was delivered first: PutParameter takes no tags
            where it may overwrite, so that a record may exist without them.
        all_models: every model of the release set.
        removed: models whose value was kept below ``removed_path`` by this event.
    """
    if not now.tags:
        return
    changed = before is None or before.tags != now.tags
    dropped = sorted(before.tags.keys() - now.tags.keys()) if before else []
    pairs: list[Any] = [{"Key": key, "Value": value} for key, value in sorted(now.tags.items())]
    records = values_of(ssm, now.record_path, all_models if changed else moved)
    for name in [*(now.record_path + model for model in records), *(now.removed_path + model for model in removed)]:
        ssm.add_tags_to_resource(ResourceType="Parameter", ResourceId=name, Tags=pairs)
        if dropped:
            ssm.remove_tags_from_resource(ResourceType="Parameter", ResourceId=name, TagKeys=dropped)


def attributes(*, written: Sequence[str], deleted: Sequence[str]) -> dict[str, str]:
    """The resource's attributes: whose records were written, and whose were deleted."""
    print(json.dumps({"written": written, "deleted": deleted}))
    return {"Written": name_list(written), "Deleted": name_list(deleted)}
