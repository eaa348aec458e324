"""Why a job failed."""

from __future__ import annotations


class JobFailedError(Exception):
    """The text becomes ``FailureReason``; it begins with SageMaker's kind (``ClientError``, ``AlgorithmError``)."""
