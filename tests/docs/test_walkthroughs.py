"""The blocks of docs/walkthroughs that no sequence runs: the values of the posts, as settings and recipes take them."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.docs.pages import code_blocks
from tritonstack.config import load_environment
from tritonstack.models.runtime_options import OnnxRuntimeOptions

ONNX = "docs/walkthroughs/onnx-backend.md"


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
