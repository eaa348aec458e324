"""A deployment asks what it changed for its samples before any record moves: with the real Triton."""

from __future__ import annotations

import re

import pytest

from tests.e2e.deployments import eventually
from tests.e2e.project import ON_THE_ENDPOINT, Project
from tests.e2e.verification_project import CheckedProject, checked_project
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def checked(project: Project, local_aws: LocalAws) -> CheckedProject:
    """An environment of its own, deployed with a model that answers rightly."""
    checked = checked_project(project, local_aws, name="verified")
    checked.deploy()
    return checked


def test_after_a_good_deployment_the_model_is_warm_and_verify_finds_nothing_wrong(
    project: Project, checked: CheckedProject
) -> None:
    assert checked.loaded == {checked.target}, "before any call but the verification's"
    printed = project.run("verify", "-e", checked.name, "--local").stdout
    assert "as expected" in printed
    assert "loads the model at its first request" in printed
    assert "rollout.slowest_load_seconds: " in printed

    def has_waited() -> bool:
        """The wheel's server takes a second for each load: CloudWatch has it, when its minute is told."""
        waited = re.search(
            r"checked: a call waited ([0-9.]+) s at most", project.run("verify", "-e", checked.name, "--local").stdout
        )
        return waited is not None and float(waited[1]) > 1.0

    eventually(has_waited)


def test_a_wrong_response_on_the_server_fails_the_deployment_and_rolls_back_record_and_config(
    project: Project, checked: CheckedProject
) -> None:
    before, config = checked.target, checked.config
    checked.write_model(f"x * (3 if {ON_THE_ENDPOINT} else 2)")
    checked.write_environment(more=", container: {shm_default_bytes: 33554432}")
    said = checked.deploy(expect=1).stderr
    assert f"model {checked.model}." in said
    assert "answers its sample request wrongly: output y[0, 0]: 6 expected, 9 found" in said
    assert "Traceback" not in said
    assert (checked.target, checked.config, checked.stack_status) == (before, config, "UPDATE_ROLLBACK_COMPLETE")
    assert checked.answer(5.0) == 10.0
    assert "as expected" in project.run("verify", "-e", checked.name, "--local").stdout
    checked.write_model("x + x")
    checked.deploy()
    assert checked.target != before
    assert checked.config != config
    assert (checked.stack_status, checked.loaded, checked.answer(5.0)) == ("UPDATE_COMPLETE", {checked.target}, 10.0)


def test_a_first_deployment_that_fails_leaves_no_endpoint_and_no_record(project: Project, local_aws: LocalAws) -> None:
    checked = checked_project(project, local_aws, name="unverified")
    checked.write_model(f"x * (3 if {ON_THE_ENDPOINT} else 2)")
    assert "6 expected, 9 found" in checked.deploy(expect=1).stderr
    endpoints = local_aws.client("sagemaker").list_endpoints(NameContains="unverified")["Endpoints"]
    assert [one for one in endpoints if one["EndpointStatus"] != "Deleting"] == []
    path = "/tritonstack/unverified/checked/"
    assert local_aws.client("ssm").get_parameters_by_path(Path=path)["Parameters"] == []
