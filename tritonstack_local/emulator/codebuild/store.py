"""The emulator's S3 and Parameter Store as a build's agent uses them."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import botocore.config
from botocore.exceptions import BotoCoreError, ClientError

from tritonstack_local.emulator.codebuild.buildspec import PhaseError

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}  # the local AWS asks for none


@functools.cache
def client(service: str, region: str) -> Any:
    """A client of this emulator's own gateway, for worker threads: its event loop would wait for itself."""
    return boto3.client(
        service,
        region_name=region,
        endpoint_url=os.environ["AWS_ENDPOINT_URL"],
        aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        config=botocore.config.Config(
            s3={"addressing_style": "path"},
            retries={"mode": "standard", "total_max_attempts": 5},  # a service gives up no sooner than its users' SDKs
        ),
    )


@contextmanager
def failing_as_client_error(what: str) -> Iterator[None]:
    """Turn a refused or failed call within the block into the phase's failure, CodeBuild's ``CLIENT_ERROR``."""
    try:
        yield
    except ClientError as error:
        told = error.response["Error"]
        raise PhaseError("CLIENT_ERROR", f"{what}, error: {told['Code']}: {told.get('Message', '')}") from error
    except (BotoCoreError, OSError) as error:
        raise PhaseError("CLIENT_ERROR", f"{what}, error: {error}") from error
