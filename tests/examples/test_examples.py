"""Each example, with the installed wheel and the real CDK command line, on the local AWS."""

from __future__ import annotations

import fnmatch
import json
import shutil
from typing import Any

import pytest

from tests.e2e.deployments import aws_fails
from tests.e2e.engines import EngineProject
from tests.e2e.project import Project
from tests.examples.installing import REPOSITORY, Installed
from tritonstack.naming import ArchiveName, Platform
from tritonstack_local.aws import LocalAws

EXAMPLES = REPOSITORY / "examples"
NAMES = ("bring-your-own", "instance-pools", "int8-engine", "own-role-and-image", "pipeline", "two-regions")
FILE = "ranker.0123456789abcdef.tar.gz"
TRIPLES = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [3.0]}]}
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


class Example:
    """A copy of one example, deployed with the wheel."""

    def __init__(self, name: str, *, home: Project, installed: Installed, aws: LocalAws) -> None:
        self.folder, self._installed, self._aws = home.root / name, installed, aws
        shutil.copytree(EXAMPLES / name, self.folder, dirs_exist_ok=True)

    def cdk(self, *arguments: str) -> str:
        """Run the CDK command line in it."""
        quiet = ("--no-notices", "--no-color")
        return self._installed.run("cdk", *arguments, *quiet, folder=self.folder, variables=self._aws.variables())

    def deploy(self, *stacks: str) -> None:
        """``cdk deploy``."""
        self.cdk("deploy", *stacks, "--require-approval", "never", "--progress", "events")

    def template(self, stack: str) -> dict[str, Any]:
        """The synthesised template of a stack of the app."""
        template: dict[str, Any] = json.loads((self.folder / "cdk.out" / f"{stack}.template.json").read_text())
        return template

    def output(self, stack: str, name: str) -> str:
        """An output of a deployed stack."""
        [found] = self._aws.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
        return next(str(each["OutputValue"]) for each in found["Outputs"] if each["OutputKey"] == name)


def put_model(home: Project, installed: Installed, aws: LocalAws, *, url: str) -> None:
    """Pack a model that doubles, with the installed command line, and put it where an endpoint looks."""
    home.add_python_model("ranker", execute="x * 2", answer_to_3=6.0)
    repository = home.root / "repository"
    shutil.copytree(home.root / "model_repos/ranker/ranker", repository / "ranker", dirs_exist_ok=True)
    installed.run("tritonstack", "pack", str(repository), str(home.root / FILE), folder=home.root)
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    aws.client("s3").upload_file(str(home.root / FILE), bucket, f"{prefix}{FILE}")


def answer(aws: LocalAws, *, endpoint: str, file: str) -> float:
    """What a model makes of 3."""
    said = aws.client("sagemaker-runtime").invoke_endpoint(
        EndpointName=endpoint, TargetModel=file, ContentType="application/json", Body=json.dumps(TRIPLES)
    )
    return float(json.loads(said["Body"].read())["outputs"][0]["data"][0])


@pytest.fixture(scope="module")
def own(home: Project, installed: Installed, local_aws: LocalAws) -> Example:
    """The app that brings all but the endpoint, deployed."""
    example = Example("bring-your-own", home=home, installed=installed, aws=local_aws)
    example.deploy("--all")
    return example


@pytest.mark.long
def test_an_app_with_everything_of_its_own_adds_an_endpoint_that_answers(
    own: Example, home: Project, installed: Installed, local_aws: LocalAws
) -> None:
    put_model(home, installed, local_aws, url=own.output("recommender", "Archives"))
    assert answer(local_aws, endpoint=own.output("recommender", "EndpointName"), file=FILE) == 6.0


@pytest.mark.long
def test_its_caller_may_call_one_model_and_none_whose_name_begins_alike(own: Example) -> None:
    [pattern] = [
        pattern
        for each in own.template("recommender")["Resources"].values()
        if each["Type"] == "AWS::IAM::Policy"
        for statement in each["Properties"]["PolicyDocument"]["Statement"]
        if statement["Action"] == "sagemaker:InvokeEndpoint"
        for pattern in statement["Condition"]["StringLike"]["sagemaker:TargetModel"]
    ]
    assert fnmatch.fnmatchcase(FILE, pattern)
    assert not fnmatch.fnmatchcase("ranker-large.0123456789abcdef.tar.gz", pattern)


@pytest.mark.long
def test_what_is_ours_in_that_app_is_below_thirty_lines_and_under_one_construct(own: Example) -> None:
    app = (EXAMPLES / "bring-your-own/app.py").read_text()
    assert len(app[app.index("# The endpoint") :].splitlines()) < 30
    assert len(app.splitlines()) < 50
    resources = own.template("recommender")["Resources"].values()
    owners = {
        each["Metadata"]["aws:cdk:path"].split("/")[1]
        for each in resources
        if each["Type"].startswith("AWS::SageMaker::")
    }
    assert owners == {"Models"}


@pytest.mark.long
def test_one_app_deploys_endpoints_of_one_name_in_two_regions(
    home: Project, installed: Installed, local_aws: LocalAws
) -> None:
    example = Example("two-regions", home=home, installed=installed, aws=local_aws)
    example.deploy("--all")
    images = {
        region: next(
            each["Properties"]["PrimaryContainer"]["Image"]
            for each in example.template(f"recommender-{region}")["Resources"].values()
            if each["Type"] == "AWS::SageMaker::Model"
        )
        for region in ("us-east-1", "eu-west-1")
    }
    assert {region for region, image in images.items() if f".ecr.{region}." in image} == set(images)
    put_model(home, installed, local_aws, url=example.output("recommender-us-east-1", "Archives"))
    assert answer(local_aws, endpoint="recommender", file=FILE) == 6.0
    log = (home.root / ".local/logs/emulator.log").read_text()
    assert "it is in eu-west-1, and the local runtime serves us-east-1 alone" in log


@pytest.mark.long
def test_a_stage_of_ours_is_in_a_pipeline_and_deploys_by_itself(
    home: Project, installed: Installed, local_aws: LocalAws
) -> None:
    example = Example("pipeline", home=home, installed=installed, aws=local_aws)
    example.cdk("synth", "--quiet")
    [pipeline] = [
        each["Properties"]
        for each in example.template("delivery")["Resources"].values()
        if each["Type"] == "AWS::CodePipeline::Pipeline"
    ]
    actions = {stage["Name"]: [action["Name"] for action in stage["Actions"]] for stage in pipeline["Stages"]}
    assert list(actions) == ["Source", "Build", "UpdatePipeline", "Assets", "shop"]
    deployed = [name.removesuffix(".Deploy") for name in actions["shop"] if name.endswith(".Deploy")]
    assert actions["shop"][0] == "Deploy_models"
    assert deployed == ["artifacts", "builds", "serving-prices"]
    example.deploy("shop/*")
    record = local_aws.client("ssm").get_parameter(Name="/tritonstack/shop/prices/doubles")["Parameter"]["Value"]
    assert answer(local_aws, endpoint="shop-prices", file=f"doubles.{record}.tar.gz") == 6.0


@pytest.mark.long
def test_an_endpoint_runs_under_a_role_of_ones_own_and_the_local_aws_builds_no_image(
    home: Project, installed: Installed, local_aws: LocalAws
) -> None:
    example = Example("own-role-and-image", home=home, installed=installed, aws=local_aws)
    arn = "arn:aws:iam::123456789012:role/team/triton-containers"
    with pytest.raises(AssertionError, match="Please ensure that the role exists"):
        example.deploy("guest/*")
    trust = {"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    iam, name = local_aws.client("iam"), "triton-containers"
    iam.create_role(RoleName=name, Path="/team/", AssumeRolePolicyDocument=document)
    asked = ("tritonstack", "preflight", "-e", "guest", "--role-policy")
    policies = json.loads(installed.run(*asked, folder=example.folder, variables=local_aws.variables()))
    iam.put_role_policy(RoleName=name, PolicyName="triton", PolicyDocument=json.dumps(policies["prices"]))
    example.deploy("guest/*")
    record = local_aws.client("ssm").get_parameter(Name="/tritonstack/guest/prices/doubles")["Parameter"]["Value"]
    assert answer(local_aws, endpoint="guest-prices", file=f"doubles.{record}.tar.gz") == 6.0
    [model] = [
        each["ModelName"]
        for each in local_aws.client("sagemaker").list_models()["Models"]
        if "guest" in each["ModelName"] or "Triton" in each["ModelName"]
        if local_aws.client("sagemaker").describe_model(ModelName=each["ModelName"])["ExecutionRoleArn"] == arn
    ]
    image = local_aws.client("sagemaker").describe_model(ModelName=model)["PrimaryContainer"]["Image"]
    assert "/cdk-hnb659fds-container-assets-123456789012-us-east-1:" in image
    log = (home.root / ".local/logs/emulator.log").read_text()
    assert "is not built: the local AWS serves with its own Triton" in log


@pytest.mark.long
def test_an_engine_in_int8_is_built_by_the_deployment_and_recognises_the_digit(
    home: Project, installed: Installed, local_aws: LocalAws
) -> None:
    Example("int8-engine", home=home, installed=installed, aws=local_aws).deploy("digits/*")  # and verifies a response
    deployed, model = EngineProject(home, local_aws, "digits"), "digits-int8"
    archive = ArchiveName(model=model, digest=deployed.record("engines", model))
    manifest = deployed.manifest("engines", Platform(release="25.09", gpu="t4"), archive)
    assert {"--int8", "--fp16"} <= set(manifest["engines"][model]["options"])
    assert manifest["figures"]["accuracy"] == manifest["figures"]["accuracy_fp32"] >= 0.95


@pytest.mark.long
def test_pools_have_an_engine_for_each_gpu_and_a_shortage_lands_on_the_second(
    home: Project, installed: Installed, local_aws: LocalAws
) -> None:
    with aws_fails(local_aws, {"instance_type": "ml.g5.xlarge", "short_of": "capacity", "times": 1}):
        example = Example("instance-pools", home=home, installed=installed, aws=local_aws)
        example.deploy("pools/*")  # and verifies a response by the manifest of the T4
    assert example.output("pools-serving-ranking", "Landed") == "1 x ml.g4dn.xlarge"
    deployed, model = EngineProject(home, local_aws, "pools"), "scores"
    archive = ArchiveName(model=model, digest=deployed.record("ranking", model))
    for gpu, capability in (("a10g", "8.6"), ("t4", "7.5")):
        manifest = deployed.manifest("ranking", Platform(release="25.09", gpu=gpu), archive)
        assert manifest["engines"][model]["compute_capability"] == capability
    [running] = [each for each in local_aws.runtime_status()["endpoints"] if each["name"] == "pools-ranking"]
    assert [fleet["model_data"].split("/")[-2] for fleet in running["fleets"]] == ["25.09-t4"]


def test_every_example_is_tested() -> None:
    folders = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())
    assert folders == sorted([*NAMES, "one-gpu", "own-backend", "streaming"]), "the last three have files of their own"
