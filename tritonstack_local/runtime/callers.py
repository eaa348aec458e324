"""IAM at the runtime: which callers may invoke an endpoint, and sessions of the Models' execution roles.

The emulator keeps the policies and decides; the runtime requests decisions over internal routes and keeps them.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode

from botocore.exceptions import CredentialRetrievalError

from tritonstack.loopback.http_server import InvokeError, Request
from tritonstack_local import ACCOUNT, REGION
from tritonstack_local.runtime.deployed import (
    DeploymentError,
    RoleRefusedError,
    UnreachableError,
    ask_emulator,
    emulator_client,
)
from tritonstack_local.runtime.errors import service_unavailable
from tritonstack_local.runtime.invocation import COMPONENT
from tritonstack_local.runtime.model_cache import TARGET_MODEL
from tritonstack_local.runtime.settings import RuntimeSettings

SERVICE = "sagemaker.amazonaws.com"
KEPT_SECONDS = 1.0
"""The longest that a decision is used: a changed policy counts a second later. IAM is eventually consistent, too."""
RENEWED_SECONDS = 0.5
"""The age from which a decision that is used is renewed in the background."""
ASK_SECONDS = 2.0
MOST_KEPT = 4096
THREADS = 2
"""Threads of their own: downloads occupy those of ``asyncio.to_thread`` for minutes."""


class Authority:
    """The IAM of the local AWS. Methods block."""

    def __init__(self, settings: RuntimeSettings) -> None:
        self._settings = settings

    def refusal(self, *, access_key: str, action: str, resource: str, context: Mapping[str, str]) -> InvokeError | None:
        """The error response to a caller that may not invoke; None to one that may. Raises UnreachableError.

        ``access_key`` is empty where the request has no signature.
        """
        question = {"access_key": access_key, "action": action, "resource": resource}
        asked = {**question, "context": context}
        status, answer = ask_emulator(self._settings, "iam/decisions", asked, seconds=ASK_SECONDS)
        if status != 200 or "allowed" not in answer:
            raise UnreachableError(f"the emulator responded {status} to a question for a decision: {answer}")
        if answer["allowed"]:
            return None
        if access_key:
            return InvokeError(answer["code"], 403, answer["message"])
        return InvokeError("MissingAuthenticationTokenException", 403, "Missing Authentication Token")

    def credentials(self, role: str) -> dict[str, str]:
        """Keys of a new session of a role, as boto3 takes them. It lasts as long as the local AWS.

        Raises RoleRefusedError: there is no such role, or it does not trust SageMaker; CredentialRetrievalError: the
        local AWS does not respond.
        """
        asked = urlencode({"role": role, "service": SERVICE, "session": "SageMaker"})
        try:
            status, answer = ask_emulator(self._settings, f"iam/credentials?{asked}", seconds=ASK_SECONDS)
        except UnreachableError as error:
            raise CredentialRetrievalError(provider=SERVICE, error_msg=str(error)) from error
        if status != 200:
            kind = RoleRefusedError if status in (403, 404) else CredentialRetrievalError
            raise kind(provider=SERVICE, error_msg=answer.get("message", str(status)))
        return {
            "aws_access_key_id": answer["AccessKeyId"],
            "aws_secret_access_key": answer["SecretAccessKey"],
            "aws_session_token": answer["SessionToken"],
        }


# --- Who may invoke ---


class _Call(NamedTuple):
    """What a decision is about."""

    access_key: bytes
    endpoint: str
    target_model: bytes | None
    component: bytes | None  # InferenceComponentName
    streamed: bool  # InvokeEndpointWithResponseStream

    @classmethod
    def of(cls, request: Request, endpoint: str, *, streamed: bool) -> _Call:
        headers = request.headers
        return cls(access_key_of(request), endpoint, headers.get(TARGET_MODEL), headers.get(COMPONENT), streamed)


INVOKE = "sagemaker:InvokeEndpoint"
STREAM = "sagemaker:InvokeEndpointWithResponseStream"
"""A stream needs both actions here. UNVERIFIED: the API reference names InvokeEndpoint, the service authorization
reference has an action for each; whoever is granted both is allowed by either reading."""


@dataclass(frozen=True, slots=True)
class _Decision:
    at: float  # the monotonic time of the request for it
    refusal: InvokeError | None


class Callers:
    """Decides on the callers of InvokeEndpoint; runs on the event loop, and requests IAM's decisions in threads."""

    def __init__(self, authority: Authority, *, tags_of: Callable[[str], Mapping[str, str]]) -> None:
        """``tags_of`` gives an endpoint's tags, none for one that is not there."""
        self._authority = authority
        self._tags_of = tags_of
        self._kept: dict[_Call, _Decision] = {}
        self._asking: dict[_Call, asyncio.Task[_Decision]] = {}
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="decisions")

    def allowed_at_once(self, request: Request, endpoint: str) -> bool:
        """Whether a decision that is kept lets the caller invoke; where not, ``check`` is to decide."""
        call = _Call.of(request, endpoint, streamed=False)
        decision = self._kept.get(call)
        if decision is None or decision.refusal is not None:
            return False
        age = time.monotonic() - decision.at
        if age > RENEWED_SECONDS:
            self._ask(call)
        return age <= KEPT_SECONDS

    async def check(self, request: Request, endpoint: str, *, streamed: bool) -> None:
        """Raise InvokeError where the caller may not invoke: as SageMaker refuses it, or IAM does not respond.

        Nothing is counted then. UNVERIFIED: no page states whether Invocations counts a request that IAM refused.
        """
        call = _Call.of(request, endpoint, streamed=streamed)
        decision = self._kept.get(call)
        if decision is None or time.monotonic() - decision.at > KEPT_SECONDS:
            decision = await asyncio.shield(self._ask(call))
        if decision.refusal is not None:
            raise replace(decision.refusal)  # a copy: each raise of one exception adds to its traceback

    def _ask(self, call: _Call) -> asyncio.Task[_Decision]:
        asking = self._asking.get(call)
        if asking is None:
            asking = self._asking[call] = asyncio.get_running_loop().create_task(self._decide(call))
            asking.add_done_callback(lambda _: self._asking.pop(call, None))
        return asking

    async def _decide(self, call: _Call) -> _Decision:
        """Request IAM's decision. While it does not respond, its last decision holds."""
        at = time.monotonic()
        refusal: InvokeError | None
        try:
            refusal = await asyncio.get_running_loop().run_in_executor(self._threads, self._refusal, call)
        except UnreachableError as error:
            before = self._kept.get(call)
            if before is None:
                return _Decision(at, service_unavailable(f"IAM of the local AWS does not respond: {error}"))
            at, refusal = time.monotonic(), before.refusal
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        decision = self._kept[call] = _Decision(at, refusal)
        return decision

    def _refusal(self, call: _Call) -> InvokeError | None:
        # Condition keys: service authorization reference of SageMaker, InvokeEndpoint. An endpoint's ARN has its name
        # in lower case (amazon-sagemaker-examples issue 293; philschmid/cdk-samples issue 2 for the refusal).
        access_key, endpoint, target_model, component, streamed = call
        context = {
            f"{prefix}:ResourceTag/{name}": value
            for name, value in self._tags_of(endpoint).items()
            for prefix in ("aws", "sagemaker")
        }
        if target_model is not None:
            context["sagemaker:TargetModel"] = target_model.decode("latin-1")
        resources = [f"endpoint/{endpoint.lower()}"]
        if component is not None:
            resources.append(f"inference-component/{component.decode('latin-1').lower()}")
        refusals = (
            self._authority.refusal(
                access_key=access_key.decode("latin-1"),
                action=action,
                resource=f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:{resource}",
                context=context,
            )
            for action in ((INVOKE, STREAM) if streamed else (INVOKE,))
            for resource in resources
        )
        return next((refusal for refusal in refusals if refusal is not None), None)

    def stop(self) -> None:
        """Send no more requests."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def access_key_of(request: Request) -> bytes:
    """The access key that signed a request, in its header or its query; empty where none did (Signature Version 4)."""
    header = request.headers.get(b"authorization")
    if header is not None:
        begin = header.find(b"Credential=") + len(b"Credential=")
        end = header.find(b"/", begin)
        return header[begin:end] if len(b"Credential=") <= begin < end else b""
    scope = parse_qs(request.path.partition(b"?")[2]).get(b"X-Amz-Credential", [b""])[0]
    return scope.partition(b"/")[0]


# --- The execution roles with which fleets download and log ---


class Roles:
    """Clients of the local AWS that act as a Model's execution role. Methods block; any thread may call them."""

    def __init__(self, authority: Authority, settings: RuntimeSettings) -> None:
        """Makes no client yet. Where IAM is switched off they act as the administrator."""
        self._authority = authority
        self._settings = settings
        self._clients: dict[tuple[str, str], Any] = {}
        self._lock = threading.Lock()  # boto3's session, unlike its clients, is not for several threads

    def check(self, role: str) -> None:
        """Raise DeploymentError where SageMaker cannot assume the role, UnreachableError where nothing responds."""
        if not self._settings.iam:
            return
        try:
            self._authority.credentials(role)
        except RoleRefusedError as error:
            # The words of CreateModel. UNVERIFIED: no page states those of an endpoint's FailureReason.
            raise DeploymentError(
                f'The execution role ARN "{role}" is invalid. Please ensure that the role exists and that its trust '
                f'relationship policy allows the action "sts:AssumeRole" for the service principal "{SERVICE}".'
            ) from error
        except CredentialRetrievalError as error:
            raise UnreachableError(str(error)) from error

    def client(self, role: str, service: str) -> Any:
        """A boto3 client with a session of the role. Raises as ``Authority.credentials``."""
        with self._lock:
            if (role, service) not in self._clients:
                keys = self._authority.credentials(role) if self._settings.iam else None
                timeout = 60 if service == "s3" else 20
                made = emulator_client(self._settings, service, read_timeout=timeout, keys=keys)
                self._clients[role, service] = made
            return self._clients[role, service]

    def forget(self) -> None:
        """The local AWS was started again: earlier sessions are void, and the next client gets a new one."""
        with self._lock:
            self._clients.clear()
