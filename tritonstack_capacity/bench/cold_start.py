"""Cold starts, apart from the load: the first call to an archive that no instance has loaded.

SageMaker has no call that unloads a model. A copy of the archive under a name that was never called is as cold: the
instance downloads, unpacks and loads it. The copies are removed from the bucket at the end; instances keep what they
have loaded until they need the memory.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlparse

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.errors import WorkFailedError
from tritonstack.naming import DIGEST_LENGTH, ArchiveName
from tritonstack_capacity.bench.document import ColdPart
from tritonstack_capacity.bench.target import BenchTarget

AskOnce = Callable[[str], Awaitable[str | None]]
"""Calls an archive by its file's name. None for a right answer, else what went wrong."""


async def cold_starts(session: Any, target: BenchTarget, *, count: int, ask: AskOnce) -> ColdPart:
    """The first calls to so many archives that no instance has loaded, one after the other.

    Raises:
        WorkFailedError: this caller may not copy the archive, or it is not there.
    """
    times, failures = [], []
    with copies(session.client("s3"), target, model_data_url=model_data_url(session, target), count=count) as names:
        for name in names:
            began = time.perf_counter()
            failure = await ask(name)
            if failure is None:
                times.append((time.perf_counter() - began) * 1000)
            else:
                failures.append(failure)
    return ColdPart(milliseconds=times, failures=failures)


@contextmanager
def copies(s3: Any, target: BenchTarget, *, model_data_url: str, count: int) -> Iterator[list[str]]:
    """So many copies of a model's archive beside it, for as long as the block lasts.

    Raises:
        WorkFailedError: this caller may not write there, or the archive is not there.
    """
    place = urlparse(model_data_url)
    bucket, prefix = place.netloc, place.path.lstrip("/")
    names = [
        str(ArchiveName(model=target.release.model, digest=secrets.token_hex(DIGEST_LENGTH // 2))) for _ in range(count)
    ]
    source = {"Bucket": bucket, "Key": f"{prefix}{target.release.archive}"}
    made: list[str] = []
    try:
        for name in names:
            s3.copy(source, bucket, f"{prefix}{name}")
            made.append(name)
        yield made
    except (ClientError, BotoCoreError) as error:
        raise WorkFailedError(
            f"no copy of {target.release.archive} in {model_data_url} for a cold start: {error}"
        ) from error
    finally:
        for name in made:
            s3.delete_object(Bucket=bucket, Key=f"{prefix}{name}")


def model_data_url(session: Any, target: BenchTarget) -> str:
    """The prefix under which a multi-model endpoint finds its archives."""
    sagemaker = session.client("sagemaker")
    described = sagemaker.describe_endpoint(EndpointName=target.call.endpoint_name)
    config = sagemaker.describe_endpoint_config(EndpointConfigName=described["EndpointConfigName"])
    model = sagemaker.describe_model(ModelName=config["ProductionVariants"][0]["ModelName"])
    return str(model["PrimaryContainer"]["ModelDataUrl"])
