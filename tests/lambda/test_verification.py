"""The verification function: what it calls, what it waits for, and what fails a deployment."""

from __future__ import annotations

import importlib
import itertools
import json
import re
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from tests.cases import cases

# `lambda` is a keyword: an import statement cannot name the folder.
worlds: Any = importlib.import_module("tests.lambda.verification_world")
A, B, LOADING = worlds.A, worlds.B, worlds.LOADING


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Any:
    return worlds.World(monkeypatch)


def test_create_invokes_every_model_and_lists_them(world: Any) -> None:
    world.publish({"bert": A, "resnet": B})
    status, _, data = world.create({"bert": A, "resnet": B})
    assert (status, data["Verified"], data["NotVerified"]) == ("SUCCESS", f"bert.{A}, resnet.{B}", "")
    assert world.invoked == [f"bert.{A}", f"resnet.{B}"]
    bodies = [json.loads(given["Body"]) for given in world.aws.requests("InvokeEndpoint")]
    assert bodies == [{**worlds.BODY, "parameters": {"binary_data_output": True}}] * 2


def test_update_calls_what_changed_alone(world: Any) -> None:
    world.publish({"bert": B, "resnet": A})
    assert world.update({"bert": A, "resnet": A}, {"bert": B, "resnet": A})[0] == "SUCCESS"
    assert world.invoked == [f"bert.{B}"]
    world.create({"resnet": A})
    assert {each["PhysicalResourceId"] for each in world.sent} == {"Custom::VerifiedEndpoint:local-digits"}


@pytest.mark.parametrize(
    "change", [{"ManifestPrefix": "manifests/digits/24.01-t4/"}, {"ReleaseSetKey": "swept.release-set"}]
)
def test_of_another_platform_or_without_the_old_release_set_every_model_counts_as_changed(
    world: Any, change: dict[str, str]
) -> None:
    models = {"bert": A, "resnet": A}
    world.publish(models)
    old = {**world.properties(models), **change}
    assert world.deliver(world.event("Update", world.properties(models), old))[0] == "SUCCESS"
    assert len(world.invoked) == 2


def test_at_most_as_many_models_as_the_setting_are_invoked_and_the_others_listed(world: Any) -> None:
    models = {f"m{number:02}": A for number in range(30)}
    world.publish(models)
    _, _, data = world.create(models)
    assert len(world.invoked) == 20
    assert f"m20.{A}" in data["NotVerified"]
    assert "at most 20 are invoked" in data["NotVerified"]


def test_with_0_models_the_config_is_checked_all_the_same(world: Any) -> None:
    assert world.create({"bert": A}, Models="0")[0] == "SUCCESS"
    assert world.invoked == []
    world.aws.described = [world.endpoint(EndpointConfigName="config-1")]
    assert world.create({"bert": A}, Models="0")[0] == "FAILED"


def test_a_single_model_endpoint_is_called_without_a_target(world: Any) -> None:
    world.publish({"bert": A})
    world.aws.script = {"the only one": [worlds.right()]}
    assert world.create({"bert": A}, MultiModel="false", StopsAtUnload="false")[0] == "SUCCESS"
    assert world.invoked == ["the only one"]


def test_each_variants_model_is_called_on_its_own_variant(world: Any) -> None:
    world.publish({"bert": A, "bert-db": B})
    world.aws.script = {"the only one": [worlds.right()]}
    served = {"bert": "current-g4dn-xlarge", "bert-db": "candidate-g4dn-xlarge"}
    single = {"MultiModel": "false", "StopsAtUnload": "false", "Variants": json.dumps(served)}
    variants = [{"VariantName": name, "DeployedImages": [{"SpecifiedImage": worlds.IMAGE}]} for name in served.values()]
    world.aws.described = [world.endpoint(ProductionVariants=variants)]
    assert world.create({"bert": A, "bert-db": B}, **single)[0] == "SUCCESS"
    calls = world.aws.requests("InvokeEndpoint")
    assert [given["TargetVariant"] for given in calls] == [served["bert-db"], served["bert"]]
    world.aws.described = [world.endpoint(ProductionVariants=variants[:1])]
    status, reason, _ = world.create({"bert": A, "bert-db": B}, **single)
    assert (status, "has variant current-g4dn-xlarge, not" in reason) == ("FAILED", True)


T4, A10G = "ml.g4dn.xlarge", "ml.g5.xlarge"


def pooled(world: Any, **counts: int) -> dict[str, str]:
    """Properties of an endpoint with instance pools of two GPUs, which landed on these."""
    of_type = {A10G: worlds.PREFIX.replace("t4", "a10g"), T4: worlds.PREFIX}
    pools = [
        {"InstanceType": kind, "CurrentInstanceCount": count}
        for kind, count in zip(of_type, counts.values(), strict=True)
    ]
    [variant] = world.endpoint()["ProductionVariants"]
    world.aws.described = [world.endpoint(ProductionVariants=[{**variant, "InstancePools": pools}])]
    world.aws.script = {"the only one": [worlds.right()]}
    single = {"MultiModel": "false", "StopsAtUnload": "false"}
    return {**single, "ManifestPrefix": of_type[A10G], "Pools": json.dumps(of_type)}


def test_a_fallback_type_is_held_against_the_manifest_of_its_own_gpu(world: Any) -> None:
    world.publish({"bert": A})
    world.publish({"bert": A}, prefix=worlds.PREFIX.replace("t4", "a10g"), answer={"outputs": worlds.others()})
    status, reason, data = world.create({"bert": A}, **pooled(world, a10g=0, t4=2))
    assert (status, data["Landed"]) == ("SUCCESS", f"2 x {T4}"), reason
    assert data["NotVerified"] == f"{A10G}: no instance of it is live, so only its build proved its archives"
    status, reason, _ = world.create({"bert": A}, **pooled(world, a10g=2, t4=0))
    assert (status, "output y[0, 0]: 9 expected, 1 found" in reason) == ("FAILED", True), reason


def test_while_two_gpus_are_live_a_response_of_either_is_right(world: Any) -> None:
    world.publish({"bert": A})
    world.publish({"bert": A}, prefix=worlds.PREFIX.replace("t4", "a10g"), answer={"outputs": worlds.others()})
    status, reason, data = world.create({"bert": A}, **pooled(world, a10g=1, t4=1))
    assert (status, data["Landed"], data["NotVerified"]) == ("SUCCESS", f"1 x {A10G}, 1 x {T4}", ""), reason


def test_another_list_of_pools_makes_every_model_count_as_changed(world: Any) -> None:
    world.publish({"bert": A})
    new = world.properties({"bert": A}, **pooled(world, a10g=0, t4=1))
    assert world.deliver(world.event("Update", new, {**new, "Pools": json.dumps({T4: worlds.PREFIX})}))[0] == "SUCCESS"
    assert len(world.invoked) == 1


@cases("changes, message")
def test_an_endpoint_that_runs_something_else_fails_before_any_call(world: Any, changes: Any, message: str) -> None:
    world.publish({"bert": A})
    world.aws.described = [world.endpoint(**changes)]
    status, reason, _ = world.create({"bert": A})
    assert status == "FAILED"
    assert re.search(message, reason), reason
    assert world.invoked == []


def test_a_silent_rollback_during_the_calls_fails_too(world: Any) -> None:
    world.publish({"bert": A})
    world.aws.described = [world.endpoint(), world.endpoint(EndpointConfigName="config-1")]
    status, reason, _ = world.create({"bert": A})
    assert (status, "rolled the update back" in reason) == ("FAILED", True)


def test_a_slow_load_is_waited_for_over_several_runs(world: Any) -> None:
    world.publish({"bert": A})
    world.aws.seconds = 60
    world.aws.script[f"bert.{A}.tar.gz"] = [LOADING] * 30 + [worlds.right()]
    status, _, data = world.create({"bert": A})
    assert (status, data["Verified"]) == ("SUCCESS", f"bert.{A}")
    assert world.runs == 3
    assert len(world.invoked) == 31


def test_while_one_loads_the_others_are_called(world: Any) -> None:
    world.publish({"bert": A, "resnet": A})
    world.aws.script[f"bert.{A}.tar.gz"] = [LOADING, LOADING, worlds.right()]
    assert world.create({"bert": A, "resnet": A})[0] == "SUCCESS"
    assert world.invoked == [f"bert.{A}", f"resnet.{A}", f"bert.{A}", f"bert.{A}"]


def test_after_50_minutes_it_fails_and_names_what_did_not_respond(world: Any) -> None:
    world.publish({"bert": A, "resnet": A})
    world.aws.seconds = 60
    world.aws.script[f"bert.{A}.tar.gz"] = [LOADING]
    began = world.aws.now
    status, reason, _ = world.create({"bert": A, "resnet": A})
    assert status == "FAILED"
    assert "1 models did not respond within 50 minutes" in reason
    assert f"bert.{A} (" in reason
    assert "ModelNotReadyException" in reason
    assert 3000 <= world.aws.now - began < 3120
    assert world.runs < 16, "Lambda stops a function that has called itself 16 times"


def test_an_endpoint_that_never_settles_fails_after_50_minutes(world: Any) -> None:
    world.aws.described = [world.endpoint(EndpointStatus="Updating")]
    status, reason, _ = world.create({"bert": A})
    assert (status, "did not settle within 50 minutes" in reason) == ("FAILED", True)


def test_a_wrong_response_fails_with_model_output_index_expected_and_found(world: Any) -> None:
    world.publish({"bert": A, "resnet": A})
    world.aws.script[f"bert.{A}.tar.gz"] = [worlds.right([1.0, 2.5])]
    status, reason, _ = world.create({"bert": A, "resnet": A})
    assert status == "FAILED"
    for part in (f"model bert.{A}", "output y[0, 1]", "2 expected, 2.5 found", "tolerance 0.01", "1 of 2 values"):
        assert part in reason
    assert world.invoked == [f"bert.{A}"]


@pytest.mark.parametrize(
    "failure",
    [
        worlds.model_error(500),
        worlds.model_error(503),
        worlds.model_error(0),
        worlds.refused("ServiceUnavailable", 503),
        worlds.refused("SomethingNew", 503),
        worlds.refused("SomethingNew", 429),
        ReadTimeoutError(endpoint_url="https://runtime"),
    ],
)
def test_what_may_pass_is_tried_again_and_fails_in_the_end(world: Any, failure: Any) -> None:
    world.publish({"bert": A})
    world.aws.script[f"bert.{A}.tar.gz"] = [failure] * 3 + [worlds.right()]
    assert world.create({"bert": A})[0] == "SUCCESS"
    world.aws.script[f"bert.{A}.tar.gz"] = [failure]
    status, reason, _ = world.create({"bert": A})
    assert (status, "4 of 4 requests failed" in reason) == ("FAILED", True)


def test_a_call_of_too_many_is_no_failed_try_of_the_model(world: Any) -> None:
    world.publish({"bert": A})
    throttled = worlds.refused("ThrottlingException")
    world.aws.script[f"bert.{A}.tar.gz"] = [throttled] * 50 + [worlds.right()]
    assert world.create({"bert": A})[0] == "SUCCESS"
    world.aws.script[f"bert.{A}.tar.gz"] = [throttled]
    status, reason, _ = world.create({"bert": A})
    assert (status, "did not respond within 50 minutes" in reason) == ("FAILED", True)
    assert "ThrottlingException" in reason


@pytest.mark.parametrize("failure", [worlds.model_error(400), worlds.refused("ValidationError")])
def test_what_cannot_pass_fails_at_once(world: Any, failure: Any) -> None:
    world.publish({"bert": A})
    world.aws.script[f"bert.{A}.tar.gz"] = [failure]
    assert world.create({"bert": A})[0] == "FAILED"
    assert len(world.invoked) == 1


def test_a_refusal_is_in_the_reason_with_the_missing_action_at_the_end_of_its_sentence(world: Any) -> None:
    role = f"arn:aws:sts::123456789012:assumed-role/{'r' * 64}/{'f' * 64}"
    sentence = f"User: {role} is not authorized to perform: sagemaker:InvokeEndpoint on resource: {'e' * 128}"
    world.publish({"bert": A})
    world.aws.script[f"bert.{A}.tar.gz"] = [worlds.refused("AccessDeniedException", 403, sentence)]
    assert sentence in world.create({"bert": A})[1]


def test_after_a_507_what_was_not_called_yet_stays_cold_and_the_rest_is_finished(world: Any) -> None:
    models = {"bert": A, "huge": A, "resnet": A}
    world.publish(models)
    world.aws.script[f"bert.{A}.tar.gz"] = [LOADING, worlds.right()]
    world.aws.script[f"huge.{A}.tar.gz"] = [worlds.model_error(507), worlds.right()]
    status, _, data = world.create(models)
    assert (status, data["Verified"]) == ("SUCCESS", f"bert.{A}, huge.{A}")
    assert f"resnet.{A}: not invoked, since memory was full when huge.{A}" in data["NotVerified"]


def test_an_unload_since_the_start_ends_the_warming(world: Any) -> None:
    models = {f"m{number}": A for number in range(6)}
    world.publish(models)
    world.aws.seconds = 50
    world.aws.unloads = [world.aws.now + 130]
    status, _, data = world.create(models)
    assert status == "SUCCESS"
    assert len(world.invoked) == 3
    assert f"m3.{A}, m4.{A}, m5.{A}: not invoked, since models were unloaded" in data["NotVerified"]


def test_an_updating_endpoint_is_waited_for_and_one_model_verified_even_while_others_unload(
    world: Any,
) -> None:
    models = {"bert": A, "resnet": A}
    world.publish(models)
    moving = [world.endpoint(EndpointStatus=status) for status in ("Updating", "SystemUpdating")]
    world.aws.described = [*moving * 10, world.endpoint()]
    world.aws.unloads = [world.aws.now + at for at in range(0, 600, 10)]
    assert world.create(models)[0] == "SUCCESS"
    assert world.invoked == [f"bert.{A}"]


def test_where_nothing_is_kept_loaded_unloads_do_not_count(world: Any) -> None:
    models = {f"m{number}": A for number in range(6)}
    world.publish(models)
    world.aws.seconds, world.aws.unloads = 50, [world.aws.now + at for at in range(0, 600, 10)]
    assert world.create(models, StopsAtUnload="false")[0] == "SUCCESS"
    assert len(world.invoked) == 6


def test_a_request_that_lies_ready_is_sent_as_it_is(world: Any) -> None:
    world.publish({"bert": A}, body=None, content="cG5n", adapter="image")
    manifest = f"{worlds.PREFIX}bert.{A}"
    manifest_document = json.loads(world.aws.buckets[worlds.BUCKET][f"{manifest}.json"])
    manifest_document["client_files"] = {"sample-request.kserve": {"sha256": "0" * 64, "bytes": 1}}
    world.aws.buckets[worlds.BUCKET][f"{manifest}.json"] = json.dumps(manifest_document).encode()
    ready = b'{"inputs":[]}' + bytes(range(256))
    world.aws.buckets[worlds.BUCKET][f"{manifest}/sample-request.kserve"] = ready
    assert world.create({"bert": A})[0] == "SUCCESS"
    [sent] = world.aws.requests("InvokeEndpoint")
    assert sent["Body"] == ready
    assert sent["ContentType"].endswith(";json-header-size=13")


def test_a_picture_without_a_ready_request_is_reported_and_does_not_fail(world: Any) -> None:
    world.publish({"bert": A}, body=None, content="cG5n", adapter="image")
    status, _, data = world.create({"bert": A})
    assert (status, world.invoked) == ("SUCCESS", [])
    assert "no sample-request.kserve" in data["NotVerified"]


@pytest.mark.parametrize("code", ["NoSuchKey", "AccessDenied"])
def test_a_missing_manifest_fails_and_names_its_key(world: Any, code: str) -> None:
    world.aws.missing_object = code
    status, reason, _ = world.create({"bert": A})
    assert (status, f"s3://archives/{worlds.PREFIX}bert.{A}.json is missing" in reason) == ("FAILED", True)


def test_a_delete_and_a_rollback_succeed_at_once(world: Any) -> None:
    new = world.properties({"bert": A})
    assert world.deliver(world.event("Delete", new))[0] == "SUCCESS"
    world.aws.stack_status = "UPDATE_ROLLBACK_IN_PROGRESS"
    world.aws.described = [world.endpoint(EndpointConfigName="config-1")]
    assert world.deliver(world.event("Update", new, world.properties({"bert": B})))[0] == "SUCCESS"
    assert world.invoked == []
    assert set(world.aws.operations) == {"DescribeStackEvents"}


def test_a_handed_over_event_that_comes_twice_gets_the_same_response(world: Any) -> None:
    world.publish({"bert": A})
    world.aws.seconds = 60
    world.aws.script[f"bert.{A}.tar.gz"] = [LOADING] * 15 + [worlds.right()]
    world.run(world.event("Create", world.properties({"bert": A})))
    [rest] = world.aws.queue
    world.run(rest)
    world.run(rest)
    assert world.outcomes[0] == world.outcomes[1]


def test_a_rollback_that_begins_between_two_runs_ends_the_work(world: Any) -> None:
    world.publish({"bert": B})
    world.aws.seconds = 60
    world.aws.script[f"bert.{B}.tar.gz"] = [LOADING]
    world.run(world.event("Update", world.properties({"bert": B}), world.properties({"bert": A})))
    world.aws.stack_status = "UPDATE_ROLLBACK_IN_PROGRESS"
    calls = len(world.invoked)
    world.run(world.aws.queue.pop())
    assert (len(world.invoked), world.aws.queue) == (calls, [])
    assert "CloudFormation does not wait for this Update" in world.outcomes[0][1]


def test_an_update_that_is_delivered_after_its_rollback_invokes_nothing(world: Any) -> None:
    world.publish({"bert": B})
    old, new = world.properties({"bert": A}), world.properties({"bert": B})
    late = world.event("Update", new, old)
    world.update({"bert": A}, {"bert": B})
    world.aws.stack_status = "UPDATE_ROLLBACK_IN_PROGRESS"
    world.run(world.event("Update", old, new))
    world.aws.stack_status = "UPDATE_ROLLBACK_COMPLETE"
    calls = len(world.invoked)
    world.run(late, again=True)
    world.aws.stack_status = "UPDATE_IN_PROGRESS"  # of something else
    world.run(late, again=True)
    assert len(world.invoked) == calls


@pytest.mark.parametrize("code", ["NoSuchKey", "AccessDenied"])
def test_a_release_set_that_is_gone_is_named_with_its_bucket_unless_it_is_the_earlier_one(
    world: Any, code: str
) -> None:
    world.publish({"bert": B})
    world.aws.missing_object = code
    old, new = world.properties({"bert": A}), world.properties({"bert": B})
    del world.aws.buckets["staging"][old["ReleaseSetKey"]]
    assert world.deliver(world.event("Update", new, old))[0] == "SUCCESS"
    del world.aws.buckets["staging"][new["ReleaseSetKey"]]
    status, reason, _ = world.deliver(world.event("Update", new, old))
    assert (status, f"s3://staging/{new['ReleaseSetKey']} is missing" in reason) == ("FAILED", True)


STREAMS = {"MultiModel": "false", "StopsAtUnload": "false", "Streams": "true"}


def stream(*events: object) -> list[dict[str, Any]]:
    """The parts of a stream, cut in the middle of each event."""
    text = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
    cuts = [*range(0, len(text), 7), len(text)]
    return [{"PayloadPart": {"Bytes": text[a:b]}} for a, b in itertools.pairwise(cuts)]


def word(value: float) -> dict[str, Any]:
    """A response of a decoupled model, a number at a time."""
    return {"model_name": "m", "model_version": "1", "y": value}


@pytest.fixture
def streaming(world: Any) -> Any:
    """A world whose endpoint streams: ``script`` has its parts, or an error."""
    world.publish({"writer": A})
    return world


def test_an_endpoint_that_streams_gets_the_samples_values_by_name_and_all_events_are_compared(streaming: Any) -> None:
    streaming.aws.streams = [stream(word(1.0), word(2.001))]
    assert streaming.create({"writer": A}, **STREAMS)[0] == "SUCCESS"
    [given] = streaming.aws.requests("InvokeEndpointWithResponseStream")
    assert json.loads(given["Body"]) == {"x": 3.0}
    assert streaming.invoked == []


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        (stream(word(1.0), word(9.0)), r"output y\[0, 1\]: 2 expected, 9 found"),
        (stream(word(1.0)), r"shape \[1, 2\] expected, \[1\] found"),
        (stream(word(1.0), {"error": "out of memory"}), "ends its stream with an error: out of memory"),
        ([], "the response has no event"),
        (stream("text"), "no response of Triton"),
    ],
)
def test_a_stream_that_is_not_the_expected_one_fails_the_deployment(
    parts: list[dict[str, Any]], reason: str, streaming: Any
) -> None:
    streaming.aws.streams = [parts]
    status, message, _ = streaming.create({"writer": A}, **STREAMS)
    assert status == "FAILED"
    assert re.search(reason, message)


def test_a_broken_stream_is_sent_again(streaming: Any) -> None:
    broken = [*stream(word(1.0))[:2], {"ModelStreamError": {"ErrorCode": "StreamBroken"}}]
    streaming.aws.streams = [worlds.LOADING, broken, stream(word(1.0), word(2.0))]
    assert streaming.create({"writer": A}, **STREAMS)[0] == "SUCCESS"
    assert len(streaming.aws.requests("InvokeEndpointWithResponseStream")) == 3


def test_a_request_with_binary_tensors_becomes_one_by_name() -> None:
    streams: Any = importlib.import_module("lambda.verification.streams")
    header = {"inputs": [
        {"name": "t", "datatype": "BYTES", "shape": [2], "parameters": {"binary_data_size": 11}},
        {"name": "n", "datatype": "INT32", "shape": [1], "parameters": {"binary_data_size": 4}},
    ]}  # fmt: skip
    text = json.dumps(header).encode()
    body = text + b"\x01\0\0\0a\x02\0\0\0bc" + b"\x07\0\0\0"
    kind = f"application/vnd.sagemaker-triton.binary+json;json-header-size={len(text)}"
    assert json.loads(streams.request_of(body, kind)[0]) == {"t": ["a", "bc"], "n": 7}
