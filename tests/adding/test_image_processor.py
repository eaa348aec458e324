"""Image adapters out of transformers' preprocessor_config.json: the same pixels, or said what is missing."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.environments import needs
from tritonstack.adapters import ImageAdapter
from tritonstack.adding.image_processor import UnlikeAdapterError, adapter_of_processor
from tritonstack.client.images import pixels
from tritonstack.paths import environment_python

HALF = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "rescale_factor": 1 / 255, "resample": 2}
VIT = {**HALF, "image_processor_type": "ViTImageProcessor", "size": {"height": 224, "width": 224}}


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({**VIT, "image_processor_type": "DonutImageProcessor"}, "DonutImageProcessor, and known are Beit"),
        ({}, "no image_processor_type"),
        ({**VIT, "resample": 0}, "resample 0: an adapter has bilinear and bicubic"),
        ({**VIT, "size": {"height": 224, "width": 112}}, "an adapter makes squares"),
        ({**VIT, "do_resize": False, "image_mean": [0.5]}, "do_resize is false: .*; image_mean .*: an adapter has one"),
        ({**VIT, "do_center_crop": True, "crop_size": {"height": 256, "width": 256}}, "crop_size 256 is more"),
        ({**VIT, "image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 224}}, "without a crop"),
    ],
)  # fmt: skip
def test_what_an_adapter_does_not_do_is_said(about: dict[str, Any], said: str) -> None:
    with pytest.raises(UnlikeAdapterError, match=said):
        adapter_of_processor(about, image="pixel_values")


def test_older_names_of_processors_and_a_size_of_one_number_are_taken_as_their_classes_did() -> None:
    stretched = adapter_of_processor({**HALF, "feature_extractor_type": "ViTFeatureExtractor", "size": 32}, image="x")
    assert (stretched["crop"], stretched["stretch"]) == (32, True)
    cropped = {**HALF, "feature_extractor_type": "CLIPFeatureExtractor", "do_center_crop": True, "crop_size": 28}
    fields = adapter_of_processor({**cropped, "size": 32}, image="x")
    assert (fields["resize"], fields["crop"], "stretch" in fields) == (32, 28, False)


PROCESSORS = {
    "vit": "ViTImageProcessor(size={'height': 32, 'width': 32})",
    "vit-unscaled": "ViTImageProcessor(size={'height': 32, 'width': 32}, do_rescale=False, do_normalize=False)",
    "deit": "DeiTImageProcessor(size={'height': 36, 'width': 36}, crop_size={'height': 32, 'width': 32})",
    "clip": "CLIPImageProcessor(size={'shortest_edge': 32}, crop_size={'height': 32, 'width': 32})",
    "bit": "BitImageProcessor(size={'shortest_edge': 36}, crop_size={'height': 32, 'width': 32})",
    "convnext": "ConvNextImageProcessor(size={'shortest_edge': 56}, crop_pct=0.875)",
    "convnext-large": "ConvNextImageProcessor(size={'shortest_edge': 384})",
    "mobilenet": "MobileNetV2ImageProcessor(size={'shortest_edge': 36}, crop_size={'height': 32, 'width': 32})",
    "siglip": "SiglipImageProcessor(size={'height': 32, 'width': 32})",
}
PROGRAM = """
import sys
import numpy as np
from pathlib import Path
from PIL import Image
from transformers import (BitImageProcessor, CLIPImageProcessor, ConvNextImageProcessor, DeiTImageProcessor,
    MobileNetV2ImageProcessor, SiglipImageProcessor, ViTImageProcessor)
for name, processor in PROCESSORS.items():
    for picture in sorted(Path().glob("*.png")):
        found = processor(Image.open(picture).convert("RGB"), return_tensors="np")["pixel_values"]
        processor.save_pretrained(name)
        np.save(f"{name}/{picture.stem}.npy", found[0])
"""


@pytest.mark.long
@needs("torch", "trainers")
def test_pixels_are_those_of_transformers_own_processors(tmp_path: Path) -> None:
    from PIL import Image

    for width, height in ((64, 64), (100, 60), (48, 80)):
        values = np.random.default_rng(width).integers(0, 256, (height, width, 3), dtype=np.uint8)
        Image.fromarray(values).save(tmp_path / f"{width}x{height}.png")
    made = ", ".join(f"{name!r}: {call}" for name, call in PROCESSORS.items())
    program = PROGRAM.replace("PROCESSORS", f"{{{made}}}", 1)
    command = [str(environment_python("trainers")), "-c", program]
    ended = subprocess.run(
        command, cwd=tmp_path, text=True, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, check=False
    )
    assert ended.returncode == 0, ended.stdout
    for name in PROCESSORS:
        about = json.loads((tmp_path / name / "preprocessor_config.json").read_text())
        adapter = ImageAdapter(**adapter_of_processor(about, image="x"))
        for picture in tmp_path.glob("*.png"):
            expected = np.load(tmp_path / name / f"{picture.stem}.npy")
            found = pixels(picture.read_bytes(), adapter)
            np.testing.assert_allclose(found, expected, atol=1e-5, err_msg=f"{name}, {picture.stem}")
