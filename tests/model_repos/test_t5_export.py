"""t5-python's export: what it makes at its small size. Its served answers are tests/systems's."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.environments import needs
from tritonstack.paths import REPOSITORY, environment_python

FOLDER = REPOSITORY / "model_repos" / "t5-python"

RECIPE: dict[str, Any] = yaml.safe_load((FOLDER / "recipe.yaml").read_text())
MODEL = Path("t5-python/1/model")

pytestmark = needs("torch")


def export(folder: Path, *, weights: str = "random", size: str = "tiny", **variables: str) -> Path:
    """What the recipe's export makes in a folder."""
    options = {
        "size": RECIPE["sizes"][size],
        "weights": weights,
        "seed": RECIPE["seed"],
        "source": RECIPE["source"],
        "max_batch_size": 8,
        "tolerance": 1e-4,
        "options": {**RECIPE["exports"][0]["options"], "max_new_tokens": 24},
    }
    folder.mkdir(exist_ok=True)
    subprocess.run(
        [
            *(environment_python("torch"), FOLDER / "export.py", "--target", folder),
            *("--options", json.dumps(options), "--report", folder / "report.json"),
        ],
        env={"PYTHONPATH": str(FOLDER.parent), "PATH": "/usr/bin:/bin", "HF_HUB_OFFLINE": "1", **variables},
        check=True,
    )
    return folder


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(tmp_path_factory.mktemp("t5"))


def test_the_export_makes_what_the_recipe_says_and_proves_more_than_repetition(exported: Path) -> None:
    made = {path.relative_to(exported).as_posix() for path in exported.rglob("*") if path.is_file()}
    assert made == {"report.json", *RECIPE["exports"][0]["produces"]}
    figures = json.loads((exported / "report.json").read_text())["figures"]
    assert figures["largest_difference"] <= 1e-4
    assert figures["distinct_ids"] >= RECIPE["proof"]["figures"]["distinct_ids"]["at_least"]


@pytest.mark.long
def test_random_weights_are_the_same_every_time(exported: Path, tmp_path: Path) -> None:
    again = export(tmp_path / "again")
    for file in (MODEL / "model.safetensors", Path("sample/answer.json"), Path("tokenizer.json")):
        assert (again / file).read_bytes() == (exported / file).read_bytes()


def test_published_weights_and_tokenizer_go_into_the_archive_as_they_are(exported: Path, tmp_path: Path) -> None:
    place = tmp_path / "hub" / RECIPE["source"]["hub"] / RECIPE["source"]["revision"]
    place.mkdir(parents=True)
    for file in (MODEL / "config.json", MODEL / "model.safetensors", Path("tokenizer.json")):
        (place / file.name).hardlink_to(exported / file)
    made = export(tmp_path / "made", weights="pretrained", size="full", TRITONSTACK_HUB_FOLDER=str(tmp_path / "hub"))
    for file in (MODEL / "model.safetensors", Path("sample/answer.json")):
        assert (made / file).read_bytes() == (exported / file).read_bytes()
    words, published = (json.loads((each / "tokenizer.json").read_text()) for each in (made, exported))
    assert words == published
    inputs = json.loads((made / "report.json").read_text())["inputs"]
    assert set(inputs) == {"config.json", "model.safetensors", "tokenizer.json"}
