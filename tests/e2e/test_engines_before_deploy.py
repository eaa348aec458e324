"""TensorRT engines are built before the deployment that needs them, each on the GPU that serves it (here stand-ins)."""

from __future__ import annotations

import pytest

from tests.e2e.engines import A10G, T4, EngineProject
from tests.e2e.project import Project
from tritonstack.naming import ArchiveName, release_parameter
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def engines(project: Project, local_aws: LocalAws) -> EngineProject:
    """Two endpoints on two GPUs that serve one model in TensorRT, deployed from nothing."""
    made = EngineProject(project, local_aws, "engines")
    made.add_model("tiny-engine")
    made.add_model("second-engine", seed=8)
    made.write({"on-a10g": (A10G, ["tiny-engine", "adds-00"]), "on-t4": (T4, ["tiny-engine", "second-engine"])})
    made.deploy()
    return made


def test_what_was_missing_is_built_where_its_gpu_is_and_answers(engines: EngineProject) -> None:
    tiny = ArchiveName(model="tiny-engine", digest=engines.record("on-a10g", "tiny-engine"))
    assert engines.has("on-a10g", A10G, tiny)
    assert engines.has("on-t4", T4, tiny)
    assert [build["buildStatus"] for build in engines.builds("engine-project-name")] == ["SUCCEEDED"]
    assert sorted(job["ProcessingJobStatus"] for job in engines.processing_jobs()) == ["Completed", "Completed"]
    answer = engines.invoke("on-a10g", "tiny-engine")
    assert answer == pytest.approx(engines.invoke("on-t4", "tiny-engine"), abs=1e-6)
    assert answer != pytest.approx(engines.invoke("on-t4", "second-engine"), abs=1e-3)
    assert engines.keys("staging/jobs/") == set(), "nothing is left between the phases"


def test_what_no_stack_makes_carries_the_environments_tags(engines: EngineProject) -> None:
    """Processing jobs are made by a build, release records by a function: CloudFormation's tags reach neither."""
    wanted = {"Key": "tritonstack:environment", "Value": engines.name}
    for job in engines.processing_jobs():
        tags = engines.aws.client("sagemaker").list_tags(ResourceArn=job["ProcessingJobArn"])["Tags"]
        assert wanted in tags
    record = release_parameter(environment=engines.name, endpoint="on-t4", model="tiny-engine")
    found = engines.aws.client("ssm").list_tags_for_resource(ResourceType="Parameter", ResourceId=record)["TagList"]
    assert wanted in found
    assert {"Key": "tritonstack:endpoint", "Value": "on-t4"} in found


def test_the_manifest_tells_of_plan_gpu_and_proof_and_that_a_stand_in_built_it(engines: EngineProject) -> None:
    tiny = ArchiveName(model="tiny-engine", digest=engines.record("on-a10g", "tiny-engine"))
    for endpoint, platform, capability in (("on-a10g", A10G, "8.6"), ("on-t4", T4, "7.5")):
        manifest = engines.manifest(endpoint, platform, tiny)
        engine = manifest["engines"]["tiny-engine"]
        assert engine["compute_capability"] == capability
        assert engine["stand_in"] is True
        assert manifest["plan"] is False, "a stand-in's file must never read as a plan"


def test_a_deployment_without_changes_starts_no_build_and_a_changed_recipe_starts_one(
    engines: EngineProject,
) -> None:
    def work() -> tuple[int, int, int]:
        return len(engines.builds()), len(engines.builds("engine-project-name")), len(engines.processing_jobs())

    before = work()
    engines.deploy()
    assert work() == before
    old = engines.record("on-t4", "second-engine")
    engines.add_model("second-engine", seed=9)
    engines.deploy()
    assert work() == (before[0] + 1, before[1], before[2] + 1)
    assert engines.record("on-t4", "second-engine") != old
