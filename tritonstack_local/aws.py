"""The local AWS as a whole: its emulator and its SageMaker runtime, as other parts find and use them."""

from __future__ import annotations

import http.client
import json
import os
import urllib.request
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import boto3.session
import botocore.session
from botocore.config import Config

from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.paths import LocalPaths
from tritonstack_local import REGION
from tritonstack_local.keys import OWN_ROUTES, TOKEN_HEADER, LocalKeys
from tritonstack_local.processes import ProcessRecord, log_tail, read_record

EMULATOR_PORT = 4566
RUNTIME_PORT = 4567
SHOWN_LINES = 5
"""Lines of a log under a message."""

PROXIES = ("http_proxy", "https_proxy", "all_proxy")
"""Variables that would send requests over loopback to a proxy; either case counts."""

PERSONAL_VARIABLES = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN")
"""A person's own settings that an SDK would mix with those of the local AWS."""

QUIET_CDK = {
    "CDK_DISABLE_CLI_TELEMETRY": "true",
    "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20",
    "NODE_NO_WARNINGS": "1",
}
"""What keeps the CDK, run by us or by hand, from telemetry and from warnings about Node."""

CLIENT_CONFIG = Config(retries={"total_max_attempts": 2}, read_timeout=75, max_pool_connections=32)


@dataclass(frozen=True, kw_only=True)
class LocalAws:
    """A running local AWS: where it listens and which processes it is made of."""

    emulator_port: int
    runtime_port: int
    keys: LocalKeys
    emulator: ProcessRecord
    runtime: ProcessRecord

    @property
    def emulator_url(self) -> str:
        """URL of every AWS API but InvokeEndpoint."""
        return f"http://127.0.0.1:{self.emulator_port}"

    @property
    def runtime_url(self) -> str:
        """URL of InvokeEndpoint."""
        return f"http://127.0.0.1:{self.runtime_port}"

    @property
    def running(self) -> bool:
        """Whether both processes are alive."""
        return self.emulator.running and self.runtime.running

    def variables(self) -> dict[str, str]:
        """The environment variables that point any AWS SDK, the AWS CLI and the CDK at this local AWS."""
        return sdk_variables(emulator_url=self.emulator_url, runtime_url=self.runtime_url, keys=self.keys)

    def client(self, service: str, *, config: Config | None = None) -> Any:
        """A boto3 client of this local AWS, whatever the calling process's own AWS settings are.

        Without a ``config`` of the caller's own it is shared: making one takes 20 ms, and threads may share it.
        """
        url = self.runtime_url if service == "sagemaker-runtime" else self.emulator_url
        return _shared_client(service, url, self.keys) if config is None else _client(service, url, self.keys, config)

    def session(self) -> LocalSession:
        """A session to pass where a ``boto3.Session`` is taken."""
        return LocalSession(self)

    def iam(self) -> dict[str, Any]:
        """Denied requests, and the permissions that each role used. Raises WorkFailedError: no response."""
        return self._document(f"{self.emulator_url}{OWN_ROUTES}iam", self.emulator)

    def runtime_status(self) -> dict[str, Any]:
        """The runtime's own account of its endpoints, fleets and loaded models.

        Raises WorkFailedError: the runtime does not respond.
        """
        return self._document(f"{self.runtime_url}{OWN_ROUTES}status", self.runtime)

    def own_route(self, route: str, question: Any = None, *, method: str | None = None) -> Any:
        """The document of one of the emulator's own routes (``iam/credentials?…``), to which a question is posted.

        Raises OSError (its HTTPError too), ValueError or http.client.HTTPException.
        """
        return json.loads(read_url(f"{self.emulator_url}{OWN_ROUTES}{route}", self.keys, question, method=method))

    def _document(self, url: str, part: ProcessRecord) -> dict[str, Any]:
        try:
            document: dict[str, Any] = json.loads(read_url(url, self.keys))
            return document
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise WorkFailedError(
                f"the local AWS does not respond at {url}: {error}\n"
                "  do:      tritonstack local down, tritonstack local up, tritonstack local deploy\n"
                f"  its log: {part.log}"
            ) from error


@dataclass(frozen=True)
class LocalSession:
    """Makes clients of the local AWS, like a ``boto3.Session``."""

    aws: LocalAws

    def client(self, service_name: str, *, config: Config | None = None) -> Any:
        return self.aws.client(service_name, config=config)


@cache
def _shared_client(service: str, url: str, keys: LocalKeys) -> Any:
    return _client(service, url, keys, CLIENT_CONFIG)


def _client(service: str, url: str, keys: LocalKeys, config: Config) -> Any:
    return _session().client(
        service,
        endpoint_url=url,
        region_name=REGION,
        aws_access_key_id=keys.access_key_id,
        aws_secret_access_key=keys.secret_access_key,
        config=Config(proxies={}).merge(config),
    )


@cache
def _session() -> boto3.session.Session:
    """A session that reads no variable and no file of the person's: a profile that does not exist breaks nothing."""
    known = botocore.session.Session.SESSION_VARIABLES
    variables = {name: (None, None, default, kind) for name, (_, _, default, kind) in known.items()}
    for name in ("config_file", "credentials_file"):
        variables[name] = (None, None, os.devnull, None)
    return boto3.session.Session(botocore_session=botocore.session.Session(session_vars=variables))


def sdk_variables(*, emulator_url: str, runtime_url: str, keys: LocalKeys) -> dict[str, str]:
    """The environment variables that point any AWS SDK, the AWS CLI and the CDK at a local AWS."""
    return {
        **keys.credentials(),
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ENDPOINT_URL": emulator_url,
        "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME": runtime_url,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        **QUIET_CDK,
        "CDK_HOME": str(LocalPaths.from_environment().cdk_home),
    }


def find_local_aws() -> LocalAws | None:
    """The local AWS that ``tritonstack local up`` started and that still runs as a whole, or None.

    Raises InputError: the record of it is damaged.
    """
    record = read_record(LocalPaths.from_environment())
    if record is None or record.emulator is None or record.runtime is None:
        return None
    aws = LocalAws(
        emulator_port=record.emulator_port,
        runtime_port=record.runtime_port,
        keys=record.keys,
        emulator=record.emulator,
        runtime=record.runtime,
    )
    return aws if aws.running else None


def require_local_aws() -> LocalAws:
    """The running local AWS.

    Raises InputError: none runs, it is still starting, or the record of it is damaged. Raises WorkFailedError: a part
    of it has ended; with the last lines of that part's log.
    """
    aws = find_local_aws()
    if aws is not None:
        return aws
    record = read_record(LocalPaths.from_environment())
    parts = record.parts if record else {}
    ended = {name: part for name, part in parts.items() if not part.running}
    if len(ended) == len(parts):
        found, advice = "no local AWS is running", "tritonstack local up, then tritonstack local deploy"
    elif not ended:
        found, advice = (
            "the local AWS is starting",
            "wait for that tritonstack local up; if none is at work, tritonstack local up",
        )
    else:
        lines = [f"{' and '.join(ended)} of the local AWS has ended."]
        again = "tritonstack local up, which starts it again"
        lost = "" if record and record.runtime in ended.values() else ", empty; then tritonstack local deploy"
        lines.append(f"  do:      {again}{lost}")
        for part in ended.values():
            lines += [f"The last lines of {part.log}:", log_tail(Path(part.log), SHOWN_LINES)]
        raise WorkFailedError("\n".join(lines))
    raise InputError([Problem(found=found, allowed="a running one", advice=advice)])


def plain_environment() -> dict[str, str]:
    """This process's variables without a person's own AWS settings and proxies, which are not for the local AWS."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith("AWS_") and name.lower() not in PROXIES
    }


def read_url(url: str, keys: LocalKeys, question: Any = None, *, method: str | None = None) -> bytes:
    """The response of a route of our own, over loopback, past any proxy. A ``question`` is sent as JSON by POST.

    Raises OSError (its HTTPError too) or http.client.HTTPException.
    """
    body = None if question is None else json.dumps(question).encode()
    request = urllib.request.Request(url, data=body, headers={TOKEN_HEADER: keys.token}, method=method)  # noqa: S310
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=10) as answer:
        content: bytes = answer.read()
        return content
