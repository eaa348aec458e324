"""An environment matched with its model folders: archives, digests, and what no build may fetch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.environment_file import write_environment
from tests.models.folders import write, write_double
from tritonstack.config import Environment, load_environment
from tritonstack.errors import InputError
from tritonstack.models.digest import model_digest
from tritonstack.models.source import BuildChoice
from tritonstack.served import all_served, served_by


def project(root: Path, endpoint: str, header: str = "") -> tuple[Environment, Path]:
    """An environment, and the model folder ``double`` with two overlays, one of which is an ensemble's backend."""
    folder = write_double(root)
    with (folder / "recipe.yaml").open("a") as recipe:
        recipe.write("sizes: {tiny: {layers: 1}}\noverlays: {a: {}, b: {config: [b.pbtxt]}}\n")
    write(folder, {"b.pbtxt": "max_batch_size: 2"})
    return load_environment(write_environment(root, endpoint=endpoint, header=header)), folder.parent


def test_a_folder_becomes_its_archives_with_their_digests(tmp_path: Path) -> None:
    settings, repositories = project(tmp_path, "models: [double]", "builds: {size: tiny}")
    served = served_by(settings, repositories, file=tmp_path / "local.yaml")
    assert [endpoint.models for endpoint in served.environment.endpoints] == [("double-a", "double-b")]
    (digests,) = served.release_sets.values()
    assert digests == {name: model_digest(served.sources[name]) for name in ("double-a", "double-b")}
    assert {source.choice for source in served.sources.values()} == {BuildChoice(size="tiny")}


CLOSED = (
    "network: {created: {cidr: 10.1.0.0/16, zones: [us-east-1a, us-east-1b]}, s3_prefix_list_id: pl-1}\n"
    "builds: {on_deploy: true, image: '123456789012.dkr.ecr.us-east-1.amazonaws.com/cpu:1'%s}"
)
HUB = f"source: {{hub: team/double, revision: {'a' * 40}}}\n"


@pytest.mark.parametrize("origin", [HUB, f"source: {{s3: s3://weights/double, sha256: {'a' * 64}}}\n"])
@pytest.mark.parametrize("more", ["", ", hub: {folder: /opt/hub}", ", weights: random", ", outside_network: true"])
def test_builds_without_a_way_out_fetch_no_weights_from_the_hub(tmp_path: Path, origin: str, more: str) -> None:
    settings, repositories = project(tmp_path, "models: [double]", CLOSED % more)
    with (repositories / "double" / "recipe.yaml").open("a") as recipe:
        recipe.write(origin)
    file = tmp_path / "local.yaml"
    if origin != HUB or more:
        assert served_by(settings, repositories, file=file).sources
        return
    with pytest.raises(InputError) as refused:
        served_by(settings, repositories, file=file)
    [problem] = refused.value.problems
    assert problem.field == "network.created.nat"
    assert str(problem.file).startswith(f"{file}:")
    assert "the weights of double" in problem.found
    for way in ("builds.outside_network: true", "source.s3", "builds.hub.folder", "builds.on_deploy: false"):
        assert way in problem.allowed


@pytest.mark.parametrize(
    ("builds", "refused"),
    [
        ("{on_deploy: true}", True),
        ("{on_deploy: null}", False),  # its model needs no engine: nothing is built
        ("{on_deploy: false}", False),
        ("{on_deploy: true, outside_network: true}", False),
        ("{on_deploy: true, image: '123456789012.dkr.ecr.us-east-1.amazonaws.com/cpu:1'}", False),
        ("{on_deploy: true, network: {vpc_id: vpc-1, subnet_ids: [subnet-1], security_group_ids: [sg-1]}}", False),
    ],
)
def test_a_network_without_a_way_out_is_refused_only_where_a_build_fetches_packages(
    tmp_path: Path, builds: str, refused: bool
) -> None:
    header = CLOSED.partition("\n")[0] + f"\nbuilds: {builds}"
    settings, repositories = project(tmp_path, "models: [double]", header)
    if not refused:
        assert served_by(settings, repositories, file=tmp_path / "local.yaml").sources
        return
    with pytest.raises(InputError, match=r"standard:7\.0 fetch Python packages") as error:
        served_by(settings, repositories, file=tmp_path / "local.yaml")
    assert [each.field for each in error.value.problems] == ["network.created.nat"]


def test_a_missing_model_is_reported_with_its_line_and_with_those_of_other_environments(
    tmp_path: Path,
) -> None:
    settings, repositories = project(tmp_path, "models: [double, dobule]")
    old = write_environment(
        tmp_path, endpoint="mode: single-model\nmodels: [double]", name="old", header="environment: old"
    )
    files = [(settings, tmp_path / "local.yaml"), (load_environment(old), old)]
    with pytest.raises(InputError) as refused:
        all_served(files, repositories)
    unknown, several = refused.value.problems
    assert (unknown.file, unknown.field) == (f"{tmp_path / 'local.yaml'}:11", "endpoints[0].models[1]")
    assert unknown.advice == "Did you mean double?"
    assert several.file == f"{old}:11"
