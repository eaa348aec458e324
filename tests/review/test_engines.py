"""Engines that a change makes necessary: whose, and where they are built."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.engines.engine_environments import T4 as ENGINES_T4
from tests.engines.engine_environments import served_engines, write_models
from tests.review.releases import A10G, T4, A, B, dev, release_stack
from tests.review.small import resource, stack
from tritonstack.preparation.build_order import build_set
from tritonstack.review.model_changes.engine_changes import engine_builds
from tritonstack.review.model_changes.models import ModelFolders
from tritonstack.review.snapshot import NO_ENVIRONMENT, EnvironmentSnapshot

ENGINE = {"fast": "engine", "slow": "engine", "plain": "none"}


def served(models: dict[str, str], *, platform: str = T4, endpoint: str = "digits") -> EnvironmentSnapshot:
    return dev(release_stack(models, platform=platform, endpoint=endpoint, dependencies=ENGINE))


def test_a_new_digest_needs_an_engine_and_what_stays_or_needs_none_does_not() -> None:
    before, after = served({"fast": A, "slow": A, "plain": A}), served({"fast": B, "slow": A, "plain": B})
    [notice] = engine_builds(before, after)
    assert (notice.model, notice.digest) == ("fast", B)
    assert f"fast ({B}) for {T4}, which digits serves, needs an engine: the deployment builds it, " in notice.sentence


@pytest.mark.parametrize(
    ("platform", "order", "site"),
    [
        (A10G, None, "CodeBuild on BUILD_GENERAL1_SMALL (A10G)"),
        (T4, None, "SageMaker Processing on ml.g4dn.xlarge (T4)"),
        (A10G, {"engine_builder": "processing"}, "SageMaker Processing on ml.g5.xlarge (A10G)"),
    ],
    ids=["CodeBuild has this GPU", "CodeBuild does not have it", "the service of the build set is taken"],
)
def test_an_engine_is_built_on_a_machine_with_its_gpu(platform: str, order: dict[str, str] | None, site: str) -> None:
    after = dev(release_stack({"fast": A}, platform=platform, dependencies=ENGINE, order=order))
    other = A10G if platform == T4 else T4
    [notice] = engine_builds(served({"fast": A, "plain": A}, platform=other), after)
    assert (notice.model, notice.platform, notice.where) == ("fast", platform, site)
    assert f"the deployment builds it, {site}, unless the bucket has it." in notice.sentence


def test_the_machine_is_that_of_the_templates_project() -> None:
    kinds = {"LINUX_GPU_CONTAINER": "BUILD_GENERAL1_LARGE", "LINUX_CONTAINER": "BUILD_GENERAL1_MEDIUM"}
    projects = {
        f"P{number}": resource("AWS::CodeBuild::Project", {"Environment": {"ComputeType": size, "Type": kind}})
        for number, (kind, size) in enumerate(kinds.items())
    }
    after = served({"fast": A}, platform=A10G)
    builds = stack(projects, name="builds")
    [notice] = engine_builds(NO_ENVIRONMENT, dev(*after.stacks.values(), builds))
    assert notice.where == "CodeBuild on BUILD_GENERAL1_LARGE"


def test_a_gpu_or_region_without_a_machine_is_reported() -> None:
    [nobodys] = engine_builds(NO_ENVIRONMENT, served({"fast": A}, platform="24.09-nobodys"))
    assert "nothing builds it: GPU NOBODYS" in nobodys.sentence
    open_region = dev(release_stack({"fast": A}, region=None))
    [notice] = engine_builds(NO_ENVIRONMENT, open_region, dependencies={"fast": "engine"})
    assert "the region is decided when it is deployed" in notice.sentence


def test_two_endpoints_of_one_platform_need_one_build() -> None:
    stacks = [release_stack({"fast": A}, endpoint=name, dependencies=ENGINE) for name in ("one", "two")]
    [notice] = engine_builds(NO_ENVIRONMENT, dev(*stacks))
    assert "which one, two serve, needs" in notice.sentence
    assert engine_builds(dev(stacks[0]), dev(*stacks)) == ()


def test_without_a_build_set_the_folders_decide_and_a_build_beforehand_makes_it() -> None:
    after = dev(release_stack({"fast": A, "plain": A}))
    [notice] = engine_builds(NO_ENVIRONMENT, after, dependencies=ENGINE)
    assert notice.model == "fast"
    assert "fails where the archive is missing" in notice.sentence


def test_the_build_set_that_the_app_writes_is_read(tmp_path: Path) -> None:
    """The set as synthesis makes it, not as this test spells it."""
    write_models(tmp_path)
    found = served_engines(tmp_path, ENGINES_T4)
    [endpoint] = found.environment.endpoints
    plain = release_stack(
        dict(found.release_sets[endpoint.name]), endpoint=endpoint.name, platform=str(endpoint.platform)
    )
    documents = {**plain.documents, "Builds/BuildSet": json.loads(build_set(found, endpoint).to_json())}
    notices = engine_builds(NO_ENVIRONMENT, dev(replace(plain, documents=documents)))
    assert {each.model for each in notices} == set(found.engines.builds[0].archives)
    machine = found.engines.builds[0].builder.machine.name
    assert all(f"the deployment builds it, SageMaker Processing on {machine} (" in each.sentence for each in notices)


def test_folders_of_a_project_give_what_depends_on_what(tmp_path: Path) -> None:
    assert ModelFolders.of("nobody", project=tmp_path) == ModelFolders()
    found = ModelFolders.of("dev", project=Path(__file__).parents[2]).dependencies
    assert {found["digits-onnx"], found["resnet50-onnx"], found["resnet50-tensorrt"]} == {"none", "engine"}
    assert [name for name, kind in found.items() if kind == "engine"] == ["resnet50-tensorrt"]
