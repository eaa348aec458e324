"""t5-python as it is deployed, small and with random weights, on a real server: the source framework's own answers."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tritonstack_local.container.conftest import SageMaker
from tritonstack.paths import REPOSITORY, environment_python

FOLDER = REPOSITORY / "model_repos" / "t5-python"
MERGED = "dynamic_batching { preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 600000000 }"

pytestmark = pytest.mark.skipif(
    not environment_python("torch").exists(), reason="torch is not installed: python3 scripts/setup.py torch"
)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the recipe's export makes."""
    folder = tmp_path_factory.mktemp("t5")
    recipe = yaml.safe_load((FOLDER / "recipe.yaml").read_text())
    options = {
        "size": recipe["sizes"]["tiny"],
        "weights": "random",
        "seed": recipe["seed"],
        "max_batch_size": 8,
        "tolerance": 1e-4,
        "options": {**recipe["exports"][0]["options"], "max_new_tokens": 24},
    }
    subprocess.run(
        [
            *(environment_python("torch"), FOLDER / "export.py", "--target", folder),
            *("--options", json.dumps(options), "--report", folder / "report.json"),
        ],
        env={"PYTHONPATH": str(REPOSITORY), "PATH": "/usr/bin:/bin"},
        check=True,
    )
    return folder


def archive(exported: Path, name: str, *, config: str | None = None) -> dict[str, str | Path]:
    """The model's directory under another name."""
    model = FOLDER / "t5-python"
    text = config or (model / "config.pbtxt").read_text()
    return {
        f"{name}/config.pbtxt": text.replace('name: "t5-python"', f'name: "{name}"'),
        f"{name}/1/model.py": model / "1" / "model.py",
        f"{name}/1/batching.py": model / "1" / "batching.py",
        f"{name}/1/model": exported / "t5-python" / "1" / "model",
    }


@pytest.fixture(scope="module")
def loaded(sagemaker: SageMaker, exported: Path) -> SageMaker:
    reply = sagemaker.load("t5", archive(exported, "t5-python"))
    assert reply.status == 200, reply.text
    return sagemaker


def body(*row: int) -> dict[str, Any]:
    """A request of one row."""
    shape = [1, len(row)]
    return {
        "inputs": [
            {"name": "input_ids", "datatype": "INT32", "shape": shape, "data": row},
            {"name": "attention_mask", "datatype": "INT32", "shape": shape, "data": [1] * len(row)},
        ]
    }


def answer(server: SageMaker, name: str, request: dict[str, Any]) -> list[int]:
    reply = server.call("POST", f"/models/{name}/invoke", request, f"{name}.tar.gz")
    found: list[int] = reply.outputs["output"]
    return found


def test_concurrent_requests_of_different_lengths_are_one_batch_and_answered_as_if_alone(
    loaded: SageMaker, exported: Path
) -> None:
    """The server waits ten minutes for a second request: only together are they answered before the test's patience."""
    config = (FOLDER / "t5-python" / "config.pbtxt").read_text()
    begin = config.index("dynamic_batching {")
    config = config[:begin] + MERGED + config[config.index("}", begin) + 1 :]
    reply = loaded.load("t5merged", archive(exported, "t5-merged", config=config))
    assert reply.status == 200, reply.text
    requests = [body(5, 6, 7, 1), body(40, 41, 42, 43, 44, 45, 46, 1)]
    alone = [answer(loaded, "t5", one) for one in requests]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda one: answer(loaded, "t5merged", one), requests))
    assert together == alone
    assert together[0] != together[1]


def test_a_request_that_is_wrong_is_refused_in_words(loaded: SageMaker) -> None:
    reply = loaded.call("POST", "/models/t5/invoke", body(5, 9999, 1), "t5.tar.gz")
    assert reply.status == 400
    assert json.loads(reply.text)["error"] == "input_ids holds 9999: the vocabulary has the ids 0 to 383"


@pytest.mark.long
def test_nothing_is_fetched_where_a_weight_file_is_missing(loaded: SageMaker, exported: Path) -> None:
    files = archive(exported, "t5-lacking")
    weights = exported / "t5-python" / "1" / "model"
    del files["t5-lacking/1/model"]
    files |= {f"t5-lacking/1/model/{name}": weights / name for name in ("config.json", "generation_config.json")}
    reply = loaded.load("t5lacking", files)
    assert reply.status != 200
    assert "model.safetensors" in reply.text
