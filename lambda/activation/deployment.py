"""Release records of a deployment: moved to a new release set, restored by a rollback, deleted with the stack."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..shared.clients import Aws, records_below
from ..shared.custom_resource import NotDoneError, rolls_back
from .records import Note, attributes, delete, notes_of, put, tag_records, values_of
from .release_set import Properties, ReleaseSet, archives_of, old_release_set, read_release_set, require_archives

if TYPE_CHECKING:
    from mypy_boto3_ssm.client import SSMClient

ARCHIVES_TYPE = "Custom::PublishedArchives"


def activate(event: Mapping[str, Any], aws: Aws) -> dict[str, str]:
    """Carry out one event. Returns the resource's attributes: the models of ``Written`` and ``Deleted`` records.

    Raises NotDoneError: an archive is missing, or an object is no release set.
    """
    if event["RequestType"] == "Delete":
        return {} if event["ResourceType"] == ARCHIVES_TYPE else forget(event, aws)
    properties = Properties.of(event["ResourceProperties"])
    if event["ResourceType"] == ARCHIVES_TYPE:
        check_archives(event, aws, properties)
        return {}
    replaced = Properties.of(event["OldResourceProperties"]) if event["RequestType"] == "Update" else None
    if replaced and rolls_back(event, aws.cloudformation):
        return restore(aws, previous=properties, failed=replaced)
    return deploy(aws, properties, replaced)


def forget(event: Mapping[str, Any], aws: Aws) -> dict[str, str]:
    """Delete the records and the values kept of them. Where properties are missing, no record was ever made."""
    try:
        properties = Properties.of(event["ResourceProperties"])
    except NotDoneError as error:
        print(json.dumps({"nothing to delete": str(error)}))
        return {}
    models = sorted(records_below(aws.ssm, path=properties.record_path))
    delete(aws.ssm, path=properties.record_path, models=models)
    delete(aws.ssm, path=properties.removed_path, models=records_below(aws.ssm, path=properties.removed_path))
    return attributes(written=[], deleted=models)


def check_archives(event: Mapping[str, Any], aws: Aws, properties: Properties) -> None:
    """Raise NotDoneError while an archive is missing that is in force after the deployment.

    These are the new set's; and where the platform changes, those of records that the deployment leaves alone and
    that were moved since: the new fleet loads them from its own prefix. A rollback is never blocked.
    """
    new = read_release_set(aws.s3, properties)
    wanted = archives_of(new.models)
    if event["RequestType"] == "Update":
        replaced = Properties.of(event["OldResourceProperties"])
        if replaced.archive_prefix != properties.archive_prefix:
            old, records = old_release_set(aws, replaced), records_below(aws.ssm, path=properties.record_path)
            staying = [name for name in new.models if new.models[name] == old.models.get(name)]
            wanted |= archives_of({name: records[name] for name in staying if name in records})
    try:
        require_archives(aws.s3, properties, wanted)
    except NotDoneError as error:
        if event["RequestType"] != "Update" or not rolls_back(event, aws.cloudformation):
            raise
        print(json.dumps({"rolling back without": str(error)}))


def deploy(aws: Aws, properties: Properties, replaced: Properties | None) -> dict[str, str]:
    """Move the records of models whose digest changed, delete those of models that left the set."""
    new = read_release_set(aws.s3, properties)
    require_archives(aws.s3, properties, archives_of(new.models))
    old, over = (old_release_set(aws, replaced), replaced.token) if replaced else (ReleaseSet({}), None)
    moving = {name: digest for name, digest in new.models.items() if old.models.get(name) != digest}
    gone = sorted(old.models.keys() - new.models.keys())
    kept = keep_removed(aws.ssm, properties, {name: old.models[name] for name in gone}, over=over)
    values = values_of(aws.ssm, properties.record_path, moving)
    written = []
    for name, digest in sorted(moving.items()):
        if values.get(name) == digest:
            continue  # a repeated event; or it was moved there before, and then a rollback leaves it, by its note
        note: Note = {"writer": "deployment", "digest": digest, "set": properties.token, "over": over}
        description = new.note(name, note, before=values.get(name), platform=properties.platform)
        put(aws.ssm, properties.record_path + name, digest, description)
        written.append(name)
    tag_records(aws.ssm, properties, replaced, moved=moving, all_models=new.models, removed=kept)
    delete(aws.ssm, path=properties.record_path, models=gone)
    return attributes(written=written, deleted=gone)


def keep_removed(ssm: SSMClient, properties: Properties, gone: Mapping[str, str], *, over: str | None) -> list[str]:
    """Keep the values of records that are about to be deleted and that were moved since the old set was deployed.

    Values that earlier deployments kept are deleted: nothing rolls back to them. Returns whose values were kept.
    """
    path, mark = properties.removed_path, f"{properties.token}:{over}"
    values = values_of(ssm, properties.record_path, gone)
    kept = records_below(ssm, path=path)
    delete(ssm, path=path, models=[name for name in kept if name in values or not kept[name].endswith(mark)])
    moved = [name for name in values if values[name] != gone[name]]
    for name in moved:
        put(ssm, path + name, f"{values[name]} {mark}", "A release record's value before its model left the set")
    return moved


def restore(aws: Aws, *, previous: Properties, failed: Properties) -> dict[str, str]:
    """Restore the value that every record had which the failed deployment moved, made or deleted.

    Archives are not required to exist: nothing better than the values before is left.
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
        elif found and value is not None and value != notes[0]["digest"]:
            earlier = next((note for note in notes[1:] if note.get("digest") == value), {})
            restored = {name: earlier[name] for name in ("platform", "commit") if name in earlier}
            restored |= {"writer": "restored", "digest": value}
            note = back_to.note(model, restored, before=notes[0]["digest"], platform=previous.platform)
            put(aws.ssm, path + model, value, note)
            written.append(model)
    delete(aws.ssm, path=path, models=deleted)
    left = sorted(back_to.models.keys() - undone.models.keys())
    written += bring_back(aws.ssm, previous, back_to, left=left)
    tag_records(aws.ssm, previous, failed, moved={*changed, *left}, all_models=back_to.models)
    return attributes(written=sorted(written), deleted=deleted)


def value_before(notes: Iterable[Note], *, previous: str, failed: str) -> tuple[bool, str | None]:
    """A record's value before the deployment of ``failed``, which a rollback takes back to the set ``previous``.

    ``notes`` are newest first, ``previous`` and ``failed`` are tokens of sets. Usually the newest note has it. Where a
    failed update was kept (``--no-rollback``) and others followed, the notes of all are followed back. Returns whether
    a deployment since ``previous`` wrote the record, and the value before it (None: there was no record).
    """
    found, value, at = False, None, failed
    for note in notes:
        ours = note.get("writer") == "deployment" and note["set"] != previous
        if not ours or (note["set"] != at and note["over"] != previous):
            break
        found, value, at = True, note["before"], note["over"]
        if at == previous:
            break
    return found, value


def bring_back(ssm: SSMClient, previous: Properties, back_to: ReleaseSet, *, left: Sequence[str]) -> list[str]:
    """Write the records of models that had left the set, where they are gone. Returns the models written."""
    existing, kept = (values_of(ssm, path, left) for path in (previous.record_path, previous.removed_path))
    missing = [name for name in left if name not in existing]
    for name in missing:
        digest = kept[name].split()[0] if name in kept else back_to.models[name]
        note = back_to.note(name, {"writer": "restored", "digest": digest}, before=None, platform=previous.platform)
        put(ssm, previous.record_path + name, digest, note)
    return missing
