"""``make full``: ResNet-50 and T5-small at their real size, with random weights, built, deployed and answered.

Not collected with the other tests: it takes minutes and gigabytes. It shows what tiny models cannot: real sizes in the
export, the proof, the packing, the container's memory.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.project import Project
from tests.systems.answers import asked, manifest_of
from tests.systems.conftest import RESNETS, deploying, endpoint, environment, system_project
from tritonstack.client import ModelClient
from tritonstack.local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(3600)]

LOCAL = environment(
    "local",
    endpoint("images", *RESNETS),
    endpoint("texts", "t5-python", instance_type="ml.g5.xlarge"),
    size="full",
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return system_project(tmp_path_factory.mktemp("full"), local=LOCAL, needs=("torch",))


@pytest.fixture(scope="module")
def deployed(project: Project) -> Iterator[LocalAws]:
    yield from deploying(project)


@pytest.mark.parametrize(
    ("endpoint", "name", "megabytes"), [*(("images", name, 90) for name in RESNETS), ("texts", "t5-python", 200)]
)
def test_a_model_of_real_size_answers_its_sample(deployed: LocalAws, endpoint: str, name: str, megabytes: int) -> None:
    client = ModelClient(environment="local", session=deployed.session())
    _, difference = asked(client, f"{endpoint}/{name}")
    manifest = manifest_of(client, f"{endpoint}/{name}")
    figures = ", ".join(f"{key} {value:.3g}" for key, value in manifest.figures.items())
    print(f"\n{name}: {manifest.archive.bytes:,} bytes, answer differs by {difference:.2e}; {figures}")
    assert manifest.archive.bytes > megabytes * 1_000_000
