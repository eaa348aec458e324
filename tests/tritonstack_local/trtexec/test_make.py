"""The stand-ins made for an image and a GPU."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tritonstack_local.trtexec.launchers import stand_ins_of


def test_stand_ins_are_of_the_releases_tensorrt_and_of_the_gpu(tmp_path: Path) -> None:
    made = stand_ins_of(tmp_path, release="24.09", gpu="T4")
    machine = json.loads((tmp_path / "machine.json").read_text())
    assert (machine["gpu"], machine["compute_capability"]) == ("T4", "7.5")
    assert machine["tensorrt"].startswith("10.4")
    asked = [made["TRITONSTACK_NVIDIA_SMI"], "--query-gpu=name", "--format=csv,noheader"]
    assert "T4" in subprocess.run(asked, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("release", "gpu", "sentence"), [("19.01", "T4", "no Triton release 19.01"), ("24.09", "T5", "no GPU T5")]
)
def test_what_the_catalogue_does_not_know_has_no_stand_ins(
    tmp_path: Path, release: str, gpu: str, sentence: str
) -> None:
    with pytest.raises(LookupError, match=sentence):
        stand_ins_of(tmp_path, release=release, gpu=gpu)
