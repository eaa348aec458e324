"""The state of the emulated SageMaker, and the lock that guards it."""

from __future__ import annotations

import threading

from tritonstack.local.emulator.processing.record import PROCESSING_JOB, ProcessingJob
from tritonstack.local.emulator.sagemaker.endpoint_record import EndpointRecord
from tritonstack.local.emulator.sagemaker.records import ENDPOINT, ENDPOINT_CONFIG, MODEL, Record, Records


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

    def clear(self) -> None:
        """Forget everything."""
        with self.changed:
            for records in (self.models, self.endpoint_configs, self.endpoints, self.processing_jobs):
                records.clear()
            self.tags.clear()
            self.changed.notify_all()
