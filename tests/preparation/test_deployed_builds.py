"""What a deployment builds: environments of exports and proofs, weights from S3."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import cases
from tests.engines.engine_environments import T4, served_engines, write_models
from tritonstack.models.source import ArchiveSource, archives_of
from tritonstack.preparation.deployed_builds import ALWAYS, OF_BACKEND, build_environments, deployed_builds
from tritonstack_local.container.proof import NEEDED_ENVIRONMENTS

MODELS = Path(__file__).resolve().parents[2] / "model_repos"


def sources(*folders: str) -> list[ArchiveSource]:
    return [source for folder in folders for source in archives_of(MODELS / folder)]


@cases("folder, further")
def test_the_environments_are_those_that_exports_and_proofs_run_in(folder: str, further: tuple[str, ...]) -> None:
    assert build_environments(sources(folder)) == (*ALWAYS, *further)


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
