"""AWS's own names: documented ones, and the same in the functions that cannot import them."""

from __future__ import annotations

import json
import re

import pytest

from tritonstack import aws_names, naming
from tritonstack.paths import REPOSITORY

DOCUMENTED = json.loads((REPOSITORY / "tritonstack/monitoring/data/metrics.json").read_text(encoding="utf-8"))[
    "namespaces"
]
NAMES = {value for module in (aws_names, naming) for name, value in vars(module).items() if name.isupper()}


def test_the_metrics_and_dimensions_that_aws_documents_have_names_here() -> None:
    assert set(DOCUMENTED) <= NAMES
    for namespace in DOCUMENTED.values():
        assert set(namespace["dimensions"]) <= NAMES
        assert set(namespace["metrics"]) <= NAMES


@pytest.mark.parametrize(
    ("file", "copies"),
    [
        ("verification/calls.py", {"AWS/SageMaker", "ModelUnloadingTime", "EndpointName", "VariantName"}),
        ("load_test/results.py", {"AWS/SageMaker", "ModelLatency", "OverheadLatency", "EndpointName", "VariantName"}),
        (
            "load_test/results.py",
            {"/aws/sagemaker/Endpoints", "CPUUtilization", "GPUUtilization", "GPUMemoryUtilization"},
        ),
        ("scaling/target.py", {"sagemaker:variant:DesiredInstanceCount"}),
        ("scaling/deployment.py", {"Custom::ScalingBefore", "Custom::ScalingSettled", "Custom::ScalingAfter"}),
        ("activation/deployment.py", {"Custom::PublishedArchives"}),
        ("bucket_emptying/handler.py", {"tritonstack:deleted-with-stack"}),
    ],
)
def test_functions_have_their_own_copies_of_the_same_names(file: str, copies: set[str]) -> None:
    strings = set(re.findall(r'"([^"\n]+)"', (REPOSITORY / "lambda" / file).read_text(encoding="utf-8")))
    assert copies <= strings
    assert copies <= NAMES
