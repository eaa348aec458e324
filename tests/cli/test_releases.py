"""``tritonstack verify``: sound endpoints and models, and each finding."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from botocore.utils import parse_to_aware_datetime
from click.testing import CliRunner, Result

from tests.config.environment_file import write_environment
from tests.fake_aws import ARTIFACTS, AwsError, FakeAws, release_set
from tests.releases.deployment import manifest
from tritonstack.cli import releases
from tritonstack.client.errors import ModelFailedError
from tritonstack.deployed.left import LeftEntry
from tritonstack.errors import InputError
from tritonstack.models.manifest import Manifest, SampleEntry, TensorEntry

A, B = "a" * 16, "b" * 16
CONFIG = "local-serving-digits-EndpointConfig-1AB"
BACK = "  do: aws sagemaker update-endpoint --endpoint-name local-digits --endpoint-config-name"
STUCK = "which can no longer be changed: each change fails, and ends in UPDATE_ROLLBACK_FAILED"
ANEW = "  do: cdk destroy 'local/serving-digits', then cdk deploy 'local/serving-digits'; archives stay in the bucket"
TENSOR = {"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1.0, 2.0]}


def sampled(model: str, digest: str) -> Manifest:
    """A manifest whose sample has twice its input as response."""
    entry = TensorEntry(name="x", datatype="FP32", shape=(1, 2))
    made = manifest(model, digest, b"archive")
    sample = SampleEntry(
        file="request.json",
        body={"inputs": [TENSOR]},
        answer={"outputs": [{**TENSOR, "name": "y", "data": [2.0, 4.0]}]},
        tolerance=0.01,
    )
    return made.model_copy(update={"sample": sample, "model": made.model.model_copy(update={"inputs": (entry,)})})


RECORDS = {("digits", "bert"): A, ("digits", "resnet"): B}


class World(FakeAws):
    """An account with records, a stack, a bucket and an endpoint; and the model client of that endpoint."""

    def __init__(self) -> None:
        super().__init__(parameters={"/tritonstack/local/_artifacts/bucket-name": ARTIFACTS})
        for (endpoint, model), digest in RECORDS.items():
            self.parameters[f"/tritonstack/local/{endpoint}/{model}"] = digest
            self.artifacts[f"endpoints/{endpoint}/24.09-t4/{model}.{digest}.tar.gz"] = b"archive"
            text = sampled(model, digest).to_json()
            self.artifacts[f"manifests/{endpoint}/24.09-t4/{model}.{digest}.json"] = text.encode()
        self.endpoint: dict[str, Any] | None = {
            "EndpointStatus": "InService",
            "EndpointConfigName": CONFIG,
            "ProductionVariants": [{"VariantName": "g4dn-xlarge", "CurrentInstanceCount": 1}],
        }
        self.loads: dict[str, list[float]] = {}
        self.mode = "MultiModel"
        self.variants: dict[str, str] = {}  # model → its variant
        self.status = "UPDATE_COMPLETE"  # of the stack
        self.scaled = False
        self.targets: list[str] = []
        self.called: list[str] = []
        self.left: tuple[LeftEntry, ...] | None = ()
        self.answer: Callable[[str, Any], Any] = lambda _name, x: 2 * x

    def _GetObject(self, Bucket: str, Key: str) -> dict[str, Any]:
        """With the release set of the records as they are."""
        names = [name for name in self.parameters if name.startswith("/tritonstack/local/digits/")]
        models = {name.rpartition("/")[2]: self.parameters[name] for name in names}
        self.buckets["staging"]["set"] = release_set(models)
        return super()._GetObject(Bucket=Bucket, Key=Key)

    def _DescribeStacks(self, StackName: str) -> dict[str, Any]:
        if StackName != "local-serving-digits":
            raise AwsError("ValidationError", f"Stack with id {StackName} does not exist")
        return {"Stacks": [{"StackStatus": self.status, "StackName": StackName, "CreationTime": 0}]}

    def _GetTemplate(self, **_: Any) -> dict[str, Any]:
        stored = {"ReleaseSetBucket": "staging", "ReleaseSetKey": "set", "ArchivePrefix": "endpoints/digits/24.09-t4/"}
        resources: dict[str, Any] = {
            "Records": {"Type": "Custom::ReleaseRecords", "Properties": stored},
            "Model": {"Type": "AWS::SageMaker::Model", "Properties": {"PrimaryContainer": {"Mode": self.mode}}},
        }
        if self.scaled:
            limits = {"MinCapacity": 1, "MaxCapacity": 4}
            resources["Target"] = {"Type": "AWS::ApplicationAutoScaling::ScalableTarget", "Properties": limits}
        if self.variants:
            verified = {"Variants": json.dumps(self.variants)}
            resources |= {
                "Verified": {"Type": "Custom::VerifiedEndpoint", "Properties": verified},
                "Other": resources["Model"],
            }
        return {"TemplateBody": json.dumps({"Resources": resources})}

    def _DescribeStackResources(self, **_: Any) -> dict[str, Any]:
        arn = f"arn:aws:sagemaker:us-east-1:123456789012:endpoint-config/{CONFIG.lower()}"
        config = {"ResourceType": "AWS::SageMaker::EndpointConfig", "PhysicalResourceId": arn}
        state = {"LogicalResourceId": "Config", "ResourceStatus": "CREATE_COMPLETE", "Timestamp": 0}
        return {"StackResources": [{**config, **state}]}

    def _DescribeEndpoint(self, EndpointName: str) -> dict[str, Any]:
        assert EndpointName == "local-digits"
        if self.endpoint is None:
            raise AwsError("ValidationException", "Could not find endpoint")
        return self.endpoint

    def _DescribeScalableTargets(self, ServiceNamespace: str, ResourceIds: list[str]) -> dict[str, Any]:
        assert (ServiceNamespace, ResourceIds) == ("sagemaker", ["endpoint/local-digits/variant/g4dn-xlarge"])
        return {"ScalableTargets": [{"ResourceId": one} for one in self.targets]}

    def _GetMetricData(
        self, MetricDataQueries: Any, StartTime: Any, EndTime: Any, NextToken: str = "0"
    ) -> dict[str, Any]:
        """A page for each query."""
        start, end = (parse_to_aware_datetime(each) for each in (StartTime, EndTime))
        assert end - start > timedelta(days=14)
        at = int(NextToken)
        query = MetricDataQueries[at]
        stat = query["MetricStat"]
        dimensions = {one["Name"]: one["Value"] for one in stat["Metric"]["Dimensions"]}
        assert dimensions == {"EndpointName": "local-digits", "VariantName": "g4dn-xlarge"}
        assert (stat["Metric"]["Namespace"], stat["Stat"]) == ("AWS/SageMaker", "Maximum")
        values = self.loads.get(stat["Metric"]["MetricName"], [])
        more = {"NextToken": str(at + 1)} if at + 1 < len(MetricDataQueries) else {}
        return {"MetricDataResults": [{"Id": query["Id"], "Values": values}], **more}

    def streams(self, _name: str) -> bool:
        """As ModelClient's: its endpoint infers."""
        return False

    def invoke(self, name: str, inputs: Any, *, payload_format: str, variant: str | None) -> Any:
        """As ModelClient's."""
        assert payload_format == "binary"
        self.called.append(name if variant is None else f"{name} on {variant}")
        outputs = {"y": self.answer(name, inputs["x"])}
        return SimpleNamespace(outputs=outputs, milliseconds=12.3, total_milliseconds=12.3)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """The account that the command finds."""
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")
    (tmp_path / "environments").mkdir()
    write_environment(tmp_path / "environments")
    world = World()
    monkeypatch.setattr(releases, "session_of", lambda _settings, **_: world)
    monkeypatch.setattr(releases, "ModelClient", lambda **_: world)
    monkeypatch.setattr(releases, "note_left", lambda *_, **__: world.left)
    return world


def run(*arguments: str) -> Result:
    return CliRunner().invoke(releases.verify_command, arguments, catch_exceptions=False, standalone_mode=False)


def document(*arguments: str) -> Any:
    return json.loads(run("--json", *arguments).stdout)


def test_where_all_is_well_each_model_is_shown_with_its_difference_and_what_stays_cold(world: World) -> None:
    world.answer = lambda _name, x: 2 * x + np.float32(0.005)
    result = run()
    assert result.return_value == 0
    for words in ("bert", "resnet", A, B, "as expected", "0.005", "12", CONFIG, "loads the model at its first request"):
        assert words in result.stdout
    assert "2 of 2 models respond as expected" in result.stderr
    assert world.called == [f"digits/bert.{A}.tar.gz", f"digits/resnet.{B}.tar.gz"]


def test_a_single_model_endpoint_is_called_by_its_models_name(world: World) -> None:
    world.mode = "SingleModel"
    del world.parameters["/tritonstack/local/digits/resnet"]
    result = run()
    assert (result.return_value, world.called) == (0, ["digits/bert"])
    assert "slowest_load_seconds" not in result.stdout, "it has no loads to tell"


def test_each_of_two_variants_answers_for_the_model_that_it_serves(world: World) -> None:
    world.mode, world.variants = "SingleModel", {"bert": "current-g4dn-xlarge", "resnet": "candidate-g4dn-xlarge"}
    assert run().return_value == 0
    assert world.called == ["digits/bert on current-g4dn-xlarge", "digits/resnet on candidate-g4dn-xlarge"]


def test_named_models_alone_are_called_and_one_without_a_record_is_refused(world: World) -> None:
    assert run("resnet").return_value == 0
    assert world.called == [f"digits/resnet.{B}.tar.gz"]
    with pytest.raises(InputError, match="nothing"):
        run("nothing")


def test_a_wrong_answer_ends_with_1_and_is_told_with_its_size(world: World) -> None:
    world.answer = lambda name, x: 2 * x + np.array([[0, 1 if "bert" in name else 0]], np.float32)
    result = run()
    assert result.return_value == 1
    said = "digits/bert: bert: tensor y[0, 1]: 4 expected, 5 found: differs by 1 from the expected response"
    assert said in result.stdout
    assert "1 of 2 models respond as expected" in result.stderr


def test_a_model_that_fails_does_not_keep_the_others_from_being_called(world: World) -> None:
    place = "local-digits (bert) after 4 attempts"

    def answer(name: str, x: Any) -> Any:
        if "bert" in name:
            raise ModelFailedError(place=place, status=507, container_message="CUDA out of memory", log_stream_arn="")
        return 2 * x

    world.answer = answer
    found = document()
    assert found["sound"] is False
    [bert, resnet] = found["endpoints"][0]["models"]
    assert "507: CUDA out of memory" in bert["problem"]
    assert (resnet["problem"], resnet["difference"]) == ("", 0.0)


@pytest.mark.parametrize("kind", ["endpoints", "manifests"])
def test_a_missing_object_is_named(world: World, kind: str) -> None:
    [key] = [key for key in world.artifacts if key.startswith(f"{kind}/digits/24.09-t4/bert")]
    del world.artifacts[key]
    result = run()
    assert result.return_value == 1
    assert f"missing: s3://artifacts/{key}" in result.stdout


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"EndpointConfigName": "another"},
            f"it runs config another, and its stack says {CONFIG.lower()}\n{BACK} {CONFIG.lower()}",
        ),
        ({"EndpointStatus": "Failed", "FailureReason": "no capacity"}, f"it is Failed: no capacity\n{ANEW}"),
        (None, f"there is no such endpoint at SageMaker: it was deleted outside of its stack, {STUCK}\n{ANEW}"),
    ],
)
def test_an_endpoint_that_runs_something_else_or_is_gone_ends_with_1_and_the_way_out(
    world: World, changes: Any, said: str
) -> None:
    assert world.endpoint is not None
    world.endpoint = None if changes is None else world.endpoint | changes
    result = run()
    assert result.return_value == 1
    assert f"digits: {said}" in result.stdout
    assert "2 models" not in result.stdout


def test_after_a_failed_rollback_verify_names_the_page_and_the_target_to_register(world: World) -> None:
    world.status, world.scaled = "UPDATE_ROLLBACK_FAILED", True
    result = run()
    assert result.return_value == 1
    assert "its stack local-serving-digits is UPDATE_ROLLBACK_FAILED, which takes no deployment" in result.stdout
    assert "do: tritonstack docs troubleshooting#a-rollback-that-failed" in result.stdout
    assert (
        "do: aws application-autoscaling register-scalable-target --service-namespace sagemaker --scalable-dimension "
        "sagemaker:variant:DesiredInstanceCount --resource-id endpoint/local-digits/variant/g4dn-xlarge "
        "--min-capacity 1 --max-capacity 4"
    ) in result.stdout
    assert "do:" not in result.stderr, "a step is a line"


@pytest.mark.parametrize("status", ["UPDATE_COMPLETE", "UPDATE_IN_PROGRESS"])
def test_a_target_that_is_there_or_on_its_way_is_no_finding(world: World, status: str) -> None:
    world.status, world.scaled = status, True
    if status == "UPDATE_COMPLETE":
        world.targets = ["endpoint/local-digits/variant/g4dn-xlarge"]
    assert run().return_value == 0


def test_who_may_not_read_scalable_targets_verifies_the_rest(world: World) -> None:
    world.scaled, world.refused = True, {"DescribeScalableTargets": "AccessDeniedException"}
    assert run().return_value == 0


def test_an_endpoint_of_the_file_that_is_not_deployed_ends_with_1(world: World, tmp_path: Path) -> None:
    write_environment(tmp_path / "environments", endpoint="name: other")
    result = run()
    assert result.return_value == 1
    assert "other: it is not deployed" in result.stdout


def test_the_slowest_load_is_told_with_the_setting_that_is_made_for_it(world: World) -> None:
    world.loads = {"ModelDownloadingTime": [2e6, 5.25e6], "ModelLoadingTime": [30e6, 1e6]}
    said = " ".join(run().stdout.split())
    assert "digits: a call waited 35.2 s at most (slowest in 14 days: download 5.2 s + load 30.0 s;" in said
    assert "rollout.slowest_load_seconds: 36." in said


def test_a_setting_that_is_shorter_than_what_was_measured_is_called_too_short(world: World, tmp_path: Path) -> None:
    rollout = "{kind: all-at-once, accept_multi_model: true, slowest_load_seconds: 20}"
    write_environment(tmp_path / "environments", endpoint=f"rollout: {rollout}")
    world.loads = {"ModelLoadingTime": [20.5e6]}
    assert "rollout.slowest_load_seconds: 21, which is 20: too short." in run().stdout
    world.loads = {"ModelLoadingTime": [19.5e6]}
    assert "rollout.slowest_load_seconds: 20, which is 20." in run().stdout


def test_load_times_that_may_not_be_read_are_no_failure(world: World) -> None:
    world.refused["GetMetricData"] = AwsError("AccessDenied", "not allowed")
    result = run()
    assert result.return_value == 0
    assert "digits: its load times could not be read: " in result.stdout
    assert "not allowed" in result.stdout


def test_what_left_the_file_is_in_the_json_and_no_failure_and_none_of_named_models(world: World) -> None:
    entry = LeftEntry(
        stack="local-serving-old", region="us-east-1", status="CREATE_COMPLETE", why="renamed", endpoint="local-old",
        instances="1 of ml.g4dn.xlarge", usd_per_hour=None, usd_per_hour_at_least=0.0, unknown=("a",), retained=(),
    )  # fmt: skip
    world.left = (entry,)
    assert run().return_value == 0
    assert [each["stack"] for each in document()["left"]] == ["local-serving-old"]
    assert document("bert")["left"] is None
    world.left = None
    assert document()["left"] is None


def test_json_holds_what_the_table_shows(world: World) -> None:
    world.loads = {"ModelLoadingTime": [30e6]}
    found = document("bert")
    assert found == {
        "environment": "local",
        "sound": True,
        "endpoints": [
            {
                "endpoint": "digits", "config": CONFIG, "instances": 1, "pools": [], "problem": "", "sound": True,
                "loads": {"download": None, "load": 30.0, "problem": ""}, "slowest_load_seconds": 30.0,
                "models": [{"model": "bert", "digest": A, "problem": "", "difference": 0.0, "milliseconds": 12.3}],
            }
        ],
        "left": None,
    }  # fmt: skip
