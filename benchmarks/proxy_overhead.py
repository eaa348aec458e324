"""What ``tritonstack proxy`` adds to a request: ``digits-onnx`` by boto3 itself, and by KServe through the proxy.

Each request through the proxy is one of boto3's too, sent by the proxy's process. Both end in the same real Triton.
"""

from __future__ import annotations

import asyncio
import statistics
from concurrent.futures import ThreadPoolExecutor

import uvloop
from botocore.config import Config

from benchmarks.invoke_overhead import ENDPOINT, ENVIRONMENT, MODEL, SAMPLE, checked, current_release, label_of
from benchmarks.local_stack import local_stack
from benchmarks.measuring import CALLERS, Ask, Figure, Loads, compared, ratio, tell
from benchmarks.scenarios.served import TIMEOUT_SECONDS
from tritonstack.client.model_client import READ_TIMEOUT_SECONDS
from tritonstack.naming import endpoint_name
from tritonstack_capacity.bench.http_caller import ReadyRequest, http_caller
from tritonstack_capacity.bench.perf_analyzer import running_proxy
from tritonstack_local.aws import LocalAws

ROUNDS = 7
LATENCY_RATIO = 2.0
"""A request through the proxy takes at most so many times one by boto3."""
KEPT = 0.6
"""Of boto3's throughput."""


def main() -> int:
    """Measure. Returns 0 where both bounds are kept, 1 where one is missed; raises where it could not run."""
    with local_stack() as aws, running_proxy(ENVIRONMENT) as address, ThreadPoolExecutor(CALLERS) as threads:
        direct, through = uvloop.run(_loads(by_boto3(aws, threads), address))
    return tell("proxy-overhead", figures(direct, through))


async def _loads(direct: tuple[Ask, Ask], address: str) -> list[Loads]:
    request = ReadyRequest(
        url=f"http://{address}/v2/models/{ENDPOINT}/{MODEL}/infer",
        headers={"Content-Type": "application/json"},
        body=(SAMPLE / "request.json").read_bytes(),
    )
    async with http_caller(lambda: request, connections=CALLERS, timeout_seconds=TIMEOUT_SECONDS) as through:
        return await compared(direct, (checked(through),) * 2, rounds=ROUNDS)


def by_boto3(aws: LocalAws, threads: ThreadPoolExecutor) -> tuple[Ask, Ask]:
    """Requests as a program sends them: of one caller in this thread, and of several in threads with one client."""
    config = Config(retries={"total_max_attempts": 1}, read_timeout=READ_TIMEOUT_SECONDS, max_pool_connections=CALLERS)
    client = aws.client("sagemaker-runtime", config=config)
    label = label_of((SAMPLE / "answer.json").read_bytes())
    request = {
        "EndpointName": endpoint_name(environment=ENVIRONMENT, endpoint=ENDPOINT),
        "TargetModel": str(current_release(aws).archive),
        "ContentType": "application/json",
        "Body": (SAMPLE / "request.json").read_bytes(),
    }

    def invoke() -> str | None:
        response = client.invoke_endpoint(**request)["Body"].read()
        return None if label_of(response) == label else f"a response without the digit {label}: {response[:300]!r}"

    async def alone() -> str | None:
        return invoke()

    async def in_a_thread() -> str | None:
        return await asyncio.get_running_loop().run_in_executor(threads, invoke)

    return alone, in_a_thread


def figures(direct: Loads, through: Loads) -> list[Figure]:
    """The medians over the rounds of each round's ratios."""
    slower, kept = ratio(through.ms, direct.ms), ratio(through.rates, direct.rates)
    return [
        Figure("median request by boto3", statistics.median(direct.ms), "ms"),
        Figure("median request through the proxy", statistics.median(through.ms), "ms"),
        Figure("a request through the proxy, times one by boto3", slower, "times", LATENCY_RATIO),
        Figure(f"by boto3, {CALLERS} threads", statistics.median(direct.rates), "/s"),
        Figure(f"through the proxy, {CALLERS} callers", statistics.median(through.rates), "/s"),
        Figure("throughput kept, times boto3's", kept, "times", KEPT, at_least=True),
    ]
