"""The runtime's settings: its command line, and SageMaker's limits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tritonstack.aws.sagemaker_rules import MAX_PAYLOAD_BYTES
from tritonstack_local.keys import LocalKeys


@dataclass(frozen=True, kw_only=True)
class RuntimeSettings:
    """Settings of one runtime. Times are seconds, sizes are bytes."""

    port: int  # the loopback port of InvokeEndpoint
    emulator_url: str  # of all AWS APIs but InvokeEndpoint
    keys: LocalKeys
    state: Path  # the folder of the fleets: unpacked models and Triton's logs
    iam: bool = True  # whether callers are checked, and fleets act with their Model's execution role
    # the largest request body: a setting, for AWS's pages disagree
    max_payload_bytes: int = MAX_PAYLOAD_BYTES
    # how long a request may take in the container, and how long it waits for a model to load (developer guide, invoke-
    # multi-model-endpoint)
    invoke_seconds: float = 60.0
    stream_seconds: float = 480.0  # how long a streamed response may take (developer guide: up to 8 minutes)
    load_seconds: float = 360.0  # how long loading goes on after its first caller gave up (same page)
    unload_seconds: float = 355.0  # how long an unload may take: Triton's front end polls up to 350 s
    reconcile_seconds: float = 0.25  # the pause between two looks at what is deployed while something changes
    quiet_seconds: float = 0.4  # the pause while nothing changes
    flush_seconds: float = 5.0  # how often metrics are sent
    log_seconds: float = 1.0  # how often the container's log is sent
    health_seconds: float = 5.0  # interval of requests to a serving container's /ping
    unhealthy_seconds: float = 60.0  # how long a container may leave /ping unanswered before it is started again
    drain_seconds: float = 75.0  # how long a replaced fleet may finish its requests
    max_connections: int = 64  # connections to one container; further requests queue
    max_parallel_loads: int = 2  # loads of different models at once. Each occupies one thread of Triton's front end
    # how long a load waits for an idle model before the least recently used one takes no new requests, so that it
    # becomes idle
    victim_patience_seconds: float = 2.0
    max_unpacked_bytes: int = 64 * 1024**3  # the largest unpacked archive
    max_members: int = 200_000  # the most files in an archive
