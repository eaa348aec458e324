"""t5-python's export from a folder laid out like the hub: the published weights go into the archive unchanged."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tritonstack.paths import REPOSITORY, environment_python

FOLDER = REPOSITORY / "model_repos" / "t5-python"
RECIPE: dict[str, Any] = yaml.safe_load((FOLDER / "recipe.yaml").read_text())
MODEL = Path("t5-python/1/model")

pytestmark = pytest.mark.skipif(
    not environment_python("torch").exists(), reason="torch is not installed: python3 scripts/setup.py torch"
)


def export(target: Path, *, weights: str, size: str, hub: Path | None = None) -> subprocess.CompletedProcess[str]:
    options = {
        "size": RECIPE["sizes"][size],
        "weights": weights,
        "seed": RECIPE["seed"],
        "source": RECIPE["source"],
        "max_batch_size": 8,
        "tolerance": 1e-4,
        "options": {**RECIPE["exports"][0]["options"], "max_new_tokens": 16},
    }
    target.mkdir()
    return subprocess.run(
        [
            *(environment_python("torch"), FOLDER / "export.py", "--target", target),
            *("--options", json.dumps(options), "--report", target / "report.json"),
        ],
        env={
            "PYTHONPATH": str(REPOSITORY),
            "PATH": "/usr/bin:/bin",
            "HF_HUB_OFFLINE": "1",
            **({"TRITONSTACK_HUB_FOLDER": str(hub)} if hub else {}),
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("t5") / "random"
    made = export(folder, weights="random", size="tiny")
    assert made.returncode == 0, made.stderr
    return folder


@pytest.fixture
def hub(exported: Path, tmp_path: Path) -> Path:
    """A hub with that model under the recipe's name and revision."""
    place = tmp_path / "hub" / RECIPE["source"]["hub"] / RECIPE["source"]["revision"]
    place.mkdir(parents=True)
    for file in ("config.json", "model.safetensors"):
        (place / file).hardlink_to(exported / MODEL / file)
    (place / "tokenizer.json").hardlink_to(exported / "tokenizer.json")
    return tmp_path / "hub"


def test_the_proof_compares_more_than_a_model_that_repeats_itself(exported: Path) -> None:
    figures = json.loads((exported / "report.json").read_text())["figures"]
    assert figures["largest_difference"] <= 1e-4
    assert figures["distinct_ids"] >= RECIPE["proof"]["figures"]["distinct_ids"]["at_least"]


def test_the_export_makes_what_the_recipe_says(exported: Path) -> None:
    made = {path.relative_to(exported).as_posix() for path in exported.rglob("*") if path.is_file()}
    assert made == {"report.json", *RECIPE["exports"][0]["produces"]}


def test_random_weights_are_the_same_every_time(exported: Path, tmp_path: Path) -> None:
    assert export(tmp_path / "again", weights="random", size="tiny").returncode == 0
    for file in (MODEL / "model.safetensors", Path("sample/answer.json"), Path("tokenizer.json")):
        assert (tmp_path / "again" / file).read_bytes() == (exported / file).read_bytes()


def test_published_weights_and_tokenizer_go_into_the_archive_as_they_are(
    exported: Path, hub: Path, tmp_path: Path
) -> None:
    made = export(tmp_path / "made", weights="pretrained", size="full", hub=hub)
    assert made.returncode == 0, made.stderr
    for file in (MODEL / "model.safetensors", Path("sample/answer.json")):
        assert (tmp_path / "made" / file).read_bytes() == (exported / file).read_bytes()
    words, published = (json.loads((place / "tokenizer.json").read_text()) for place in (tmp_path / "made", exported))
    assert words == published
    report = json.loads((tmp_path / "made" / "report.json").read_text())
    assert set(report["inputs"]) == {"config.json", "model.safetensors", "tokenizer.json"}
