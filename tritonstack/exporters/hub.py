"""Find a model's pretrained files: on Hugging Face's hub, in a folder laid out like it, or in an object of S3."""

# mypy: disable-error-code="import-not-found"
# huggingface_hub is in the environment that exports run in, not in the one that checks types.

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tritonstack.errors import WorkFailedError
from tritonstack.exporters import s3_object
from tritonstack.exporters.progress import say

FOLDER_VARIABLE = "TRITONSTACK_HUB_FOLDER"
"""Names a folder ``<organisation>/<name>/<revision>/…`` that is read instead of the hub."""

_REVISION = re.compile(r"[0-9a-f]{40}")
_IDENTIFIER = re.compile(r"[\w.-]+(/[\w.-]+)?", re.ASCII)


def fetch(source: Mapping[str, str] | None, files: Sequence[str]) -> Path:
    """The folder that holds the named files of a model.

    An object of S3 was downloaded by the build, see :func:`s3_object.lay_out`. For a model of the hub this reads
    :data:`FOLDER_VARIABLE` where it is set. Otherwise huggingface_hub downloads into its own cache, from
    ``HF_ENDPOINT`` where that is set and with ``HF_TOKEN`` for models that need one.

    Args:
        source: ``{"hub": "organisation/name", "revision": 40 hexadecimal digits}``, or ``{"s3": …}``.
        files: names inside the model's repository.

    Raises:
        WorkFailedError: no such source, no pinned revision, the hub cannot be reached, or files are missing: all named.
    """
    if source and "s3" in source:
        return s3_object.lay_out(source, files)
    identifier, revision = _pinned(source)
    folder = os.environ.get(FOLDER_VARIABLE)
    place = Path(folder) / identifier / revision if folder else _download(identifier, revision, files)
    missing = [name for name in files if not (place / name).is_file()]
    if missing:
        advice = f" ({FOLDER_VARIABLE} names the folder {folder})" if folder else ""
        raise WorkFailedError(f"{identifier} at {revision} has no {', '.join(missing)} in {place}{advice}")
    say(f"weights of {identifier} at {revision[:12]} from {'a folder' if folder else 'the hub'}")
    return place


def digests(folder: Path, files: Sequence[str]) -> dict[str, str]:
    """File → its SHA-256."""
    found = {}
    for name in files:
        with (folder / name).open("rb") as file:
            found[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def _pinned(source: Mapping[str, str] | None) -> tuple[str, str]:
    """Identifier and revision, both checked: they become a path."""
    if not source or "hub" not in source:
        raise WorkFailedError(
            "pretrained weights need `source` in the recipe: {hub: …, revision: …} or {s3: …, sha256: …}"
        )
    identifier, revision = source["hub"], source.get("revision", "")
    if not _IDENTIFIER.fullmatch(identifier) or ".." in identifier:
        raise WorkFailedError(
            f"source.hub is {identifier!r}, not an organisation and a name such as google-t5/t5-small"
        )
    if not _REVISION.fullmatch(revision):
        raise WorkFailedError(
            f"source.revision of {identifier} is {revision!r}, not a commit's 40 hexadecimal digits: a branch's name "
            f"would give other weights tomorrow"
        )
    return identifier, revision


def _download(identifier: str, revision: str, files: Sequence[str]) -> Path:
    import huggingface_hub  # noqa: PLC0415  it is slow to import, and only this needs it
    from huggingface_hub import errors  # noqa: PLC0415
    from huggingface_hub.utils import (  # type: ignore[attr-defined, unused-ignore]  # noqa: PLC0415  a re-export
        disable_progress_bars,
    )

    say(f"fetching {identifier} at {revision[:12]} from the hub")
    disable_progress_bars()
    try:
        return Path(huggingface_hub.snapshot_download(identifier, revision=revision, allow_patterns=list(files)))
    except errors.RepositoryNotFoundError as error:
        raise WorkFailedError(
            f"the hub has no model {identifier}, or it needs a token: HF_TOKEN, which an environment's builds get by "
            f"builds.hub.token_parameter"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise WorkFailedError(f"the hub has no revision {revision} of {identifier}") from error
    except (errors.HfHubHTTPError, OSError) as error:
        first = str(error).strip().splitlines()[0]
        raise WorkFailedError(
            f"{identifier} at {revision} cannot be fetched from the hub: {first}\n"
            f"Where the hub cannot be reached, put its files into <folder>/{identifier}/{revision}/ and set "
            f"{FOLDER_VARIABLE}=<folder>, or build with random weights; all ways: "
            f"docs/adding-a-model.md#weights-from-the-hub"
        ) from error
