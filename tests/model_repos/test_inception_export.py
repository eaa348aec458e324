"""The exports of both Inception ensembles: the network is the published one, and what is wrong with files is said."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.environments import needs
from tritonstack.archives.programs import run_script
from tritonstack.errors import WorkFailedError
from tritonstack.paths import REPOSITORY, environment_python

pytestmark = pytest.mark.long  # each starts PyTorch or DALI

FOLDER = REPOSITORY / "model_repos" / "inception-ensemble"
GRAPHDEF = REPOSITORY / "model_repos" / "inception-ensemble-graphdef"
HUB = {"hub": "timm/inception_v3.tf_adv_in1k", "revision": "909cbadce5c7ab2fa85d7a37d352c350dc2a14b3"}
GRAPH = {
    "opset": 17,
    "inputs": [{"name": "input", "dtype": "FP32", "shape": ["batch", 299, 299, 3]}],
    "outputs": [{"name": "probabilities", "dtype": "FP32", "shape": ["batch", 1001]}],
}
CONFIG = {"architecture": "inception_v3", "pretrained_cfg": {"mean": [0.5] * 3, "std": [0.5] * 3}}


def network(*arguments: str) -> str:
    """What ``inception_network.py`` prints."""
    program = Path(__file__).with_name("inception_network.py")
    command = [str(environment_python("torch")), str(program), *arguments]
    variables = {"PYTHONPATH": str(FOLDER.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=variables).stdout


def run(
    environment: str,
    script: str,
    folder: Path,
    *,
    picture: bytes,
    weights: str = "random",
    batch: int = 2,
    scripts: Path = FOLDER,
) -> list[str]:
    """Run an export script in ``folder/target``. Returns the lines that it prints."""
    options = {
        "size": {"channel_divisor": 16},
        "weights": weights,
        "seed": 0,
        "source": HUB,
        "graph": GRAPH,
        "engine": None,
        "max_batch_size": batch,
        "tolerance": 1e-4,
        "options": {"decoder_difference": 2.0},
        "archive": "inception-ensemble",
    }
    (folder / "target").mkdir(exist_ok=True)
    np.savez(folder / "sample.npz", INPUT=np.frombuffer(picture, np.uint8)[None])
    lines: list[str] = []
    run_script(
        environment=environment,
        arguments=[
            str(scripts / script),
            *("--target", str(folder / "target")),
            *("--options", json.dumps(options)),
            *("--report", str(folder / "report.json")),
            *("--sample", str(folder / "sample.npz")),
        ],
        folder=folder,
        what="export",
        report=lines.append,
        python_path=REPOSITORY / "model_repos",
        downloads=True,
    )
    return lines


@pytest.fixture
def picture() -> bytes:
    return (FOLDER / "sample" / "image.jpg").read_bytes()


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder laid out like the hub, with a good configuration and no weights yet; the model's folder in it."""
    folder = tmp_path / "hub" / HUB["hub"] / HUB["revision"]
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    monkeypatch.setenv("TRITONSTACK_HUB_FOLDER", str(tmp_path / "hub"))
    return folder


def write_decoded(folder: Path, values: np.ndarray) -> None:
    """What the DALI export leaves for the one that follows."""
    (folder / "target").mkdir()
    np.savez(folder / "target" / "decoded.npz", images=values)


def decoded_by_pillow() -> np.ndarray:
    """The sample's pixels as Pillow decodes and resizes them, FP32 [1, 299, 299, 3] from -1 to 1."""
    from PIL import Image

    with Image.open(FOLDER / "sample" / "image.jpg") as image:
        pixels = np.asarray(image.resize((299, 299), Image.Resampling.BILINEAR), np.float32)
    return pixels[None] / 127.5 - 1


@needs("torch")
def test_the_network_is_the_published_one() -> None:
    # Of torchvision 0.28.0's inception_v3 without its auxiliary classifier, filled by the same rule: names and shapes
    # (timm's are the same) and the scores.
    facts: dict[str, Any] = json.loads(network("facts"))
    assert facts["parameters"] == 23_834_568
    assert facts["names"] == "7319ac97ba5bb65a6244be23ce34fc92bf0f79de2d8bb5b20bdcea59afe5a69a"
    assert facts["scores"] == pytest.approx([-29.402752, -0.535526, -53.247536, -35.438698, 17.911282], abs=0.02)
    assert facts["best"] == 724


@needs("torch")
def test_a_seed_gives_the_same_weights_whatever_computes_them() -> None:
    one_thread, two_threads, another_seed = json.loads(network("random"))
    assert one_thread == two_threads
    assert one_thread != another_seed


@needs("torch")
def test_pretrained_weights_of_a_thousand_classes_give_the_background_the_probability_zero(
    tmp_path: Path, hub: Path, picture: bytes
) -> None:
    network("checkpoint", str(hub / "model.safetensors"), "1000")
    write_decoded(tmp_path, decoded_by_pillow())
    lines = run("torch", "export.py", tmp_path, picture=picture, weights="pretrained")
    assert any("weights of timm/inception_v3.tf_adv_in1k at 909cbadce5c7 from a folder" in line for line in lines)
    [answer] = json.loads((tmp_path / "target/sample/answer.json").read_text())["outputs"]
    assert answer["data"][0] == 0.0
    assert sum(answer["data"]) == pytest.approx(1, abs=1e-5)
    report = json.loads((tmp_path / "report.json").read_text())
    assert sorted(report["inputs"]) == ["config.json", "model.safetensors"]
    assert report["figures"]["largest_difference"] <= 1e-4


@needs("torch")
def test_pixels_with_red_and_blue_exchanged_are_found(tmp_path: Path, picture: bytes) -> None:
    write_decoded(tmp_path, decoded_by_pillow()[..., ::-1])
    with pytest.raises(WorkFailedError, match="tensor DALI_OUTPUT_0: the sample's pixels differ from Pillow's"):
        run("torch", "export.py", tmp_path, picture=picture)


def to_tensorflow(folder: Path, picture: bytes, *, weights: str = "random") -> list[str]:
    """PyTorch's half of the GraphDef's exports, from pixels that Pillow decoded."""
    write_decoded(folder, decoded_by_pillow())
    return run("torch", "export_weights.py", folder, picture=picture, weights=weights, scripts=GRAPHDEF)


def graphdef(folder: Path, picture: bytes) -> list[str]:
    return run("tensorflow", "export.py", folder, picture=picture, scripts=GRAPHDEF)


@needs("torch", "tensorflow")
def test_a_graph_that_is_not_pytorchs_fails_its_proof_and_names_the_tensor(tmp_path: Path, picture: bytes) -> None:
    to_tensorflow(tmp_path, picture)
    path = tmp_path / "target/weights.npz"
    with np.load(path) as found:
        weights = dict(found)

    def refused(said: str, **changed: np.ndarray | None) -> None:
        kept = {**weights, **{name.replace("__", "."): value for name, value in changed.items()}}
        np.savez(path, **{name: value for name, value in kept.items() if value is not None})
        with pytest.raises(WorkFailedError, match=said):
            graphdef(tmp_path, picture)

    deviating = weights["Mixed_7c.branch_pool.bn.running_mean"] + np.float32(0.5)
    refused(
        r"tensor InceptionV3/Predictions/Softmax, random input, batch 1: the exported model differs by",
        Mixed_7c__branch_pool__bn__running_mean=deviating,
    )
    refused(r"weight fc\.bias is missing", fc__bias=None)
    refused(r"no layer takes the weight Mixed_8a\.bn\.bias", Mixed_8a__bn__bias=deviating)
