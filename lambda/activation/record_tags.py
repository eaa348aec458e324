"""The environment's tags on release records: CloudFormation's tags reach no parameter that a function writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from .records import values_of

if TYPE_CHECKING:
    from mypy_boto3_ssm.client import SSMClient

    from .release_set import Properties


def tag_records(
    ssm: SSMClient,
    now: Properties,
    before: Properties | None,
    *,
    moved: Iterable[str],
    all_models: Iterable[str],
    removed: Iterable[str] = (),
) -> None:
    """Put the tags on the records that the event is about; where the tags themselves changed, on all that are there.

    Tags that the properties before alone have are taken off; others, made by hand, stay. Properties of a version
    without tags leave all as it is.

    Args:
        ssm: the client.
        now: the properties in force.
        before: those that they replace, or None.
        moved: models whose records the event writes, or wrote when it came first: PutParameter takes no tags where it
            may overwrite, so that a record may stand without them.
        all_models: every model of the release set.
        removed: models whose value was kept below ``removed_path`` by this event.
    """
    if not now.tags:
        return
    follows = before is None or before.tags != now.tags
    dropped = sorted(before.tags.keys() - now.tags.keys()) if before else []
    records = values_of(ssm, now.record_path, all_models if follows else moved)
    for name in [*(now.record_path + model for model in records), *(now.removed_path + model for model in removed)]:
        tag(ssm, name, now.tags, dropped=dropped)


def tag(ssm: SSMClient, name: str, tags: Mapping[str, str], *, dropped: list[str]) -> None:
    """Put tags on one parameter, and take off those of these keys."""
    pairs = [{"Key": key, "Value": value} for key, value in sorted(tags.items())]
    ssm.add_tags_to_resource(ResourceType="Parameter", ResourceId=name, Tags=pairs)  # type: ignore[arg-type]
    if dropped:
        ssm.remove_tags_from_resource(ResourceType="Parameter", ResourceId=name, TagKeys=dropped)
