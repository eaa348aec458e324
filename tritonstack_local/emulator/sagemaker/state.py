"""The state of the emulated SageMaker, and the lock that guards it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tritonstack_local.emulator.processing.record import PROCESSING_JOB, ProcessingJob
from tritonstack_local.emulator.sagemaker.endpoint_record import EndpointRecord
from tritonstack_local.emulator.sagemaker.records import ENDPOINT, ENDPOINT_CONFIG, MODEL, Record, Records


class SageMakerState:
    """Records by kind, tags by ARN.

    API requests come on the event loop, CloudFormation's on worker threads: whoever reads and then writes holds
    ``changed``, which is notified whenever an endpoint's deployment ends.
    """

    def __init__(self, *, fleets: bool) -> None:
        """``fleets`` says whether a runtime will report what became of a deployment."""
        self.fleets = fleets
        self.changed = threading.Condition(threading.RLock())
        self.models: Records[Record] = Records(MODEL)
        self.endpoint_configs: Records[Record] = Records(ENDPOINT_CONFIG)
        self.endpoints: Records[EndpointRecord] = Records(ENDPOINT)
        self.processing_jobs: Records[ProcessingJob] = Records(PROCESSING_JOB)
        self.tags: dict[str, dict[str, str]] = {}
        # Application Auto Scaling's answers, once it is there: the variants of an endpoint that are scalable targets,
        # and to forget those of an endpoint that is deleted.
        self.scaled_variants: Callable[[str], frozenset[str]] = lambda _endpoint: frozenset()
        self.forget_scaled: Callable[[str], None] = lambda _endpoint: None

    def clear(self) -> None:
        """Forget everything."""
        with self.changed:
            for records in (self.models, self.endpoint_configs, self.endpoints, self.processing_jobs):
                records.clear()
            self.tags.clear()
            self.changed.notify_all()
