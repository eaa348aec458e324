"""``builds``: how an environment's models are made."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.environment_file import write_environment
from tritonstack.config import Environment, engines_built_on_deploy, load_environment
from tritonstack.errors import InputError
from tritonstack.models import choice_of


def test_models_are_full_and_pretrained_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    choice = choice_of(load_environment(write_environment(tmp_path)))
    assert (choice.size, choice.weights) == ("full", "pretrained")


def test_the_file_s_choice_is_taken(tmp_path: Path) -> None:
    path = write_environment(tmp_path, header="builds: {size: tiny, weights: random}")
    choice = choice_of(load_environment(path))
    assert (choice.size, choice.weights) == ("tiny", "random")


@pytest.mark.parametrize(
    ("given", "field"),
    [("{size: small}", "builds.size"), ("{weights: 1}", "builds.weights"), ("{seed: 0}", "builds.seed")],
)
def test_another_choice_is_refused_by_its_field(tmp_path: Path, given: str, field: str) -> None:
    with pytest.raises(InputError) as caught:
        load_environment(write_environment(tmp_path, header=f"builds: {given}"))
    assert [problem.field for problem in caught.value.problems] == [field]


def loaded(folder: Path, builds: str) -> Environment:
    return load_environment(write_environment(folder, header=f"builds: {builds}"))


@pytest.mark.parametrize(
    ("given", "needs_engine", "built"),
    [
        ("{}", True, True),
        ("{}", False, False),
        ("{on_deploy: null}", True, True),
        ("{on_deploy: false}", True, False),
        ("{on_deploy: true}", False, True),
    ],
)
def test_a_deployment_builds_where_an_engine_is_needed_unless_the_file_decides(
    tmp_path: Path, given: str, needs_engine: bool, built: bool
) -> None:
    assert engines_built_on_deploy(loaded(tmp_path, given), needs_engine) is built


def test_unset_limits_fit_together(tmp_path: Path) -> None:
    builds = loaded(tmp_path, "{}").builds
    assert (builds.parallel_engines, builds.timeout_minutes, builds.engine_timeout_minutes) == (2, 480, 240)
    assert (builds.log_days, builds.image, builds.compute_type) == (
        90, "aws/codebuild/standard:7.0", "BUILD_GENERAL1_LARGE",
    )  # fmt: skip
    assert builds.network is None


def test_the_longest_limits_that_fit_are_taken(tmp_path: Path) -> None:
    assert loaded(tmp_path, "{timeout_minutes: 645, engine_timeout_minutes: 585}").builds.timeout_minutes == 645


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        ("{timeout_minutes: 646}", "timeout_minutes", ("646", "60", "721", "720", "645 or less")),
        ("{timeout_minutes: 120}", "engine_timeout_minutes", ("240", "300", "120", "60 or less")),
        ("{timeout_minutes: 60}", "engine_timeout_minutes", ("5 or more", "60 minutes more")),
        ("{engine_timeout_minutes: 421}", "engine_timeout_minutes", ("421", "481", "480", "420 or less")),
        ("{timeout_minutes: 4, engine_timeout_minutes: 5}", "timeout_minutes", ("5 or more",)),
        ("{parallel_engines: 0}", "parallel_engines", ("1 or more",)),
        ("{parallel_engines: 21}", "parallel_engines", ("20 or less",)),
        ("{log_days: 91}", "log_days", ("91", "90", "120")),
        ("{image: ubuntu}", "image", ("aws/codebuild/standard:7.0", "ECR")),
        ("{compute_type: BUILD_GENERAL1_TINY}", "compute_type", ("BUILD_GENERAL1_LARGE",)),
        ("{hub: {token_parameter: hub-token}}", "hub.token_parameter", ("hub-token", "/")),
        (
            "{hub: {token_parameter: /tritonstack/local/hub-token}}",
            "hub.token_parameter",
            ("/tritonstack/local/hub-token", "outside /tritonstack/"),
        ),
        ("{hub: {endpoint: 'http://hub.example.com'}}", "hub.endpoint", ("https://",)),
        ("{hub: {folder: hub}}", "hub.folder", ("/",)),
        ("{network: {vpc_id: v, subnet_ids: [subnet-1], security_group_ids: [sg-1]}}", "network.vpc_id", ("vpc-",)),
        ("{network: {vpc_id: vpc-1, subnet_ids: [], security_group_ids: [sg-1]}}", "network.subnet_ids", ("1",)),
        ("{network: {vpc_id: vpc-1, subnet_ids: [subnet-1]}}", "network.security_group_ids", ("nothing",)),
    ],
)
def test_what_cannot_be_is_refused_by_its_field_and_says_why(
    tmp_path: Path, given: str, field: str, words: tuple[str, ...]
) -> None:
    with pytest.raises(InputError) as caught:
        loaded(tmp_path, given)
    [problem] = [each for each in caught.value.problems if each.field == f"builds.{field}"]
    assert [word for word in words if word not in str(problem)] == []


@pytest.mark.parametrize(
    "image", ["aws/codebuild/amazonlinux-x86_64-standard:5.0", "123456789012.dkr.ecr.us-east-1.amazonaws.com/cpu:1"]
)
def test_the_image_is_one_of_codebuild_or_in_ecr(tmp_path: Path, image: str) -> None:
    assert loaded(tmp_path, f"{{image: '{image}'}}").builds.image == image


def test_builds_run_in_the_vpc_that_is_named(tmp_path: Path) -> None:
    text = "{network: {vpc_id: vpc-1a, subnet_ids: [subnet-1, subnet-2], security_group_ids: [sg-1]}}"
    network = loaded(tmp_path, text).builds.network
    assert network is not None
    assert (network.vpc_id, network.subnet_ids, network.security_group_ids) == (
        "vpc-1a", ("subnet-1", "subnet-2"), ("sg-1",),
    )  # fmt: skip
