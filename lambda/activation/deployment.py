"""What one event of a deployment does to the release records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..shared.custom_resource import NotDoneError
from ..shared.stack import rolls_back
from .record_tags import tag_records
from .records import Note, delete, done, put, records_below, values_of
from .release_set import Properties, ReleaseSet, archives_of, old_release_set, read_release_set, require_archives
from .rollback import restore
from .services import Aws

if TYPE_CHECKING:
    from mypy_boto3_ssm.client import SSMClient

ARCHIVES_TYPE = "Custom::PublishedArchives"


def activate(event: Mapping[str, Any], aws: Aws) -> dict[str, str]:
    """Do what one event asks. Returns the resource's attributes: the models of ``Written`` and ``Deleted`` records.

    Raises NotDoneError: an archive is missing, or a release set is none.
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
    """Delete the records and what was kept of them. Where properties lack, none was ever made."""
    try:
        properties = Properties.of(event["ResourceProperties"])
    except NotDoneError as error:
        print(json.dumps({"nothing to delete": str(error)}))
        return {}
    models = sorted(records_below(aws.ssm, path=properties.record_path))
    delete(aws.ssm, path=properties.record_path, models=models)
    delete(aws.ssm, path=properties.removed_path, models=records_below(aws.ssm, path=properties.removed_path))
    return done(written=[], deleted=models)


def check_archives(event: Mapping[str, Any], aws: Aws, properties: Properties) -> None:
    """Raise NotDoneError while something is missing that is in force after the deployment.

    That is the new set; and where the platform changes, the archives of records that the deployment leaves alone and
    that were moved since: the new fleet looks for them under its own prefix. A rollback is never held up.
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
            continue  # a repeated event; or it was moved there before, and then a rollback leaves it: so its note says
        told: Note = {"writer": "deployment", "digest": digest, "set": properties.token, "over": over}
        note = new.note(name, told, before=values.get(name), platform=properties.platform)
        put(aws.ssm, properties.record_path + name, digest, note)
        written.append(name)
    tag_records(aws.ssm, properties, replaced, moved=moving, all_models=new.models, removed=kept)
    delete(aws.ssm, path=properties.record_path, models=gone)
    return done(written=written, deleted=gone)


def keep_removed(ssm: SSMClient, properties: Properties, gone: Mapping[str, str], *, over: str | None) -> list[str]:
    """Keep the values of records that are about to be deleted and that the old set does not tell: those moved since.

    What earlier deployments kept goes: it can no longer be rolled back to. Returns whose values were kept.
    """
    path, mark = properties.removed_path, f"{properties.token}:{over}"
    values = values_of(ssm, properties.record_path, gone)
    kept = records_below(ssm, path=path)
    delete(ssm, path=path, models=[name for name in kept if name in values or not kept[name].endswith(mark)])
    moved = [name for name in values if values[name] != gone[name]]
    for name in moved:
        put(ssm, path + name, f"{values[name]} {mark}", "A release record's value before its model left the set")
    return moved
