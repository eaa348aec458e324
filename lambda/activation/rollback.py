"""The undoing of a deployment: records get the values back that they had before it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from .record_tags import tag_records
from .records import Note, delete, done, notes_of, put, records_below, values_of
from .release_set import Properties, ReleaseSet, old_release_set
from .services import Aws

if TYPE_CHECKING:
    from mypy_boto3_ssm.client import SSMClient


def restore(aws: Aws, *, previous: Properties, failed: Properties) -> dict[str, str]:
    """Give every record that the failed deployment moved, made or deleted the value back that it had before.

    Nothing is looked for in the bucket: what was in force before is the best that is left.
    """
    path = previous.record_path
    back_to, undone = old_release_set(aws, previous), old_release_set(aws, failed)
    changed = {name for name, digest in undone.models.items() if back_to.models.get(name) != digest}
    if not (back_to.stored and undone.stored):
        changed = set(records_below(aws.ssm, path=path))  # their notes tell which of them moved
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
            told = {name: earlier[name] for name in ("platform", "commit") if name in earlier}
            told |= {"writer": "restored", "digest": value}
            note = back_to.note(model, told, before=notes[0]["digest"], platform=previous.platform)
            put(aws.ssm, path + model, value, note)
            written.append(model)
    delete(aws.ssm, path=path, models=deleted)
    left = sorted(back_to.models.keys() - undone.models.keys())
    written += bring_back(aws.ssm, previous, back_to, left=left)
    tag_records(aws.ssm, previous, failed, moved={*changed, *left}, all_models=back_to.models)
    return done(written=sorted(written), deleted=deleted)


def value_before(notes: Iterable[Note], *, previous: str, failed: str) -> tuple[bool, str | None]:
    """What a record held before the deployment of ``failed``, which leads back to the set ``previous``.

    ``notes`` come newest first, ``previous`` and ``failed`` are tokens of sets. Usually the newest note tells. Where a
    failed update was kept (``--no-rollback``) and others followed, the way leads back through the notes of all. Returns
    whether a deployment since ``previous`` wrote the record, and the value before it (None: there was no record).
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
    there, kept = (values_of(ssm, path, left) for path in (previous.record_path, previous.removed_path))
    missing = [name for name in left if name not in there]
    for name in missing:
        digest = kept[name].split()[0] if name in kept else back_to.models[name]
        note = back_to.note(name, {"writer": "restored", "digest": digest}, before=None, platform=previous.platform)
        put(ssm, previous.record_path + name, digest, note)
    return missing
