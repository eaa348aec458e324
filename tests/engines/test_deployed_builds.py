"""What a deployment builds: build sets, builders, environments and weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.engines.engine_environments import A10G, T4, served_engines, write_models
from tritonstack.engines.order import ALWAYS, OF_BACKEND, build_environments, deployed_builds
from tritonstack.models.source import ArchiveSource, archives_of
from tritonstack_local.container.proof import NEEDED_ENVIRONMENTS

MODELS = Path(__file__).resolve().parents[2] / "model_repos"


def sources(*folders: str) -> list[ArchiveSource]:
    return [source for folder in folders for source in archives_of(MODELS / folder)]


def test_every_endpoint_has_a_build_set_of_all_that_it_serves(tmp_path: Path) -> None:
    write_models(tmp_path)
    served = served_engines(tmp_path, T4, A10G, models="[double, fast]")
    made = deployed_builds(served, tmp_path / "model_repos")
    sets = {endpoint: json.loads(document) for endpoint, document in made.build_sets.items()}
    assert {endpoint: each["platform"]["gpu"].lower() for endpoint, each in sets.items()} == {"e0": "t4", "e1": "a10g"}
    for endpoint, each in sets.items():
        assert {row["model"]: row["digest"] for row in each["archives"]} == served.release_sets[endpoint]
    assert sorted(builder.kind for builder in made.builders) == ["codebuild", "processing"]


@pytest.mark.parametrize(
    ("folder", "further"),
    [
        ("digits-onnx", ()),
        ("resnet50-tensorrt", ("torch",)),
        ("resnet50-torchscript", ("torch",)),
        ("t5-python", ("torch",)),
        ("inception-ensemble", ("dali", "torch")),
    ],
)
def test_the_environments_are_those_that_exports_and_proofs_run_in(folder: str, further: tuple[str, ...]) -> None:
    assert build_environments(sources(folder)) == (*ALWAYS, *further)


def test_the_environments_of_used_folders_are_needed_too() -> None:
    assert set(build_environments(sources("digits-ensemble"))) >= set(build_environments(sources("digits-onnx")))


def test_the_backends_whose_stand_ins_need_an_environment_are_those_of_the_proof() -> None:
    needed = dict(NEEDED_ENVIRONMENTS)
    assert needed.pop("EXECUTION_ENV_PATH") == "torch"
    assert needed == OF_BACKEND


SOURCE = f"source: {{s3: 's3://weights/bert.tar.gz', sha256: {'a' * 64}}}\n"


@pytest.mark.parametrize(("choice", "weights"), [("pretrained", ("s3://weights/bert.tar.gz",)), ("random", ())])
def test_weights_in_s3_are_read_only_where_they_are_used(tmp_path: Path, choice: str, weights: tuple[str, ...]) -> None:
    write_models(tmp_path)
    recipe = tmp_path / "model_repos" / "fast" / "recipe.yaml"
    recipe.write_text(recipe.read_text() + SOURCE)
    served = served_engines(tmp_path, T4, header=f"builds: {{weights: {choice}}}")
    assert deployed_builds(served, tmp_path / "model_repos").weights == weights
