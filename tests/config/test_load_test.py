"""``load_test``: its checks, and the length of a test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from stacks.load_test import definition
from tests.config.environment_file import problems_of, write_environment
from tests.e2e.project import environment_yaml
from tritonstack.config import LoadTestSettings, load_environment
from tritonstack.config.load_test import (
    LONGEST_TEST,
)
from tritonstack.errors import InputError, Problem
from tritonstack.paths import REPOSITORY, repository_path

SINGLE = "mode: single-model"


def loaded(folder: Path, load_test: str, *, endpoint: str = SINGLE) -> LoadTestSettings:
    found = load_environment(write_environment(folder, header=f"load_test: {load_test}", endpoint=endpoint)).load_test
    assert found is not None
    return found


def test_the_published_test_is_the_default(tmp_path: Path) -> None:
    recommender = loaded(tmp_path, "{}").recommender
    [phase] = recommender.phases
    assert (phase.initial_users, phase.users_per_minute, phase.seconds) == (2, 2, 1500)
    assert (recommender.max_invocations, recommender.latency.milliseconds) == (30_000, 500)


def test_of_multi_model_endpoints_no_instance_type_is_compared(tmp_path: Path) -> None:
    assert loaded(tmp_path, "{recommender: {instance_types: [ml.g5.xlarge]}}", endpoint="").recommender.instance_types


def test_a_build_measures_the_named_models_in_the_endpoints_order_else_all() -> None:
    """Environment dev has the post's benchmark: ResNet-50 in three formats, one caller, JSON."""
    dev = load_environment(REPOSITORY / "environments" / "dev.yaml")
    assert dev.load_test is not None
    [images] = dev.tested_endpoints
    assert dev.load_test.benched_models(images) == ("resnet50-torchscript", "resnet50-onnx", "resnet50-tensorrt")
    assert (dev.load_test.bench.users, dev.load_test.bench.payload_format) == ((1,), "json")
    assert LoadTestSettings().benched_models(images) == tuple(images.models)
    samples = [REPOSITORY / "model_repos" / name / "sample/image.jpg" for name in dev.load_test.benched_models(images)]
    assert len({path.read_bytes() for path in samples}) == 1  # one input


def test_an_unknown_type_a_repeated_one_and_an_unknown_endpoint_are_all_reported(tmp_path: Path) -> None:
    types = "[ml.g4dn.xlarge, ml.g4dn.xlarge, ml.nine.large]"
    header = f"load_test: {{endpoints: [nobody], recommender: {{instance_types: {types}}}}}"
    found = problems_of(tmp_path, header=header, endpoint=SINGLE)
    assert sorted(str(each.field) for each in found) == [
        "load_test.endpoints[0]",
        "load_test.recommender.instance_types[1]",
        "load_test.recommender.instance_types[2]",
    ]


def test_more_jobs_than_one_test_has_names_for_are_refused_before_anything_is_deployed(tmp_path: Path) -> None:
    def refusals(count: int, recommender: str) -> list[str]:
        endpoint = f'{SINGLE}, release: "24.09", instance_type: ml.g4dn.xlarge, models: [m]'
        text = environment_yaml(name="many", endpoints=[f"{{name: e{number}, {endpoint}}}" for number in range(count)])
        file = tmp_path / "many.yaml"
        file.write_text(f"{text}load_test: {{recommender: {{{recommender}}}}}\n")
        try:
            load_environment(file)
        except InputError as error:
            return [f"{each.field}: {each.found}" for each in error.problems]
        return []

    two = "instance_types: [ml.g4dn.xlarge, ml.g4dn.2xlarge]"
    assert refusals(17, two) == ["load_test.recommender: 34 jobs: 2 for each of 17 single-model endpoints"]
    assert refusals(16, two) == []
    assert refusals(11, f"{two}, job: both") == [
        "load_test.recommender: 33 jobs: 3 for each of 11 single-model endpoints"
    ]
    assert refusals(32, f"{two}, job: default") == []


CLOSED = "network: {created: {cidr: 10.20.0.0/16, zones: [us-east-1a, us-east-1b]}, s3_prefix_list_id: pl-1a}"


def of_network(folder: Path, load_test: str, *, endpoint: str, builds: str = "{on_deploy: false}") -> list[Problem]:
    return problems_of(folder, header=f"load_test: {load_test}\n{CLOSED}\nbuilds: {builds}", endpoint=endpoint)


def test_a_build_that_fetches_packages_in_a_network_without_internet_access_is_refused(tmp_path: Path) -> None:
    [problem] = of_network(tmp_path, "{}", endpoint="")
    assert problem.field == "load_test.bench.image"
    assert "outside_network" in problem.allowed
    own = "{bench: {image: '123456789012.dkr.ecr.us-east-1.amazonaws.com/cpu:1'}}"
    assert of_network(tmp_path, own, endpoint="") == []
    assert of_network(tmp_path, "{}", endpoint="", builds="{on_deploy: false, outside_network: true}") == []
    assert of_network(tmp_path, "{}", endpoint=SINGLE) == [], "no build calls a single-model endpoint"


def test_the_documented_settings_are_taken(tmp_path: Path) -> None:
    [block] = re.findall(r"```yaml\n(.*?)```", repository_path("docs/load-tests.md").read_text(), re.DOTALL)
    given = yaml.safe_load(block)["load_test"]
    found = loaded(tmp_path, yaml.safe_dump(given, default_flow_style=True, width=10_000).strip())
    assert found.recommender.instance_types == tuple(given["recommender"]["instance_types"])
    assert found.gate is not None
    assert found.gate.usd_per_million == 25


def test_the_time_is_that_after_which_the_state_machine_ends() -> None:
    assert definition(at_once=1, partition="aws")["TimeoutSeconds"] == LONGEST_TEST


PARAMETERS = "load_test.recommender.environment_parameters"


@pytest.mark.parametrize(
    ("recommender", "field", "found"),
    [
        ("{task: BINARY_CLASSIFICATION}", "load_test.recommender.task", "BINARY_CLASSIFICATION"),
        ("{framework: ONNX}", "load_test.recommender.framework", "ONNX"),
        ("{framework_version: '25'}", "load_test.recommender.framework_version", "25"),
        ("{model_package_group: Bert_large}", "load_test.recommender.model_package_group", "Bert_large"),
        ("{environment_parameters: {A: ['1', '2', '3', '4']}}", f"{PARAMETERS}.A", ""),
        ("{environment_parameters: {A: ['1', '1']}}", f"{PARAMETERS}.A", "1, 1: a value twice"),
        ("{environment_parameters: {a-b: ['1']}}", PARAMETERS, "a-b"),
        ("{environment_parameters: {A: ['1']}, job: default}", PARAMETERS, "parameters with job: default"),
        (
            "{environment_parameters: {A: ['1', '2', '3'], B: ['1', '2', '3'], C: ['1', '2']}}",
            PARAMETERS,
            "18 combinations, each a load test of every job",
        ),
    ],
)
def test_what_inference_recommender_would_refuse_is_refused(
    tmp_path: Path, recommender: str, field: str, found: str
) -> None:
    [problem] = problems_of(tmp_path, header=f"load_test: {{recommender: {recommender}}}", endpoint=SINGLE)
    assert str(problem.field).startswith(field)
    assert found in problem.found


@pytest.mark.parametrize(
    ("endpoint", "network", "found"),
    [("", False, "true, and .* multi-model"), (SINGLE, True, "true in a network")],
)
def test_archives_alone_are_of_single_model_endpoints_without_a_network(
    tmp_path: Path, *, endpoint: str, network: bool, found: str
) -> None:
    header = "load_test: {archives_only: true}" + (f"\n{CLOSED}\nbuilds: {{on_deploy: false}}" if network else "")
    problems = [f"{each.field}: {each.found}" for each in problems_of(tmp_path, header=header, endpoint=endpoint)]
    assert [each for each in problems if re.match(f"load_test.archives_only: {found}", each)], problems


def test_combinations_are_the_product_of_the_values(tmp_path: Path) -> None:
    found = loaded(tmp_path, "{recommender: {environment_parameters: {A: ['1', '2'], B: ['1', '2', '3']}}}")
    assert found.recommender.combinations == 6
    assert loaded(tmp_path, "{}").recommender.combinations == 1
