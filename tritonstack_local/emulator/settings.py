"""The emulator's settings, from environment variables."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from dataclasses import dataclass
from pathlib import Path

from tritonstack_local import ACCOUNT, REGION
from tritonstack_local.keys import LocalKeys

HOST = "127.0.0.1"
"""The local AWS verifies no signature: it listens on loopback alone, and its callers are known by their access keys."""


@dataclass(frozen=True, kw_only=True)
class EmulatorSettings:
    """The emulator's address, and whether a runtime serves its endpoints."""

    port: int  # the gateway's TCP port
    fleets: bool  # False where no runtime is there to start containers: endpoints are then InService at once
    runtime_url: str | None  # the local runtime, which InvokeEndpoint requests are passed to; None where there is none
    temporary: Path  # the folder under which the emulator makes its own temporary folder
    endpoint_wait_seconds: float  # the longest that CloudFormation waits for an endpoint
    stack_patience_seconds: float  # how long a response of CloudFormation may wait for a stack to settle
    iam: bool  # whether permissions are enforced
    keys: LocalKeys

    @classmethod
    def read(cls, variables: MutableMapping[str, str]) -> EmulatorSettings:
        """Reads the variables, and removes the keys; raises ValueError with a sentence where one is wrong."""
        fleets = variables.get("TRITONSTACK_FLEETS", "runtime")
        if fleets not in ("runtime", "none"):
            raise ValueError(f"TRITONSTACK_FLEETS={fleets}: 'runtime' or 'none'")
        iam = variables.get("TRITONSTACK_IAM", "on")
        if iam not in ("on", "off"):
            raise ValueError(f"TRITONSTACK_IAM={iam}: 'on' or 'off'")
        try:
            port = int(variables.get("GATEWAY_PORT", "4566"))
            wait = float(variables.get("TRITONSTACK_ENDPOINT_WAIT_SECONDS", "1800"))
            patience = float(variables.get("TRITONSTACK_STACK_PATIENCE_SECONDS", "20"))
        except ValueError as error:
            raise ValueError(f"GATEWAY_PORT and TRITONSTACK_…_SECONDS are numbers: {error}") from error
        return cls(
            port=port,
            fleets=fleets == "runtime",
            runtime_url=variables.get("TRITONSTACK_RUNTIME_URL") or None,
            temporary=Path(variables.get("TMPDIR") or "/tmp"),  # noqa: S108  the system's own default
            endpoint_wait_seconds=wait,
            stack_patience_seconds=patience,
            iam=iam == "on",
            keys=LocalKeys.take(variables),
        )

    def export(self, folder: str) -> None:
        """Set the variables that MiniStack reads when it is imported, and that the Lambdas it starts inherit."""
        os.environ |= {
            "BIND_HOST": HOST,
            "GATEWAY_PORT": str(self.port),
            "MINISTACK_ACCOUNT_ID": ACCOUNT,
            "MINISTACK_REGION": REGION,
            "TMPDIR": folder,
            "AWS_ENDPOINT_URL": f"http://{HOST}:{self.port}",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "LAMBDA_EXECUTOR": "local",
            "IOT_MTLS_ENABLED": "0",
            "SFTP_ENABLED": "0",
        }
        # A Lambda must not find this repository, nor a profile of the user's.
        for name in ("PYTHONPATH", "AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
            os.environ.pop(name, None)
