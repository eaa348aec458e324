"""How long the last engines took, from the manifests of archives that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tritonstack.archives.manifest import Manifest
from tritonstack.archives.manifest_stores import ManifestStore
from tritonstack.naming import Platform

_MINUTE = 60


@dataclass(frozen=True, kw_only=True)
class EngineTime:
    """How long the engines of one archive took to build and to prove, one after the other.

    Attributes:
        seconds: of the archive that ``source`` names; None where nobody knows. Waiting for the machine is not in it.
        source: which archive, in which place; or why nobody knows.
    """

    seconds: float | None
    source: str

    @property
    def text(self) -> str:
        """A sentence."""
        if self.seconds is None:
            return f"How long that takes is not known: {self.source}."
        return f"The last took {duration_text(self.seconds)} ({self.source}), the wait for a machine not counted."


class EngineTimes:
    """What manifests tell of engines that were built."""

    def __init__(self, stores: Sequence[ManifestStore] = ()) -> None:
        """Takes the stores in the order to ask them."""
        self._stores = tuple(stores)

    def last(self, model: str, *, platform: Platform, replaced: str | None) -> EngineTime:
        """How long the engines of a model took on a platform.

        A manifest holds no point in time, so "the last" is the archive that is replaced; where that is not known, the
        longest of those that are. What a stand-in took says nothing and is left out.

        Args:
            model: the model.
            platform: release and GPU.
            replaced: the digest that is served until then; None where there is none.
        """
        stand_ins = False
        for store in self._stores:
            found = [each for each in store.of_model(model) if each.engines]
            stand_ins = stand_ins or any(_is_stand_in(each) for each in found)
            measured = [each for each in found if each.target == str(platform) and not _is_stand_in(each)]
            chosen = [each for each in measured if each.digest == replaced] or measured
            if chosen:
                longest = max(chosen, key=lambda each: (_seconds(each), each.digest))
                of = f"{model} {longest.digest} on {platform}, in {store.name}"
                more = len({each.digest for each in chosen}) - 1
                which = f", the longest of {more + 1}" if more else ""
                return EngineTime(seconds=_seconds(longest), source=f"{of}{which}")
        if stand_ins:
            return EngineTime(seconds=None, source=f"the engines of {model} here are a stand-in's, which builds none")
        places = " or ".join(store.name for store in self._stores)
        reason = f"no engine of {model} for {platform} in {places}" if places else "no manifests are given"
        return EngineTime(seconds=None, source=reason)

    def dependency(self, model: str, digest: str, *, endpoint: str, platform: Platform) -> str | None:
        """What an archive depends on beside its inputs, as its manifest says; None where there is none."""
        for store in self._stores:
            found = store.manifest(model, digest, endpoint=endpoint, platform=platform)
            if found is not None:
                return found.dependency
        return None


def duration_text(seconds: float) -> str:
    """A duration in words: ``42 s``, ``12 min 5 s``."""
    whole = round(seconds)
    minutes, rest = divmod(whole, _MINUTE)
    return f"{minutes} min {rest} s" if minutes else f"{whole} s"


def _seconds(manifest: Manifest) -> float:
    return sum(sum(entry.durations.values()) for entry in manifest.engines.values())


def _is_stand_in(manifest: Manifest) -> bool:
    return any(entry.stand_in for entry in manifest.engines.values())
