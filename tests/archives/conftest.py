"""What the tests of archives share."""

from __future__ import annotations

import pytest

from tests.fake_aws import FakeAws


@pytest.fixture
def aws() -> FakeAws:
    return FakeAws.with_artifacts()
