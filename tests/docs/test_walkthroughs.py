"""The blocks of docs/walkthroughs, quickly: requests to a stand-in, and the posts' values as settings take them.

tests/docs/test_sequences.py runs the pages on the local AWS, with the real Triton.
"""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest
import yaml

from tests.client.systems import DIGEST, ENVIRONMENT, running_systems
from tests.docs.pages import code_blocks
from tritonstack.client import ModelClient
from tritonstack.config import load_environment
from tritonstack.models.runtime_options import OnnxRuntimeOptions

ONNX = "docs/walkthroughs/onnx-backend.md"
ENSEMBLE = "docs/walkthroughs/dali-ensemble.md"
TO_THE_STAND_IN = {  # what the pages name → the same behind the stand-in, whose endpoints are all multi-model
    'environment="onnx"': f'environment="{ENVIRONMENT}"',
    '"models/': '"texts/',
    'EndpointName="ensemble-inception"': (
        f'EndpointName="local-inception", TargetModel="inception-ensemble.{DIGEST}.tar.gz"'
    ),
    'boto3.client("sagemaker-runtime")': 'session.client("sagemaker-runtime")',
}


def test_the_onnx_posts_own_values_are_taken_and_rendered(tmp_path: Path) -> None:
    settings, options = (
        block.text
        for block in code_blocks(ONNX)
        if block.heading == "The post's own values" and block.language == "yaml"
    )
    file = tmp_path / "as-posted.yaml"
    file.write_text(settings)
    posted, default_batch_size = load_environment(file).endpoints
    assert posted.image_uri("us-east-1").endswith("/sagemaker-tritonserver:22.12-py3")
    variables = posted.container.rendered(multi_model=True, release=posted.release)
    assert variables["SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE"] == "16777216000"
    assert variables["SAGEMAKER_TRITON_LOG_VERBOSE"] == "true"
    variables = default_batch_size.container.rendered(multi_model=True, release=default_batch_size.release)
    assert variables["SAGEMAKER_TRITON_ADDITIONAL_ARGS"] == "--backend-config=default-max-batch-size=4"
    every = OnnxRuntimeOptions.model_validate(yaml.safe_load(options)["onnxruntime"])
    assert every.model_fields_set >= {
        "gpu_mem_limit",
        "execution_mode",
        "cudnn_conv_algo_search",
        "arena_extend_strategy",
    }


@pytest.mark.parametrize(
    ("page", "printed"),
    [
        (ONNX, "pooled_output (1, 1024) largest difference 0.0"),
        (ENSEMBLE, "OUTPUT (1, 1001) largest difference 0.0"),
    ],
)
def test_both_payload_forms_get_the_same_response(
    page: str, printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [program] = [block.text for block in code_blocks(page) if block.language == "python"]
    for named, here in TO_THE_STAND_IN.items():
        program = program.replace(named, here)
    monkeypatch.setenv("TRITONSTACK_HOME", str(tmp_path / "home"))
    with running_systems(tmp_path) as systems:

        def client(*, environment: str) -> ModelClient:
            return ModelClient(environment=environment, session=systems.aws)

        with mock.patch("tritonstack.client.ModelClient", client):
            exec(compile(program, page, "exec"), {"session": systems.aws})  # noqa: S102  (the page is our own)
        types = [request.content_type for request in systems.endpoint.requests]
    assert printed in capsys.readouterr().out
    assert types[0] == "application/octet-stream"
    assert types[1].startswith("application/vnd.sagemaker-triton.binary+json;json-header-size=")
