"""What an environment serves, its build sets and orders, and what builds need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cases import cases
from tests.config.environment_file import write_environment
from tests.engines.engine_environments import T4, served_engines, write_models
from tests.models.folders import write, write_double
from tritonstack.config import Environment, load_environment
from tritonstack.engines.order import (
    ALWAYS,
    OF_BACKEND,
    JobNetwork,
    all_served,
    build_environments,
    build_set,
    deployed_builds,
    read_order,
    served_by,
)
from tritonstack.errors import InputError
from tritonstack.models.inputs import model_digest
from tritonstack.models.source import ArchiveSource, BuildChoice, archives_of
from tritonstack_local.container.proof import NEEDED_ENVIRONMENTS


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


def test_a_model_that_is_not_there_is_reported_with_its_line_and_with_those_of_other_environments(
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


def test_the_build_set_of_an_endpoint_names_every_archive_that_it_serves(tmp_path: Path) -> None:
    folder = write_double(tmp_path)
    with (folder / "recipe.yaml").open("a") as recipe:
        recipe.write("dependency: python\noverlays: {b: {config: [b.pbtxt]}, a: {}}\n")
    write(folder, {"b.pbtxt": "max_batch_size: 2"})
    file = write_environment(
        tmp_path,
        endpoint="models: [double]",
        header="builds: {size: tiny, engine_timeout_minutes: 30}\ntags: {team: platform}",
    )
    served = served_by(load_environment(file), folder.parent, file=file)
    (endpoint,) = served.environment.endpoints
    order = build_set(served, endpoint)
    assert {row.name.model: row.name.digest for row in order.archives} == served.release_sets[endpoint.name]
    assert [row.name.model for row in order.archives] == ["double-a", "double-b"]
    assert {row.dependency for row in order.archives} == {"python"}
    assert (order.platform, order.image) == (endpoint.platform, endpoint.image_uri(served.environment.region))
    assert (order.parallel_engines, order.engine_timeout_minutes, order.network) == (2, 30, None)
    assert order.choice == BuildChoice(size="tiny")
    assert order.tags == {"team": "platform", "tritonstack:environment": served.environment.environment}
    network = JobNetwork(subnet_ids=("subnet-1",), security_group_ids=("sg-1", "sg-2"))
    for each in (order, order.model_copy(update={"network": network, "engine_builder": "processing"})):
        assert read_order(each.to_json(), file="order.json") == each


def document(**changes: Any) -> str:
    """A sound document, with some fields changed; None removes one."""
    archive = {"model": "bert", "digest": "0" * 16, "dependency": "engine"}
    plain = {
        "schema": 1, "environment": "dev", "endpoint": "text", "region": "us-east-1",
        "platform": {"release": "24.09", "gpu": "t4"}, "image": "image", "engine_builder": None, "size": "full",
        "weights": "pretrained", "parallel_engines": 2, "engine_timeout_minutes": 240, "network": None,
        "archives": [archive],
    }  # fmt: skip
    return json.dumps({name: value for name, value in {**plain, **changes}.items() if value != "gone"})


@cases("changes, said")
def test_a_wrong_document_is_refused_with_its_fields(changes: dict[str, Any], said: list[str]) -> None:
    with pytest.raises(InputError) as refused:
        read_order(document(**changes), file="s3://bucket/order.json")
    for words in ["s3://bucket/order.json", *said]:
        assert words in str(refused.value)


def test_an_order_of_a_version_without_tags_or_of_a_recorded_digest_is_read() -> None:
    order = read_order(document(archives=[{"model": "bert", "digest": "0" * 16}]), file="order.json")
    assert (order.tags, order.archives[0].dependency) == ({}, None)


def test_synthesis_imports_no_boto3_with_it() -> None:
    code = "import sys, tritonstack.engines.order; sys.exit(any(m.startswith('boto') for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


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
