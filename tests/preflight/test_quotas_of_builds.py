"""Quotas of what builds engines: processing jobs, CodeBuild's GPU and CPU machines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.engines.test_plan import ENGINE
from tests.preflight.fakes import DENIED, Answer, pages
from tests.preflight.subjects import results_of, served
from tests.preflight.test_endpoint_quota import quota
from tritonstack.engines.order import Served
from tritonstack.preflight.quotas import check_codebuild_quota, check_processing_quota

T4, A10G = "ml.g4dn.xlarge", "BUILD_GENERAL1_SMALL LINUX_GPU_CONTAINER"
CPU = "BUILD_GENERAL1_LARGE LINUX_CONTAINER"


def with_engine(folder: Path, *endpoints: dict[str, Any], **environment: Any) -> Served:
    """As ``served``, with a TensorRT model."""
    served(folder)
    config = folder / "model_repos/double/double/config.pbtxt"
    recipe = folder / "model_repos/double/recipe.yaml"
    tensorrt = config.read_text().replace('backend: "python"', 'platform: "tensorrt_plan"')
    text = recipe.read_text().replace("kind: python\n", "") + ENGINE
    return served(folder, *endpoints, files={config: tensorrt, recipe: text}, **environment)


def job(name: str, instance_type: str, count: int) -> Answer:
    """DescribeProcessingJob of a job."""
    return {
        "ProcessingJobName": name,
        "ProcessingResources": {
            "ClusterConfig": {"InstanceType": instance_type, "InstanceCount": count, "VolumeSizeInGB": 1}
        },
    }


def jobs_account(of_type: float, of_all: float = 20, *, running: int = 0) -> dict[str, Answer]:
    """An account with these quotas of processing jobs, and one job of so many instances."""
    return {
        "service-quotas.ListServiceQuotas": pages(
            "Quotas",
            [quota(f"{T4} for processing job usage", of_type)],
            [quota("Number of instances across all processing jobs", of_all)],
        ),
        "sagemaker.ListProcessingJobs": pages(
            "ProcessingJobSummaries", [{"ProcessingJobName": "theirs"}] if running else []
        ),
        "sagemaker.DescribeProcessingJob": job("theirs", T4, running),
    }


def builds_account(gpu: float, cpu: float = 5, *, running: int = 0) -> dict[str, Answer]:
    """An account with these quotas of CodeBuild, in which so many GPU builds run."""
    builds = [
        {"buildStatus": status, "environment": {"type": kind, "computeType": "BUILD_GENERAL1_SMALL", "image": "i",
                                                "environmentVariables": []}}
        for status, kind in [
            *([("IN_PROGRESS", "LINUX_GPU_CONTAINER")] * running),
            ("SUCCEEDED", "LINUX_GPU_CONTAINER"),
            ("IN_PROGRESS", "LINUX_CONTAINER"),
        ]
    ]  # fmt: skip
    return {
        "service-quotas.ListServiceQuotas": pages(
            "Quotas",
            [quota("Concurrently running builds for Linux GPU Small environment", gpu, "L-F1FE1B52")],
            [quota("Concurrently running builds for Linux/Large environment", cpu)],
        ),
        "codebuild.ListBuilds": {"ids": ["p:1"]},
        "codebuild.BatchGetBuilds": {"builds": builds},
    }


def test_an_environment_without_engines_needs_no_quota_of_builds(tmp_path: Path) -> None:
    assert results_of(check_processing_quota, served(tmp_path), {}) == {}
    assert results_of(check_codebuild_quota, served(tmp_path), {}) == {}


def test_jobs_that_run_already_count(tmp_path: Path) -> None:
    what = with_engine(tmp_path, {"instance_type": T4})
    assert results_of(check_processing_quota, what, jobs_account(3, running=2))[T4].outcome == "passes"
    short = results_of(check_processing_quota, what, jobs_account(2, running=2))[T4]
    assert short.outcome == "fails"
    assert short.needed == "3 instances: 1 for engines at once + 2 of jobs that run now"


def test_a_quota_of_all_processing_jobs_counts(tmp_path: Path) -> None:
    what = with_engine(tmp_path, {"instance_type": T4})
    found = results_of(check_processing_quota, what, jobs_account(5, of_all=0))
    assert {name: result.outcome for name, result in found.items()} == {T4: "passes", "all instance types": "fails"}


def test_a_new_accounts_gpu_quota_of_zero_fails_and_says_how_to_ask(tmp_path: Path) -> None:
    what = with_engine(tmp_path, {"instance_type": "ml.g5.xlarge"})
    found = results_of(check_codebuild_quota, what, builds_account(0))
    assert found[A10G].outcome == "fails"
    assert "--service-code codebuild --quota-code L-F1FE1B52 --desired-value 1" in found[A10G].advice
    assert found[CPU].outcome == "passes"


def test_gpu_builds_that_run_count_and_others_do_not(tmp_path: Path) -> None:
    what = with_engine(tmp_path, {"instance_type": "ml.g5.xlarge"})
    assert results_of(check_codebuild_quota, what, builds_account(3, running=2))[A10G].outcome == "passes"
    assert results_of(check_codebuild_quota, what, builds_account(2, running=2))[A10G].outcome == "fails"


def test_a_cpu_quota_of_zero_fails_too(tmp_path: Path) -> None:
    what = with_engine(tmp_path, {"instance_type": "ml.g5.xlarge"})
    assert results_of(check_codebuild_quota, what, builds_account(3, cpu=0))[CPU].outcome == "fails"


def test_refused_lists_are_unknown(tmp_path: Path) -> None:
    what = with_engine(tmp_path, {"instance_type": "ml.g5.xlarge"}, {"instance_type": T4})
    of_builds = results_of(check_codebuild_quota, what, builds_account(9) | {"codebuild.ListBuilds": DENIED})
    of_jobs = results_of(check_processing_quota, what, jobs_account(9) | {"sagemaker.ListProcessingJobs": DENIED})
    assert {result.permission for result in of_builds.values()} == {"codebuild:ListBuilds"}
    assert {result.permission for result in of_jobs.values()} == {"sagemaker:ListProcessingJobs"}
    assert {result.outcome for result in (*of_builds.values(), *of_jobs.values())} == {"unknown"}
