"""Two production variants with an archive each, over the real Triton: traffic, metrics and scaling of each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.calls import body
from tests.e2e.deployments import eventually, metric_sum
from tests.e2e.project import Project, environment_yaml
from tests.tritonstack_local.emulator.running import IMAGE, ROLE_ARN, TRUST
from tests.tritonstack_local.runtime.test_real_triton import REQUEST, adding
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
NAME = "by-hand-ab"
A, B = "a-g4dn-xlarge", "b-g5-xlarge"
ADDED = {A: 1, B: 2}


@pytest.fixture(scope="module")
def ab(local_aws: LocalAws) -> Iterator[LocalAws]:
    """The local AWS with an endpoint of two variants, at three to one."""
    s3, sagemaker = local_aws.client("s3"), local_aws.client("sagemaker")
    s3.create_bucket(Bucket=NAME)
    role = {"RoleName": ROLE_ARN.rpartition("/")[2], "AssumeRolePolicyDocument": json.dumps(TRUST)}
    iam, everything = local_aws.client("iam"), {"Effect": "Allow", "Action": "*", "Resource": "*"}
    iam.create_role(**role)
    document = json.dumps({"Version": "2012-10-17", "Statement": [everything]})
    iam.put_role_policy(RoleName=role["RoleName"], PolicyName="everything", PolicyDocument=document)
    variants = []
    for variant, kind, weight in ((A, "ml.g4dn.xlarge", 3.0), (B, "ml.g5.xlarge", 1.0)):
        s3.put_object(Bucket=NAME, Key=f"{variant}.tar.gz", Body=adding(ADDED[variant]))
        container = {"Image": IMAGE, "ModelDataUrl": f"s3://{NAME}/{variant}.tar.gz"}
        sagemaker.create_model(ModelName=variant, ExecutionRoleArn=ROLE_ARN, PrimaryContainer=container)
        counted = {"InstanceType": kind, "InitialInstanceCount": 1, "InitialVariantWeight": weight}
        variants.append({"VariantName": variant, "ModelName": variant, **counted})
    sagemaker.create_endpoint_config(EndpointConfigName=NAME, ProductionVariants=variants)
    sagemaker.create_endpoint(EndpointName=NAME, EndpointConfigName=NAME)
    found = eventually(
        lambda: (now := sagemaker.describe_endpoint(EndpointName=NAME))["EndpointStatus"] != "Creating" and now
    )
    assert found["EndpointStatus"] == "InService", found.get("FailureReason")
    yield local_aws
    sagemaker.delete_endpoint(EndpointName=NAME)
    sagemaker.delete_endpoint_config(EndpointConfigName=NAME)


def answered(aws: LocalAws, count: int, **target: str) -> Counter[str]:
    """Variant → how many of so many requests it answered, each from its own archive."""
    found: Counter[str] = Counter()
    for _ in range(count):
        answer = aws.client("sagemaker-runtime").invoke_endpoint(EndpointName=NAME, Body=REQUEST, **target)
        [output] = json.loads(answer["Body"].read())["outputs"]
        variant = answer["InvokedProductionVariant"]
        assert output["data"] == [1 + ADDED[variant], 2 + ADDED[variant]]
        found[variant] += 1
    return found


def summed(aws: LocalAws, metric: str, variant: str) -> float:
    return metric_sum(aws, metric, endpoint=NAME, variant=variant)


def shares(aws: LocalAws) -> dict[str, float]:
    [found] = [one for one in aws.runtime_status()["endpoints"] if one["name"] == NAME]
    return {fleet["variant"]: fleet["share"] for fleet in found["fleets"]}


def update(aws: LocalAws, **wanted: dict[str, Any]) -> None:
    """UpdateEndpointWeightsAndCapacities; variants by their first letter."""
    changes = [{"VariantName": {"a": A, "b": B}[each], **change} for each, change in wanted.items()]
    aws.client("sagemaker").update_endpoint_weights_and_capacities(
        EndpointName=NAME, DesiredWeightsAndCapacities=changes
    )


def test_traffic_metrics_weights_and_instances_are_of_each_variant(ab: LocalAws) -> None:
    assert answered(ab, 40) == {A: 30, B: 10}
    eventually(lambda: (summed(ab, "Invocations", A), summed(ab, "Invocations", B)) == (30, 10), seconds=30)
    assert summed(ab, "ModelLatency", B) > 0
    assert answered(ab, 4, TargetVariant=B) == {B: 4}
    with pytest.raises(
        ab.client("sagemaker-runtime").exceptions.ClientError, match=r"ValidationError.*Variant c was not"
    ):
        answered(ab, 1, TargetVariant="c")

    update(ab, a={"DesiredWeight": 0.0})
    eventually(lambda: shares(ab) == {A: 0.0, B: 1.0}, seconds=30)
    assert answered(ab, 10) == {B: 10}
    assert answered(ab, 1, TargetVariant=A) == {A: 1}

    scaling = ab.client("application-autoscaling")
    for variant in (A, B):
        scaling.register_scalable_target(
            ServiceNamespace="sagemaker", ResourceId=f"endpoint/{NAME}/variant/{variant}",
            ScalableDimension="sagemaker:variant:DesiredInstanceCount", MinCapacity=1, MaxCapacity=4,
        )  # fmt: skip
    update(ab, b={"DesiredInstanceCount": 4})
    found = ab.client("sagemaker").describe_endpoint(EndpointName=NAME)["ProductionVariants"]
    assert [variant["CurrentInstanceCount"] for variant in found] == [1, 4]
    eventually(lambda: summed(ab, "Invocations", B) == 24, seconds=30)
    before = summed(ab, "InvocationsPerInstance", B)
    assert answered(ab, 8) == {B: 8}
    eventually(lambda: summed(ab, "InvocationsPerInstance", B) == before + 8 / 4, seconds=30)


DEPLOYED = "ab"
"""The environment, and its endpoint."""


@pytest.mark.long
def test_two_deployed_variants_respond_from_their_caches_and_invoke_reaches_the_named_one(
    project: Project, local_aws: LocalAws
) -> None:
    variants = []
    for number, (variant, weight) in enumerate({"current": 3, "candidate": 1}.items(), 1):
        project.add_python_model(
            f"plus-{number}",
            initialize=f"self.added = [{number}]",
            execute="x + (self.added.pop() if self.added else 100)",  # the first run is right, and no other
            answer_to_3=3.0 + number,
        )
        config = project.root / "model_repos" / f"plus-{number}" / f"plus-{number}" / "config.pbtxt"
        config.write_text(config.read_text() + "response_cache { enable: true }\n")
        variants.append(f"{{name: {variant}, model: plus-{number}, weight: {weight}}}")
    text = (
        f'{{name: {DEPLOYED}, mode: single-model, release: "24.09", instance_type: ml.g4dn.xlarge, '
        f"initial_instance_count: 1, container: {{response_cache_bytes: 1048576}}, variants: [{', '.join(variants)}]}}"
    )
    project.write(f"environments/{DEPLOYED}.yaml", environment_yaml(name=DEPLOYED, endpoints=[text]))
    project.run("local", "deploy", "-e", DEPLOYED)

    runtime = local_aws.client("sagemaker-runtime")

    def responded(value: float) -> tuple[str, float]:
        answer = runtime.invoke_endpoint(
            EndpointName=f"{DEPLOYED}-{DEPLOYED}", ContentType="application/json", Body=body(value)
        )
        [output] = json.loads(answer["Body"].read())["outputs"]
        return answer["InvokedProductionVariant"], output["data"][0]

    assert Counter(responded(3.0) for _ in range(40)) == {
        ("current-g4dn-xlarge", 4.0): 30,
        ("candidate-g4dn-xlarge", 5.0): 10,
    }
    assert {responded(4.0)[1] for _ in range(4)} == {104.0}  # what was not asked before is run

    project.write("request.json", body(3.0).decode())
    asked = f"invoke {DEPLOYED}/plus-2 --input request.json -e {DEPLOYED} --local --json --variant".split()
    for written in ("candidate", "candidate-g4dn-xlarge"):
        answered = json.loads(project.run(*asked, written).stdout)
        assert (answered["variant"], answered["outputs"][0]["data"]) == ("candidate-g4dn-xlarge", [5.0])
    assert "allowed: current, candidate" in project.run(*asked, "canddate", expect=2).stderr
    status = project.run("local", "status").stdout
    for variant, part in (("current", "75%"), ("candidate", "25%")):
        assert f"{variant}-g4dn-xlarge (single-model)  ready, {part} of the requests" in status
