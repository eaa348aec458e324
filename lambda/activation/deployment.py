"""Release records of a deployment: moved to a new release set, restored by a rollback, deleted with the stack."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..shared.clients import Aws, records_below
from ..shared.custom_resource import NotDoneError
from ..shared.operation import Operation
from .records import Note, attributes, delete, move, moved_already, notes_of, put, remove, tag_records, values_of
from .release_set import Properties, ReleaseSet, archives_of, old_release_set, read_release_set, require_archives

if TYPE_CHECKING:
    from mypy_boto3_ssm.client import SSMClient

ARCHIVES_TYPE = "Custom::PublishedArchives"


def activate(event: Mapping[str, Any], aws: Aws) -> dict[str, str]:
    """Carry out one event. Returns the resource's attributes: the models of ``Written`` and ``Deleted`` records.

    Raises:
        NotDoneError: an archive or the release set is missing.
        SupersededError: CloudFormation does not wait for the event, at first or any more; the record that it had just
            written is restored.
    """
    archives = event["ResourceType"] == ARCHIVES_TYPE
    if event["RequestType"] == "Delete":
        return {} if archives else forget(aws, Operation(event, aws.cloudformation), event["ResourceProperties"])
    properties = Properties.of(event["ResourceProperties"])
    replaced = Properties.of(event["OldResourceProperties"]) if event["RequestType"] == "Update" else None
    operation = Operation(event, aws.cloudformation)
    if archives:
        if not operation.undoes:  # a rollback is never blocked
            check_archives(aws, properties, replaced)
        return {}
    if replaced and replaced.record_path != properties.record_path:
        # Records of another path: these were never moved; CloudFormation has the others deleted by their physical id.
        return attributes(written=[], deleted=[]) if operation.undoes else deploy(aws, operation, properties, None)
    if replaced and operation.undoes:
        return restore(aws, operation, previous=properties, failed=replaced)
    return deploy(aws, operation, properties, replaced)


def forget(aws: Aws, operation: Operation, given: Mapping[str, Any]) -> dict[str, str]:
    """Delete the records and the values kept of them. Where properties are missing, no record was ever made."""
    try:
        properties = Properties.of(given)
    except NotDoneError as error:
        print(json.dumps({"nothing to delete": str(error)}))
        return {}
    models = sorted(records_below(aws.ssm, path=properties.record_path))
    operation.require()
    delete(aws.ssm, path=properties.record_path, models=models)
    delete(aws.ssm, path=properties.removed_path, models=records_below(aws.ssm, path=properties.removed_path))
    return attributes(written=[], deleted=models)


def check_archives(aws: Aws, properties: Properties, replaced: Properties | None) -> None:
    """Raise NotDoneError while an archive is missing that is in force after the deployment.

    These are the new set's; and where the platform changes, those of records that the deployment leaves alone and
    that were moved since: the new fleet loads them from its own prefix.
    """
    new = read_release_set(aws.s3, properties)
    wanted = archives_of(new.models)
    if replaced and replaced.archive_prefix != properties.archive_prefix:
        old, records = old_release_set(aws, replaced), records_below(aws.ssm, path=properties.record_path)
        staying = [name for name in new.models if new.models[name] == old.models.get(name)]
        wanted |= archives_of({name: records[name] for name in staying if name in records})
    require_archives(aws.s3, properties, wanted)


def deploy(aws: Aws, operation: Operation, properties: Properties, replaced: Properties | None) -> dict[str, str]:
    """Move the records of models whose digest changed, delete those of models that left the set."""
    new = read_release_set(aws.s3, properties)
    require_archives(aws.s3, properties, archives_of(new.models))
    old, over = (old_release_set(aws, replaced), replaced.token) if replaced else (ReleaseSet({}), None)
    moving = {name: digest for name, digest in new.models.items() if old.models.get(name) != digest}
    gone = sorted(old.models.keys() - new.models.keys())
    operation.require()
    kept = keep_removed(aws.ssm, properties, gone, over=over)
    values = values_of(aws.ssm, properties.record_path, moving)
    written = []
    for model, digest in sorted(moving.items()):
        name = properties.record_path + model
        ours = {"writer": "deployment", "set": properties.token, "over": over, "request": operation.request}
        if model in values and moved_already(notes_of(aws.ssm, name), ours):
            continue  # the event was delivered before; a move of the record since then was intended
        note: Note = {**ours, "digest": digest}
        # Written where the value is the same, too: the note shows that the move was made, and a rollback leaves it.
        description = new.note(model, note, before=values.get(model), platform=properties.platform)
        move(aws.ssm, operation, name, digest, description)
        written.append(model)
    tag_records(aws.ssm, operation, properties, replaced, moved=moving, all_models=new.models, removed=kept)
    remove(aws.ssm, operation, path=properties.record_path, models=gone, platform=properties.platform)
    return attributes(written=written, deleted=gone)


def keep_removed(ssm: SSMClient, properties: Properties, gone: Iterable[str], *, over: str | None) -> list[str]:
    """Keep the values of records that are about to be deleted: a rollback writes them, even where the set is gone.

    Values that earlier deployments kept are deleted: nothing rolls back to them. Returns the models of kept values.
    """
    path, mark = properties.removed_path, removal(properties.token, over)
    values = values_of(ssm, properties.record_path, gone)
    kept = records_below(ssm, path=path)
    delete(ssm, path=path, models=[name for name in kept if name in values or not kept[name].endswith(mark)])
    for name, value in values.items():
        put(ssm, path + name, value + mark, "A release record's value before its model left the set")
    return list(values)


def removal(token: str, over: str | None) -> str:
    """Suffix of a kept value: the sets of the deployment that removed its record."""
    return f" {token}:{over}"


def restore(aws: Aws, operation: Operation, *, previous: Properties, failed: Properties) -> dict[str, str]:
    """Restore the earlier value of every record that the failed deployment moved, made or deleted.

    Archives are not required to exist: the earlier values are the best that is left. Nor are release sets: the
    records' notes and the kept values are enough.
    """
    path = previous.record_path
    back_to, undone = old_release_set(aws, previous), old_release_set(aws, failed)
    changed = {name for name, digest in undone.models.items() if back_to.models.get(name) != digest}
    if not (back_to.stored and undone.stored):
        changed = set(records_below(aws.ssm, path=path))  # their notes show which of them moved
    written, deleted = [], []
    for model in sorted(changed):
        notes = list(notes_of(aws.ssm, path + model))
        found, value = value_before(notes, previous=previous.token, failed=failed.token)
        if value is None and back_to.stored:
            value = back_to.models.get(model)  # it had left the set in between, or its record was lost before
        if found and value is None:
            deleted.append(model)
        elif found and value is not None:
            earlier = next((note for note in notes[1:] if note.get("digest") == value), {})
            restored = {name: earlier[name] for name in ("platform", "commit") if name in earlier}
            restored |= {"writer": "restored", "digest": value}
            # Written where the value is the same, too: another attempt at the same deployment is another move.
            note = back_to.note(model, restored, before=notes[0]["digest"], platform=previous.platform)
            move(aws.ssm, operation, path + model, value, note)
            written.append(model)
    remove(aws.ssm, operation, path=path, models=deleted, platform=previous.platform)
    removed = set(back_to.models.keys() - undone.models.keys()) if back_to.stored else set()
    kept = {
        name: value.split()[0]
        for name, value in records_below(aws.ssm, path=previous.removed_path).items()
        if name in removed or value.endswith(removal(failed.token, previous.token))
    }
    left = {**{name: back_to.models[name] for name in removed}, **kept}
    written += bring_back(aws.ssm, operation, previous, back_to, left=left)
    tag_records(aws.ssm, operation, previous, failed, moved={*changed, *left}, all_models=back_to.models)
    return attributes(written=sorted(written), deleted=deleted)


def value_before(notes: Iterable[Note], *, previous: str, failed: str) -> tuple[bool, str | None]:
    """A record's value before the deployment of ``failed``, which is rolled back to the set ``previous``.

    ``notes`` are newest first, ``previous`` and ``failed`` are tokens of sets. Usually the newest note has it. Where a
    failed update was kept (``--no-rollback``) and others followed, or two runs of one event wrote the record, the notes
    of all are followed back. Returns whether a deployment since ``previous`` wrote the record, and the value before it
    (None: there was no record).
    """
    found, value, at = False, None, failed
    for note in notes:
        ours = note.get("writer") == "deployment" and note["set"] != previous
        if not ours or (note["set"] != at and note["over"] != previous):
            break
        found, value, at = True, note["before"], note["over"]
    return found, value


def bring_back(
    ssm: SSMClient, operation: Operation, previous: Properties, back_to: ReleaseSet, *, left: Mapping[str, str]
) -> list[str]:
    """Write the records of models that had left the set (model → digest), where they are gone. Returns the models."""
    existing = values_of(ssm, previous.record_path, left)
    missing = sorted(left.keys() - existing.keys())
    for name in missing:
        note = back_to.note(name, {"writer": "restored", "digest": left[name]}, before=None, platform=previous.platform)
        move(ssm, operation, previous.record_path + name, left[name], note)
    return missing
