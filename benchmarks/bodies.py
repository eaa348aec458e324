"""Building the body of one request: binary against JSON, and against tritonclient's own binary, in one run.

    python -m benchmarks.bodies

The request is an image of 1x3x224x224 FP32 values. Each time is the best of several rounds, in which the three take
turns, because the machine may be shared.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata

import numpy as np
from tritonclient.http import InferenceServerClient, InferInput

from benchmarks.results import Figure, machine, tell
from tritonstack.client.body import BINARY_PREFIX, Array, encode

ROUNDS = 15
CALLS = 40
"""Binary bodies a round: one takes some microseconds. Of JSON, which takes thousands of times as long, one a round."""
FASTER = 20.0
SLOWER = 1.1


@dataclass(frozen=True, kw_only=True)
class Times:
    """Seconds for one body, each the best of all rounds."""

    json: float
    binary: float
    tritonclient: float


def main() -> int:
    """Run the comparison; 0 where every bound is kept."""
    stated = machine()
    image = np.random.default_rng(0).standard_normal((1, 3, 224, 224)).astype(np.float32)
    check(image)
    times = measure(image, rounds=ROUNDS, calls=CALLS)
    return tell("bodies", figures(times), machine=stated, versions={"tritonclient": metadata.version("tritonclient")})


def ours(image: Array) -> bytes:
    """The client's binary body."""
    return encode({"input": image}).content


def ours_in_json(image: Array) -> bytes:
    """The client's JSON body."""
    return encode({"input": image}, payload_format="json").content


def tritonclients(image: Array) -> bytes:
    """tritonclient's binary body, made as its documentation shows."""
    tensor = InferInput("input", list(image.shape), "FP32")
    tensor.set_data_from_numpy(image, binary_data=True)
    content, _ = InferenceServerClient.generate_request_body([tensor])
    return bytes(content)


def check(image: Array) -> None:
    """Refuse to measure bodies that do not hold the same tensor.

    Raises:
        RuntimeError: they do not.
    """
    raw = image.tobytes()
    if not (ours(image).endswith(raw) and tritonclients(image).endswith(raw)):
        raise RuntimeError("the binary bodies do not end with the tensor")
    if not encode({"input": image}).content_type.startswith(BINARY_PREFIX):
        raise RuntimeError("the client does not send the image as binary by itself")


def measure(image: Array, *, rounds: int, calls: int) -> Times:
    """Take turns, and keep the best of each."""
    json, binary, tritonclient = [], [], []
    for _ in range(rounds):
        binary.append(seconds(lambda: ours(image), calls))
        tritonclient.append(seconds(lambda: tritonclients(image), calls))
        json.append(seconds(lambda: ours_in_json(image), 1))
    return Times(json=min(json), binary=min(binary), tritonclient=min(tritonclient))


def seconds(build: Callable[[], bytes], calls: int) -> float:
    """The least time of so many calls."""
    best = float("inf")
    for _ in range(calls):
        start = time.perf_counter()
        build()
        best = min(best, time.perf_counter() - start)
    return best


def figures(times: Times) -> list[Figure]:
    """The ratios against their bounds."""
    return [
        Figure(what="JSON body of 1x3x224x224 FP32", value=times.json * 1000, unit="ms"),
        Figure(what="binary body of it", value=times.binary * 1000, unit="ms"),
        Figure(what="tritonclient's binary body", value=times.tritonclient * 1000, unit="ms"),
        Figure(
            what="binary, as fast as JSON", value=times.json / times.binary, unit="times", bound=FASTER, at_least=True
        ),
        Figure(
            what="binary, of tritonclient's time", value=times.binary / times.tritonclient, unit="times", bound=SLOWER
        ),
    ]


if __name__ == "__main__":
    sys.exit(main())
