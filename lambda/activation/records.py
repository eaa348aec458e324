"""Release records: SSM parameters, each with a note of who wrote it, and the environment's tags."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import dropwhile
from typing import TYPE_CHECKING, Any

from ..shared.custom_resource import name_list
from ..shared.operation import Operation, SupersededError

if TYPE_CHECKING:
    from mypy_boto3_ssm.client import SSMClient

    from .release_set import Properties

PARAMETERS_AT_ONCE = 10
"""The most that GetParameters and DeleteParameters take (Systems Manager API reference)."""
Note = Mapping[str, Any]
"""A record's description: ``writer`` (deployment, restored, rollback), ``digest`` (the value that it was written with:
a later writer may leave a description as it is), ``before``, ``platform``, ``commit``, ``write`` (another one for each
write); of a deployment also ``set`` and ``over``, the tokens of its set and of the set that it replaced, and
``request``, which versions before 0.1.0's notes lack."""


def values_of(ssm: SSMClient, path: str, models: Iterable[str]) -> dict[str, str]:
    """The parameters of these models that exist under a path: model → value."""
    pages = (ssm.get_parameters(Names=[path + model for model in batch]) for batch in batches(models))
    return {entry["Name"].removeprefix(path): entry["Value"] for page in pages for entry in page["Parameters"]}


def notes_of(ssm: SSMClient, name: str) -> Iterator[Note]:
    """The notes of a record's versions, newest first; empty for a version whose writer left none. None: no record."""
    return (note for note, _value in history(ssm, name))


def history(ssm: SSMClient, name: str) -> Iterator[tuple[Note, str]]:
    """Notes and values of a record's versions, newest first; none where there is no record.

    ``before`` is the value of the version before, where the history has it: the record may have been moved between the
    writer's look and its write.
    """
    try:
        pages = list(ssm.get_paginator("get_parameter_history").paginate(Name=name))
    except ssm.exceptions.ParameterNotFound:
        return
    versions = [version for page in pages for version in page["Parameters"]]
    versions.sort(key=lambda version: version["Version"], reverse=True)
    for version, older in zip(versions, [*versions[1:], None], strict=True):
        note = note_of(version)
        if older and older.get("Description") == version.get("Description") and older["Value"] != version["Value"]:
            note = {}  # by hand, back to the value of a description that had been left as it was
        yield ({**note, "before": older["Value"]} if note and older else note), version["Value"]


def note_of(version: Mapping[str, Any]) -> Note:
    """The note of one version; empty where its writer left none."""
    try:
        note: Note = json.loads(version.get("Description", ""))
        wanted = {"writer", "digest", "before"} | ({"set", "over"} if note["writer"] == "deployment" else set())
    except (ValueError, KeyError, TypeError, RecursionError):  # by hand: anything
        return {}
    return note if wanted <= note.keys() and note["digest"] == version["Value"] else {}


def moved_already(notes: Iterable[Note], ours: Note) -> bool:
    """Whether the request that would write the note ``ours`` made its move, and nothing undid it.

    ``notes`` are newest first; moves by ``tritonstack rollback`` or by hand since then are kept. The same sets alone do
    not make the same move: another attempt at a deployment that failed is another request.
    """
    for note in notes:
        if note.get("writer") == "deployment":
            return all(note.get(member, ours[member]) == ours[member] for member in ("set", "over", "request"))
        if note.get("writer") == "restored":
            return False
    return False


def put(ssm: SSMClient, name: str, value: str, description: str) -> None:
    """Write one parameter."""
    ssm.put_parameter(Name=name, Value=value, Description=description, Type="String", Overwrite=True)


def move(ssm: SSMClient, operation: Operation, name: str, value: str, description: str) -> None:
    """Write one record while CloudFormation waits for the event; raises SupersededError where it does not.

    A record that was written as CloudFormation moved on gets back the value that it had, unless it was moved since.
    """
    operation.require()
    put(ssm, name, value, description)
    try:
        operation.require()
    except SupersededError:
        take_back(ssm, name, description=description, once=operation.prevails())
        raise


def take_back(ssm: SSMClient, name: str, *, description: str, once: bool) -> None:
    """Restore the version before the move that ``description`` notes, if the newest version is of that move.

    Two runs of one event may have written the record; where the other one's move is in force (``once``), only this
    run's version is undone. Where there is no version before theirs, the parameter is deleted.
    """

    def move_of(note: Note) -> Note:
        return {member: note[member] for member in note if member not in ("before", "write")}

    ours = move_of(json.loads(description))
    versions = list(history(ssm, name))
    older = list(dropwhile(lambda version: move_of(version[0]) == ours, versions))
    if len(older) == len(versions):
        return
    if once:
        older = versions[1:]
        if older and older[0][1] == ours["digest"]:
            return
    print(json.dumps({"taken back": name}))
    if not older:
        ssm.delete_parameters(Names=[name])
        return
    note, value = older[0]
    kept = {member: note[member] for member in ("platform", "commit") if member in note}
    restored = {**kept, "before": ours["digest"], "writer": "restored", "digest": value}
    put(ssm, name, value, json.dumps(restored, separators=(",", ":")))


def remove(ssm: SSMClient, operation: Operation, *, path: str, models: Iterable[str], platform: str) -> None:
    """Delete records while CloudFormation waits for the event, as ``move``: they are written again where it does not.

    They are not where another run of the event has deleted them and the set without them is in force.

    ``platform``: for the notes of those.
    """
    values = values_of(ssm, path, models)
    if not values:
        return
    operation.require()
    delete(ssm, path=path, models=values)
    try:
        operation.require()
    except SupersededError:
        if operation.prevails():
            raise
        for model in sorted(values.keys() - values_of(ssm, path, values).keys()):
            note = {"before": None, "platform": platform, "writer": "restored", "digest": values[model]}
            put(ssm, path + model, values[model], json.dumps(note, separators=(",", ":")))
        raise


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
    operation: Operation,
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
        operation: required before each record's tags.
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
        operation.require()
        ssm.add_tags_to_resource(ResourceType="Parameter", ResourceId=name, Tags=pairs)
        if dropped:
            ssm.remove_tags_from_resource(ResourceType="Parameter", ResourceId=name, TagKeys=dropped)


def attributes(*, written: Sequence[str], deleted: Sequence[str]) -> dict[str, str]:
    """The resource's attributes: the models whose records were written or deleted."""
    print(json.dumps({"written": written, "deleted": deleted}))
    return {"Written": name_list(written), "Deleted": name_list(deleted)}
