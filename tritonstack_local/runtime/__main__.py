"""``python -m tritonstack_local.runtime``: the local SageMaker runtime."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
from functools import partial
from pathlib import Path

import uvloop

from tritonstack_local.keys import LocalKeys
from tritonstack_local.runtime.app import Runtime
from tritonstack_local.runtime.callers import Authority, Roles
from tritonstack_local.runtime.deployed import EmulatorReader, emulator_client
from tritonstack_local.runtime.fleet import FleetParts
from tritonstack_local.runtime.model_store import S3Objects
from tritonstack_local.runtime.settings import RuntimeSettings


def read_arguments(argv: list[str] | None = None) -> RuntimeSettings:
    """The command line as settings."""
    parser = argparse.ArgumentParser(prog="python -m tritonstack_local.runtime", description=__doc__)
    parser.add_argument("--port", type=int, default=4567, help="loopback port of InvokeEndpoint; 0 takes a free one")
    parser.add_argument("--emulator", default="http://127.0.0.1:4566", help="where the other AWS APIs are")
    parser.add_argument("--state", type=Path, required=True, help="folder of the fleets: unpacked models, logs")
    given = parser.parse_args(argv)
    payload = os.environ.get("TRITONSTACK_MAX_PAYLOAD_BYTES", RuntimeSettings.max_payload_bytes)
    return RuntimeSettings(
        port=given.port,
        emulator_url=given.emulator.rstrip("/"),
        keys=LocalKeys.take(os.environ),
        state=given.state.resolve(),
        max_payload_bytes=int(payload),
        iam=os.environ.get("TRITONSTACK_IAM", "on") != "off",
    )


async def serve(settings: RuntimeSettings) -> None:
    """Serve until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    authority = Authority(settings)
    roles = Roles(authority, settings)
    parts = FleetParts(
        settings=settings,
        objects=lambda role: S3Objects(partial(roles.client, role, "s3")),
        check_role=roles.check,
    )
    runtime = Runtime(
        parts=parts,
        reader=EmulatorReader(settings, restarted=roles.forget),
        cloudwatch=emulator_client(settings, "cloudwatch"),
        logs=partial(roles.client, service="logs"),
        authority=authority,
    )
    await runtime.start()
    await stop.wait()
    logging.getLogger("tritonstack.runtime").info("stopping")
    await runtime.stop()


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("botocore").setLevel(logging.ERROR)  # its warnings are of errors that it raises as well
    uvloop.run(serve(read_arguments()))


if __name__ == "__main__":
    main()
