"""A DALI pipeline written for a GPU, on a real server without one."""

from __future__ import annotations

import io
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.environments import needs
from tritonstack.paths import environment_python

pytestmark = [pytest.mark.long, needs("dali")]

CONFIG = """
backend: "dali"
max_batch_size: 4
input [ { name: "IMAGE" data_type: TYPE_UINT8 dims: [-1] } ]
output [ { name: "PIXELS" data_type: TYPE_FP32 dims: [3, 16, 16] } ]
parameters { key: "num_threads" value: { string_value: "1" } }
"""
RAGGED = CONFIG.replace("dims: [-1]", "dims: [-1] allow_ragged_batch: true") + (
    "dynamic_batching { preferred_batch_size: [2] max_queue_delay_microseconds: 30000000 }"
)
PIPELINE = """
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.triton import autoserialize

@autoserialize
@pipeline_def(batch_size=4, num_threads=1, device_id=0)
def decode():
    image = fn.external_source(device="cpu", name="IMAGE", dtype=types.UINT8, ndim=1)
    image = fn.decoders.image(image, device="mixed", output_type=types.RGB)
    image = fn.resize(image, resize_x=16, resize_y=16)
    return fn.crop_mirror_normalize(image, dtype=types.FLOAT, output_layout="CHW", mean=[0.0], std=[255.0])
"""


def jpeg(*colour: int) -> np.ndarray:
    """A picture of one colour, compressed, as [1, bytes]."""
    file = io.BytesIO()
    Image.new("RGB", (40, 30), colour).save(file, "JPEG", quality=95)
    return np.frombuffer(file.getvalue(), np.uint8)[None]


def test_a_pipeline_marked_for_autoserialisation_decodes_on_the_cpu(sagemaker: Any) -> None:
    reply = sagemaker.load("dali", {"decode/config.pbtxt": CONFIG, "decode/1/dali.py": PIPELINE})
    assert reply.status == 200, reply.text
    pixels = sagemaker.invoke_binary("dali", {"IMAGE": jpeg(255, 128, 0)})["PIXELS"]
    assert pixels.shape == (1, 3, 16, 16)
    np.testing.assert_allclose(pixels.mean(axis=(0, 2, 3)), [1.0, 0.5, 0.0], atol=0.02)
    notice = "tritonstack stand-in: backend dali runs dali.py with DALI 2.4.0 on the CPU, operators on the GPU moved"
    assert notice in sagemaker.container.log_path.read_text()


SERIALISE = """
import sys
exec(open(sys.argv[1]).read())
open(sys.argv[2], "wb").write(decode(device_id=None).serialize())
"""


def test_a_serialised_pipeline_decodes_a_batch_of_pictures_of_different_sizes(sagemaker: Any, tmp_path: Path) -> None:
    (tmp_path / "dali.py").write_text(PIPELINE)
    serialised = tmp_path / "model.dali"
    command = [str(environment_python("dali")), "-c", SERIALISE, str(tmp_path / "dali.py"), str(serialised)]
    subprocess.run(command, check=True, capture_output=True)
    reply = sagemaker.load("serialised", {"decode/config.pbtxt": RAGGED, "decode/1/model.dali": serialised})
    assert reply.status == 200, reply.text
    pictures = [jpeg(255, 255, 255), np.concatenate([jpeg(0, 0, 0), np.zeros((1, 100), np.uint8)], axis=1)]
    with ThreadPoolExecutor(2) as callers:
        white, black = callers.map(
            lambda one: sagemaker.invoke_binary("serialised", {"IMAGE": one})["PIXELS"], pictures
        )
    assert white.min() > 0.98
    assert black.max() < 0.02


def test_requests_of_one_batch_share_its_error_as_with_the_real_backend_and_leave_it_usable(sagemaker: Any) -> None:
    assert sagemaker.load("dali-shared", {"decode/config.pbtxt": RAGGED, "decode/1/dali.py": PIPELINE}).status == 200
    broken = np.frombuffer(b"no picture at all", np.uint8)[None]

    def invoke(one: np.ndarray) -> Any:
        return sagemaker.invoke("dali-shared", IMAGE=("UINT8", list(one.shape), one.ravel().tolist()))

    with ThreadPoolExecutor(2) as callers:
        for reply in callers.map(invoke, [jpeg(0, 0, 255), broken]):
            assert reply.status == 400
            assert "the input is no image that DALI decodes, or not all of one" in reply.text
        assert [reply.status for reply in callers.map(invoke, [jpeg(0, 0, 255)] * 2)] == [200, 200]


def test_a_pipeline_without_the_configured_input_does_not_load(sagemaker: Any) -> None:
    config = CONFIG.replace('"IMAGE"', '"PICTURE"')
    reply = sagemaker.load("dali-input", {"decode/config.pbtxt": config, "decode/1/dali.py": PIPELINE})
    assert reply.status == 400
    assert "the pipeline has no input called PICTURE" in reply.text
