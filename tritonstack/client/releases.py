"""Release records and endpoint modes, read from SSM and cached: model name to archive and endpoint."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.aws.session import DENIED_CODES, code_of
from tritonstack.client.errors import AmbiguousModelError, ReleaseLookupError, UnknownModelError
from tritonstack.errors import InputError, Problem, listing, nearest
from tritonstack.naming import (
    NAME_PATTERN,
    ArchiveName,
    outputs_parameter,
    parameter_prefix,
    release_parameter,
    released_model,
    serving_part,
    stack_path,
)
from tritonstack.untrusted.foreign_text import parse_json

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

log = logging.getLogger(__name__)
STALE_SECONDS = 5.0


@dataclass
class _Entry(Generic[Value]):
    lock: threading.Lock = field(default_factory=threading.Lock)
    values: list[Value] = field(default_factory=list)  # none or one: None may be a value
    loaded_at: float = float("-inf")
    expires_at: float = float("-inf")


class TimedCache(Generic[Key, Value]):
    """Values that are loaded on demand, at most once at a time per key, and kept for a while. Thread safe.

    While one thread loads a key, others that need the same key wait for it; other keys go on.
    """

    def __init__(self, *, seconds: float, now: Callable[[], float]) -> None:
        """``seconds``: how long a loaded value is used. ``now``: a monotonic clock, in seconds."""
        self._seconds = seconds
        self._now = now
        self._entries: dict[Key, _Entry[Value]] = {}
        self._lock = threading.Lock()

    def get(self, key: Key, load: Callable[[], Value], *, loaded_since: float = float("-inf")) -> Value:
        """The value of ``key``, loaded if it is unknown, too old, or was loaded before ``loaded_since``.

        Raises whatever ``load`` raises; but after a ReleaseLookupError an older value, where there is one, is used
        for another ``STALE_SECONDS``.
        """
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
        with entry.lock:
            now = self._now()
            if entry.values and now < entry.expires_at and entry.loaded_at >= loaded_since:
                return entry.values[0]
            try:
                entry.values[:] = [load()]
            except ReleaseLookupError as error:
                if not entry.values:
                    raise
                log.warning("using an older value of %s: %s", key, error)
                entry.expires_at = self._now() + STALE_SECONDS
            else:
                entry.loaded_at = now
                entry.expires_at = now + self._seconds
            return entry.values[0]


RECORD_SECONDS = 60.0
SERVING_SECONDS = 900.0
"""It changes with a deployment only, and a refused request reads it again at once: seldom is often enough."""
CONTRACT = 1
"""The contract of outputs that a client reads: ``tritonstack.outputs.contract``, which a test compares with it."""
_ALLOWED = "[endpoint/]model or endpoint/model.<16 hexadecimal digits>.tar.gz; names are of a-z, 0-9 and -"


@dataclass(frozen=True, kw_only=True)
class ModelReference:
    """A model by its name, or with a digest one archive, for which no record is read."""

    endpoint: str | None
    model: str
    digest: str | None = None

    @classmethod
    def parse(cls, text: str) -> ModelReference:
        """Read ``[endpoint/]model`` or ``endpoint/<archive>``. Raises InputError where it is neither."""
        endpoint, slash, rest = text.rpartition("/")
        archive = ArchiveName.parse(rest)
        model = archive.model if archive else rest
        names = [model, *([endpoint] if slash else [])]
        if not all(re.fullmatch(NAME_PATTERN, name) for name in names) or (archive and not slash):
            raise InputError([Problem(field="model's name", found=repr(text), allowed=_ALLOWED)])
        return cls(endpoint=endpoint if slash else None, model=model, digest=archive.digest if archive else None)


@dataclass(frozen=True, kw_only=True)
class ModelRelease:
    """A model's archive behind an endpoint (the endpoint's own name, without its environment)."""

    endpoint: str
    model: str
    digest: str

    @property
    def archive(self) -> ArchiveName:
        """The archive's name: what TargetModel is in multi-model mode."""
        return ArchiveName(model=self.model, digest=self.digest)


@dataclass(frozen=True, kw_only=True)
class Serving:
    """How requests name an endpoint's models and variants, by its stack's outputs."""

    multi_model: bool  # whether they carry a TargetModel
    streams: bool  # whether each response is a stream of events
    variants: Mapping[str, str]  # name in the settings → production variant; of an only one the production variant


class ReleaseRecords:
    """The current archives of one environment's models, and its endpoints' modes and variants. Thread safe.

    A record ``/tritonstack/<environment>/<endpoint>/<model>`` holds the digest of the model's current archive. Where
    SSM cannot be reached, what was read before is used a little longer.
    """

    def __init__(self, *, environment: str, ssm: Callable[[], Any], now: Callable[[], float] = time.monotonic) -> None:
        """``ssm`` gives the boto3 client; ``now`` is a monotonic clock."""
        self._environment = environment
        self._ssm = ssm
        self._one: TimedCache[tuple[str, str], str] = TimedCache(seconds=RECORD_SECONDS, now=now)
        self._all: TimedCache[str, Mapping[tuple[str, str], str]] = TimedCache(seconds=RECORD_SECONDS, now=now)
        self._serving: TimedCache[str, Serving] = TimedCache(seconds=SERVING_SECONDS, now=now)
        self._found: dict[str, str] = {}  # model → the endpoint where a search by its name alone found it
        self._said: set[str] = set()  # models of which it was logged that another endpoint has them, too
        self._lock = threading.Lock()

    def resolve(self, reference: ModelReference, *, loaded_since: float = float("-inf")) -> ModelRelease:
        """The archive that ``reference`` names, from records read at ``loaded_since`` (monotonic seconds) or later.

        A name without an endpoint keeps its endpoint as long as that has the model: a second endpoint with a model of
        that name breaks no caller that runs already. It is logged once, as a warning.

        Raises:
            UnknownModelError: there is no such record.
            AmbiguousModelError: no endpoint is named, several have the model, and no search found it at one of them.
            ReleaseLookupError: the records cannot be read.
        """
        if reference.endpoint is None:
            return self._search(reference.model, loaded_since)
        endpoint, model, digest = reference.endpoint, reference.model, reference.digest
        if digest is None:
            digest = self._one.get(
                (endpoint, model), lambda: self._read_one(endpoint, model), loaded_since=loaded_since
            )
        return ModelRelease(endpoint=endpoint, model=model, digest=digest)

    def all(self, *, loaded_since: float = float("-inf")) -> tuple[ModelRelease, ...]:
        """Every current release of the environment, by endpoint and model.

        Raises ReleaseLookupError where the records cannot be read.
        """
        records = self._all.get("", self._read_all, loaded_since=loaded_since)
        return tuple(ModelRelease(endpoint=e, model=m, digest=digest) for (e, m), digest in sorted(records.items()))

    def _search(self, model: str, loaded_since: float) -> ModelRelease:
        releases = self.all(loaded_since=loaded_since)
        found = [release for release in releases if release.model == model]
        if not found:
            of_endpoint = [f"{each.endpoint}/{each.model}" for each in releases if each.endpoint == model]
            if of_endpoint:
                found_text, allowed = f"{model!r}, which is an endpoint", f"one of its models: {listing(of_endpoint)}"
                raise UnknownModelError([Problem(field="model's name", found=found_text, allowed=allowed)])
            raise self._unknown(model, [release.model for release in releases])
        if len(found) > 1:
            return self._as_before(model, found)
        with self._lock:
            self._found[model] = found[0].endpoint
            self._said.discard(model)
        return found[0]

    def _as_before(self, model: str, found: Sequence[ModelRelease]) -> ModelRelease:
        """The release of the endpoint that had the model before other endpoints."""
        candidates = ", ".join(f"{release.endpoint}/{release.model}" for release in found)
        many = f"{model!r}, which {len(found)} endpoints of environment {self._environment!r} serve"
        with self._lock:
            earlier = self._found.get(model)
            kept = next((release for release in found if release.endpoint == earlier), None)
            is_new = model not in self._said
            self._said.add(model)
        if kept is None:
            advice = "name the endpoint too, as endpoint/model"
            problem = Problem(field="model's name", found=many, allowed=f"one of {candidates}", advice=advice)
            raise AmbiguousModelError([problem])
        if is_new:
            log.warning(
                "model's name %s by now: requests still go to %s/%s, which was the only one when this client first "
                "called it, and a client that starts now is refused; name the endpoint: one of %s",
                many,
                kept.endpoint,
                model,
                candidates,
            )
        return kept

    def _read_one(self, endpoint: str, model: str) -> str:
        name = release_parameter(environment=self._environment, endpoint=endpoint, model=model)
        try:
            return str(self._ssm().get_parameter(Name=name)["Parameter"]["Value"])
        except (ClientError, BotoCoreError) as error:
            if code_of(error) == "ParameterNotFound":
                raise self._unknown(f"{endpoint}/{model}", self._known_names()) from error
            raise ReleaseLookupError(f"the release record {name} cannot be read: {error}") from error

    def _read_all(self) -> Mapping[tuple[str, str], str]:
        prefix = parameter_prefix(self._environment)
        records: dict[tuple[str, str], str] = {}
        try:
            pages = self._ssm().get_paginator("get_parameters_by_path").paginate(Path=prefix, Recursive=True)
            for page in pages:
                for parameter in page["Parameters"]:
                    if (named := released_model(parameter["Name"], environment=self._environment)) is not None:
                        records[named] = parameter["Value"]
        except (ClientError, BotoCoreError) as error:
            advice = "\n  do: name the endpoint too (endpoint/model), which needs no permission to list"
            reason = f"the release records under {prefix} cannot be listed: {error}"
            raise ReleaseLookupError(reason + (advice if isinstance(error, ClientError) else "")) from error
        return records

    def _known_names(self) -> list[str]:
        """Names for an error message, as far as this caller may list them."""
        try:
            return [f"{release.endpoint}/{release.model}" for release in self.all()]
        except ReleaseLookupError:
            return []

    def _unknown(self, name: str, known: list[str]) -> UnknownModelError:
        variants = [model for model in known if model.startswith(f"{name}-")]
        names = listing(sorted(set(variants or known)), none="this environment shows none")
        found = f"{name!r}, of which environment {self._environment!r} has no release record"
        if variants and all(re.fullmatch(rf"{re.escape(name)}-\d+", each) for each in variants):
            advice = f"name one of the copies; all of them in turn: tritonstack invoke {name} --each-copy"
        else:
            advice = ""
        other = nearest(name, known) or "check the environment's name and that its serving stack is deployed"
        problem = Problem(
            field="model's name",
            found=found,
            allowed=f"a model with a release record: {names}",
            advice=advice if variants else other,
        )
        return UnknownModelError([problem])

    def is_multi_model(self, endpoint: str, *, loaded_since: float = float("-inf")) -> bool:
        """Whether requests to an endpoint carry a TargetModel, read at ``loaded_since`` or later.

        ``endpoint``: its own name, without its environment. Raises ReleaseLookupError if SSM does not respond, or the
        parameter is missing, damaged or of another contract.
        """
        return self._serving.get(endpoint, lambda: self._read(endpoint), loaded_since=loaded_since).multi_model

    def streams(self, endpoint: str, *, loaded_since: float = float("-inf")) -> bool:
        """Whether an endpoint's responses are streams. Otherwise as :meth:`is_multi_model`."""
        return self._serving.get(endpoint, lambda: self._read(endpoint), loaded_since=loaded_since).streams

    def variants(self, endpoint: str) -> tuple[str, ...]:
        """Names at SageMaker of an endpoint's production variants. Raises as :meth:`is_multi_model`."""
        return tuple(self._serving.get(endpoint, lambda: self._read(endpoint)).variants.values())

    def variant(self, endpoint: str, name: str, *, loaded_since: float = float("-inf")) -> str:
        """The production variant that ``name`` means, which is its name in the settings or at SageMaker.

        Raises InputError where the endpoint has no such variant, and as :meth:`is_multi_model`.
        """
        variants = self._serving.get(endpoint, lambda: self._read(endpoint), loaded_since=loaded_since).variants
        if name in variants.values():
            return name
        if name not in variants:
            found = f"{name!r}, which endpoint {endpoint} of environment {self._environment!r} does not have"
            advice = nearest(name, [*variants, *variants.values()])
            raise InputError([Problem(field="variant", found=found, allowed=listing(variants), advice=advice)])
        return variants[name]

    def _read(self, endpoint: str) -> Serving:
        part = serving_part(endpoint)
        name = outputs_parameter(environment=self._environment, stack=part)
        deploy = f"cdk deploy '{stack_path(environment=self._environment, part=part)}'"
        try:
            value = str(self._ssm().get_parameter(Name=name)["Parameter"]["Value"])
        except (ClientError, BotoCoreError) as error:
            allow = "\n  do: allow this caller ssm:GetParameter on it (tritonstack docs clients)"
            todo = {
                "ParameterNotFound": f"\n  do: {deploy} writes it",
                **dict.fromkeys(DENIED_CODES, allow),
            }.get(code_of(error), "")
            raise ReleaseLookupError(f"the endpoint's mode cannot be read from {name}: {error}{todo}") from error
        try:
            outputs = parse_json(value)
            contract, mode, only = outputs["contract"], outputs.get("mode"), str(outputs.get("variant", ""))
            streams = outputs.get("streams") is True
            variants = {str(key): str(variant) for key, variant in (outputs.get("variants") or {only: only}).items()}
        except (ValueError, KeyError, TypeError, AttributeError):
            contract, mode, streams, variants = None, None, False, {}
        if contract == CONTRACT and mode in ("multi-model", "single-model"):
            return Serving(multi_model=mode == "multi-model", streams=streams, variants=variants)
        if isinstance(contract, int) and contract > CONTRACT:
            found = f"is of contract {contract}, and this version of tritonstack reads contract {CONTRACT}"
            raise ReleaseLookupError(f"{name} {found}\n  do: use the tritonstack that deployed the endpoint")
        raise ReleaseLookupError(
            f"{name} holds {value[:60]!r}; allowed: what the stack wrote, with mode multi-model or single-model\n"
            f"  do: {deploy} after a change, or put the stack's own value back"
        )
