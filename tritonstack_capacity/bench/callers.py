"""The own client's callers of one subject: through its endpoint, of another archive, straight at its container."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

from botocore.config import Config

from tritonstack.client.calls import Target
from tritonstack.engines.polling import is_local
from tritonstack_capacity.bench.container import LocalContainer
from tritonstack_capacity.bench.http_caller import HttpCaller, http_caller
from tritonstack_capacity.bench.request import Prepare
from tritonstack_capacity.bench.settings import BenchSettings
from tritonstack_capacity.bench.signed_request import SignedRequests
from tritonstack_capacity.bench.subject import Subject

ONCE = Config(retries={"total_max_attempts": 1})
Caller = AbstractAsyncContextManager[HttpCaller]


class Callers:
    """Makes callers. Each keeps its connections for as long as its block lasts."""

    def __init__(self, settings: BenchSettings, subject: Subject, *, session: Any) -> None:
        """``session``: makes AWS clients."""
        self._settings = settings
        self._subject = subject
        self._session = session
        self.body = subject.payload.body(subject.payload_format)

    def endpoint(self, archive: str | None = None) -> Caller:
        """By InvokeEndpoint; ``archive``: another one than the subject's."""
        target = self._subject.target.call
        if archive is not None:
            target = Target(endpoint_name=target.endpoint_name, target_model=archive)
        requests = SignedRequests(self._session.client("sagemaker-runtime", config=ONCE))
        return self._caller(lambda: requests.make(target, self.body))

    def straight(self, container: LocalContainer, *, name_hash: str | None) -> Caller:
        """At SageMaker's port of a local container; ``name_hash``: under which name that knows the archive."""
        target = self._subject.target
        return self._caller(lambda: container.request(target, self.body, name_hash=name_hash), container)

    def _caller(self, prepare: Prepare, container: LocalContainer | None = None) -> Caller:
        return http_caller(
            prepare,
            connections=self._settings.most_under_way,
            timeout_seconds=self._settings.timeout_seconds,
            open_socket=None if container is None else container.open_socket,
            proxies=not is_local(self._session.client("sagemaker-runtime", config=ONCE)),
        )
