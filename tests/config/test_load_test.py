"""``load_test``: what Inference Recommender takes, and what an endpoint's archives allow."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.config.environment_file import write_environment
from tests.e2e.project import environment_yaml
from tritonstack.config import LoadTestSettings, load_environment
from tritonstack.errors import InputError, Problem
from tritonstack.paths import repository_path

SINGLE = "mode: single-model"


def problems(folder: Path, load_test: str, *, endpoint: str = SINGLE) -> list[Problem]:
    with pytest.raises(InputError) as caught:
        load_environment(write_environment(folder, header=f"load_test: {load_test}", endpoint=endpoint))
    return list(caught.value.problems)


def loaded(folder: Path, load_test: str, *, endpoint: str = SINGLE) -> LoadTestSettings:
    found = load_environment(write_environment(folder, header=f"load_test: {load_test}", endpoint=endpoint)).load_test
    assert found is not None
    return found


def phase(users: int, per_minute: int, seconds: int) -> str:
    return f"{{initial_users: {users}, users_per_minute: {per_minute}, seconds: {seconds}}}"


def test_no_environment_has_load_tests_unless_its_file_says_so(tmp_path: Path) -> None:
    assert load_environment(write_environment(tmp_path)).load_test is None


def test_the_published_test_is_the_default(tmp_path: Path) -> None:
    recommender = loaded(tmp_path, "{}").recommender
    [phase] = recommender.phases
    assert (phase.initial_users, phase.users_per_minute, phase.seconds) == (2, 2, 1500)
    assert (recommender.max_invocations, recommender.latency.milliseconds) == (30_000, 500)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ("{initial_users: 0, users_per_minute: 1, seconds: 120}", "initial_users"),
        ("{initial_users: 4, users_per_minute: 1, seconds: 120}", "initial_users"),
        ("{initial_users: 1, users_per_minute: 4, seconds: 120}", "users_per_minute"),
        ("{initial_users: 1, users_per_minute: -1, seconds: 120}", "users_per_minute"),
        ("{initial_users: 1, users_per_minute: 0, seconds: 119}", "seconds"),
        ("{initial_users: 1, users_per_minute: 0, seconds: 3601}", "seconds"),
    ],
)
def test_a_phase_outside_the_service_s_limits_is_refused_by_its_field(tmp_path: Path, given: str, field: str) -> None:
    [problem] = problems(tmp_path, f"{{recommender: {{phases: [{given}]}}}}")
    assert problem.field == f"load_test.recommender.phases[0].{field}"


def test_the_limits_themselves_are_taken(tmp_path: Path) -> None:
    least, most = (1, 0, 120), (3, 3, 3600)
    phases = f"[{phase(*least)}, {phase(*most)}]"
    assert len(loaded(tmp_path, f"{{recommender: {{phases: {phases}}}}}").recommender.phases) == 2


def test_phases_longer_than_their_job_are_refused(tmp_path: Path) -> None:
    phases = (
        "[{initial_users: 1, users_per_minute: 1, seconds: 400}, {initial_users: 1, users_per_minute: 1, seconds: 400}]"
    )
    [problem] = problems(tmp_path, f"{{recommender: {{duration_seconds: 600, phases: {phases}}}}}")
    assert (problem.field, problem.found) == ("load_test.recommender.phases", "800 seconds together")


def test_more_than_ten_instance_types_are_refused(tmp_path: Path) -> None:
    types = ", ".join(["ml.g4dn.xlarge"] * 11)
    [problem] = problems(tmp_path, f"{{recommender: {{instance_types: [{types}]}}}}")
    assert problem.field == "load_test.recommender.instance_types"


def test_an_instance_type_with_another_gpu_is_refused_for_archives_are_of_one(tmp_path: Path) -> None:
    [problem] = problems(tmp_path, "{recommender: {instance_types: [ml.g4dn.2xlarge, ml.g5.xlarge]}}")
    assert problem.field == "load_test.recommender.instance_types[1]"
    assert "digits" in problem.found


def test_of_multi_model_endpoints_no_instance_type_is_compared(tmp_path: Path) -> None:
    assert loaded(tmp_path, "{recommender: {instance_types: [ml.g5.xlarge]}}", endpoint="").recommender.instance_types


def test_an_unknown_type_a_repeated_one_and_an_unknown_endpoint_are_all_told(tmp_path: Path) -> None:
    types = "[ml.g4dn.xlarge, ml.g4dn.xlarge, ml.nine.large]"
    found = problems(tmp_path, f"{{endpoints: [nobody], recommender: {{instance_types: {types}}}}}")
    assert sorted(str(each.field) for each in found) == [
        "load_test.endpoints[0]",
        "load_test.recommender.instance_types[1]",
        "load_test.recommender.instance_types[2]",
    ]


@pytest.mark.parametrize(
    ("gate", "field"), [("{}", "load_test.gate"), ("{usd_per_million: 1, per_minute: 5}", "load_test.gate.per_minute")]
)
def test_a_gate_that_holds_nothing_is_refused(tmp_path: Path, gate: str, field: str) -> None:
    assert [each.field for each in problems(tmp_path, f"{{gate: {gate}}}")] == [field]


def test_more_jobs_than_one_test_has_names_for_are_refused_before_anything_is_deployed(tmp_path: Path) -> None:
    def told(count: int, recommender: str) -> list[str]:
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
    assert told(50, two) == ["load_test.recommender: 100 jobs: 2 for each of 50 single-model endpoints"]
    seldom = "poll_seconds: 400, at_once: 40"
    assert told(49, f"{two}, {seldom}") == []
    assert told(34, f"{two}, job: both") == ["load_test.recommender: 102 jobs: 3 for each of 34 single-model endpoints"]
    assert told(60, f"{two}, job: default, {seldom}") == []


CLOSED = "network: {created: {cidr: 10.20.0.0/16, zones: [us-east-1a, us-east-1b]}, s3_prefix_list_id: pl-1a}"


def of_network(folder: Path, load_test: str, *, endpoint: str, builds: str = "{on_deploy: false}") -> list[Problem]:
    header = f"load_test: {load_test}\n{CLOSED}\nbuilds: {builds}"
    try:
        load_environment(write_environment(folder, header=header, endpoint=endpoint))
    except InputError as error:
        return list(error.problems)
    return []


def test_a_build_that_fetches_packages_in_a_network_without_a_way_out_is_refused(tmp_path: Path) -> None:
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
