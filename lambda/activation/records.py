"""Release records: parameters, each with a note of who wrote it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..shared.names import shown

if TYPE_CHECKING:
    from mypy_boto3_ssm.client import SSMClient

PARAMETERS_AT_ONCE = 10
"""The most that GetParameters and DeleteParameters take (Systems Manager API reference)."""
Note = Mapping[str, Any]
"""A record's description: ``writer`` (deployment, restored, rollback), ``digest`` (the value that it came with: a later
writer may leave a description as it is), ``before``, ``platform``, ``commit``; of a deployment also ``set`` and
``over``, the tokens of its set and of the set that it replaced."""


def records_below(ssm: SSMClient, *, path: str) -> dict[str, str]:
    """The parameters under a path: model → value."""
    pages = ssm.get_paginator("get_parameters_by_path").paginate(Path=path)
    return {entry["Name"].removeprefix(path): entry["Value"] for page in pages for entry in page["Parameters"]}


def values_of(ssm: SSMClient, path: str, models: Iterable[str]) -> dict[str, str]:
    """The parameters of these models under a path, as far as there are any: model → value."""
    answers = (ssm.get_parameters(Names=[path + model for model in batch]) for batch in batches(sorted(models)))
    return {entry["Name"].removeprefix(path): entry["Value"] for each in answers for entry in each["Parameters"]}


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
        except (ValueError, KeyError, TypeError, AttributeError):
            yield {}


def put(ssm: SSMClient, name: str, value: str, description: str) -> None:
    """Write one parameter."""
    ssm.put_parameter(Name=name, Value=value, Description=description, Type="String", Overwrite=True)


def delete(ssm: SSMClient, *, path: str, models: Iterable[str]) -> None:
    """Delete parameters; those that are gone already are no error."""
    for batch in batches(sorted(models)):
        ssm.delete_parameters(Names=[path + model for model in batch])


def batches(items: Sequence[str]) -> Iterable[Sequence[str]]:
    """Slices of at most as many as one call takes."""
    return (items[start : start + PARAMETERS_AT_ONCE] for start in range(0, len(items), PARAMETERS_AT_ONCE))


def done(*, written: Sequence[str], deleted: Sequence[str]) -> dict[str, str]:
    """The resource's attributes: whose records were written, and whose were deleted."""
    print(json.dumps({"written": written, "deleted": deleted}))
    return {"Written": shown(written), "Deleted": shown(deleted)}
