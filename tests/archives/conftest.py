"""What the tests of archives share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.models import fake_aws
from tests.models.fake_aws import FakeAws


@pytest.fixture
def aws() -> Iterator[FakeAws]:
    with fake_aws.running() as running:
        yield running
