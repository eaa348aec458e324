"""Two custom resources that put a release set into force.

``Custom::PublishedArchives`` comes before the endpoint: it fails while an archive is missing, before anything that
serves is changed. ``Custom::ReleaseRecords`` comes after it: it sets each model's release record to its archive.

The properties of both name the release set as an S3 object (``ReleaseSetBucket``, ``ReleaseSetKey``), the archives'
bucket and prefix (``ArchiveBucket``, ``ArchivePrefix``) and the path of the records (``RecordPath``, with a trailing
slash). A model's record is the SSM parameter ``<RecordPath><model>``; its value is the digest in the archive's name,
its description a *note*: who wrote it, over which value, with which set. ``Tags`` (JSON), which only the latter has,
go on the records.

* A record never names a missing archive: every archive of the new set must exist before any record is written.
* A record moves only if its model's digest changed between the old and the new properties, so that a deployment of
  something else leaves a record alone that ``tritonstack rollback`` moved since.
* CloudFormation rolls an update back by an Update with the sets exchanged. Then a record gets its earlier value, from
  its note, and not the old set's; neither release set nor archives need to exist for that.
* An event is judged by the set in force: what CloudFormation does with the resource by the stack's events, read before
  and after every write (``shared/operation.py``). An event that it does not wait for, or not any more, writes nothing;
  a record written in that moment is restored. A move that is in a record's history is not made twice.
* Every step may be repeated: CloudFormation and Lambda both deliver an event more than once.
See ``docs/decisions/0029-an-event-is-judged-by-the-set-in-force.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..shared.clients import Aws
from ..shared.custom_resource import identity, respond


def handler(event: dict[str, Any], context: Any) -> None:
    """Entry point; the physical id follows from the type and the record path."""

    def act() -> Mapping[str, str]:
        if event["RequestType"] == "Delete" and event["ResourceType"] == "Custom::PublishedArchives":
            return {}
        from .deployment import activate  # noqa: PLC0415 - its failure is reported to CloudFormation, too

        return activate(event, Aws())

    respond(event, context, act, physical_id=identity(event, "RecordPath"))
