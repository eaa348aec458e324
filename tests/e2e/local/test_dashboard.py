"""The dashboard of real endpoints under load: every graph has data, or is named as one that cannot have any here."""

from __future__ import annotations

import re
import time
from pathlib import Path

import numpy as np
import pytest

from tests.e2e.calls import invoke, target_model
from tests.e2e.conftest import MANY
from tests.e2e.project import REPOSITORY, Project
from tritonstack.client import ModelClient
from tritonstack.config import load_environment
from tritonstack.monitoring.dashboard import dashboard_of
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]

GPU_GRAPHS = {"gpu", "gpu_memory"}
LOADED = ("many", "single")
"""One endpoint of each mode; the first holds fewer models than are called, so that some are unloaded."""
LONGEST_SECONDS = 200
"""An instance's figures are sent when their minute is over."""


@pytest.fixture(scope="module")
def loaded(deployed: LocalAws) -> LocalAws:
    """After calls that load and unload models on one endpoint, and plain ones on the other, one of them wrong."""
    client = deployed.client("sagemaker-runtime")
    for number in (*range(MANY), *range(MANY)):
        target = target_model(deployed, endpoint="many", model=f"adds-{number:02}")
        assert invoke(client, endpoint="many", target=target, value=1.0) == 1.0 + number
    request = (REPOSITORY / "model_repos/digits-onnx/sample/request.json").read_bytes()
    for _ in range(20):
        client.invoke_endpoint(EndpointName="local-single", ContentType="application/json", Body=request)
    ours = ModelClient(environment="local", session=deployed.session(), latency_metric=True)
    ours.invoke("many/adds-00", {"x": np.ones((1, 1), np.float32)})
    ours.invoke("single/digits-onnx", {"pixels": np.zeros((1, 64), np.float32)})
    assert ours.publish_latencies() == 2
    with pytest.raises(client.exceptions.ModelError):
        client.invoke_endpoint(EndpointName="local-single", ContentType="application/json", Body=b"{}")
    return deployed


def drawn(project: Project) -> dict[tuple[str, str], str]:
    """Each graph of the page that the command writes, by endpoint and key."""
    path = Path(project.run("dashboard", "-e", "local", "--hours", "1").stdout.strip())
    figures = re.findall(r'<figure id="([^"]*)-([a-z_]+)".*?</figure>', path.read_text(), flags=re.DOTALL)
    texts = re.findall(r"<figure .*?</figure>", path.read_text(), flags=re.DOTALL)
    return dict(zip(figures, texts, strict=True))


def test_every_graph_of_an_endpoint_under_load_has_data_or_says_why_it_cannot(
    project: Project, loaded: LocalAws
) -> None:
    dashboard = dashboard_of(load_environment(project.root / "environments" / "local.yaml"), projects=None)
    wanted = {(section.key, graph.key) for section, graph in dashboard.graphs() if section.key in LOADED}
    cannot = {key for key in wanted if key[1] in GPU_GRAPHS}
    until = time.monotonic() + LONGEST_SECONDS
    while True:
        seen = drawn(project)
        empty = {key for key in wanted if 'data-points="0"' in seen[key]}
        if empty == cannot and highest_share_of_errors(seen["single", "errors"]) > 0:  # the wrong call of the load
            break
        assert time.monotonic() < until, f"no data for {sorted(empty - cannot)}, or no error"
        time.sleep(3)
    assert set(seen) == {(section.key, graph.key) for section, graph in dashboard.graphs()}
    assert all("the local AWS runs on the CPU" in seen[key] for key in empty)
    assert all("<svg" in seen[key] for key in wanted - empty)
    assert "<td>1</td><td>1</td><td>1</td>" in seen["many", "instances"]
    assert "<td>0.736</td>" in seen["many", "cost_per_hour"]


def highest_share_of_errors(figure: str) -> float:
    """Of InvocationModelErrors, percent; 0 where the graph has no data."""
    found = re.search(r"InvocationModelErrors</th><td>[^<]*</td><td>[^<]*</td><td>([^<]*)</td>", figure)
    return 0.0 if found is None else float(found[1])
