"""How large the archive of a model folder is, where it is built: its weights are often not in the folder."""

from __future__ import annotations

from tritonstack.errors import InputError
from tritonstack.models.digest import model_digest
from tritonstack.models.places import Places
from tritonstack.models.source import ArchiveSource
from tritonstack.models.targets import target_of
from tritonstack.naming import ArchiveName, Platform


def unpacked_bytes(source: ArchiveSource, platform: Platform, places: Places) -> int | None:
    """The bytes of an archive's content as it was last built, for the platform or for here; None where it is not."""
    try:
        name = ArchiveName(model=source.name, digest=model_digest(source))
        targets = (target_of(source, platform), target_of(source, None))
    except InputError:
        return None  # other rules' matter
    manifests = (places.built(name, target) for target in dict.fromkeys(targets))
    return next((manifest.archive.tar_bytes for manifest in manifests if manifest is not None), None)
