"""How long a load test with Inference Recommender may take, and how often it may ask, before its state machine ends it.

Step Functions keeps at most 25,000 events of a standard execution, and fails one that would have more (developer guide:
"Step Functions service quotas", "Quotas related to state machine executions"). The jobs are an inline Map, whose
iterations' events are in the history of the execution itself (guide: "Using Map state in Inline mode"). The types of
events are those of the API reference: HistoryEvent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tritonstack.config.load_test import LONGEST_TEST, RecommenderSettings

MOST_EVENTS = 25_000
SPARE = 0.1
"""Of the events, for calls of the function that are repeated: three events a time."""
OUTSIDE = 25
"""Events: ExecutionStarted; five each of Register, Gather and CleanUp; MapStateEntered, -Started, -Succeeded, -Exited;
two of WasAllMeasured and two of Measured; ExecutionSucceeded."""
OF_A_JOB = 9
"""MapIterationStarted and -Succeeded, five of Start, two of Ended."""
OF_A_POLL = 9
"""WaitStateEntered and -Exited; TaskStateEntered, TaskScheduled, TaskStarted, TaskSucceeded, TaskStateExited;
ChoiceStateEntered and -Exited."""

DEFAULT_JOB_SECONDS = 2700
"""Of a default job ("complete within 45 minutes": developer guide, "Recommendation jobs")."""
ENDPOINT_SECONDS = 1800
"""Ours: room for the endpoints that a job makes and removes. AWS does not say whether a job's duration has it."""
OTHER_SECONDS = 3600
"""Ours: room for what is done before and after the jobs, clean-up included."""


@dataclass(frozen=True, kw_only=True)
class Length:
    """The most that a test comes to.

    Attributes:
        jobs: how many it has.
        job_seconds: the longest that one takes, with its endpoints.
    """

    jobs: int
    job_seconds: int

    def events(self, *, poll_seconds: int) -> int:
        """Of the execution's history, where each job is asked after every ``poll_seconds``."""
        polls = math.ceil(self.job_seconds / poll_seconds)
        return OUTSIDE + self.jobs * (OF_A_JOB + OF_A_POLL * polls)

    def seconds(self, *, poll_seconds: int, at_once: int) -> int:
        """Of the execution. An end is seen up to one ``poll_seconds`` late; then the next job begins."""
        return OTHER_SECONDS + math.ceil(self.jobs / at_once) * (self.job_seconds + poll_seconds)

    def least_poll_seconds(self) -> int:
        """Which ``poll_seconds`` keep the history within ``allowed_events``; of 99 jobs at most there are such."""
        polls = (allowed_events() - OUTSIDE - self.jobs * OF_A_JOB) // (self.jobs * OF_A_POLL)
        return math.ceil(self.job_seconds / polls)

    def least_at_once(self, *, poll_seconds: int) -> int:
        """How many jobs at once keep the test within ``LONGEST_TEST``; of 99 jobs at most 40 are enough."""
        rounds = (LONGEST_TEST - OTHER_SECONDS) // (self.job_seconds + poll_seconds)
        return math.ceil(self.jobs / rounds)


def length_of(recommender: RecommenderSettings, *, jobs: int) -> Length:
    """The length of a test of so many jobs, each taken as long as the longest."""
    longest = {
        "default": DEFAULT_JOB_SECONDS,
        "advanced": recommender.duration_seconds,
        "both": max(DEFAULT_JOB_SECONDS, recommender.duration_seconds),
    }[recommender.job]
    return Length(jobs=jobs, job_seconds=longest + ENDPOINT_SECONDS)


def allowed_events() -> int:
    """Of ``MOST_EVENTS``, less what is spared."""
    return int(MOST_EVENTS * (1 - SPARE))
