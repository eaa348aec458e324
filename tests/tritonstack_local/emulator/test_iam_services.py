"""What services do with a role, or as themselves: each right is needed, and all together are enough."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.tritonstack_local.emulator import building
from tests.tritonstack_local.emulator.processing_jobs import ended_job, job_request, start_job
from tests.tritonstack_local.emulator.running import IMAGE, Emulator, make_function, wait_until
from tests.tritonstack_local.emulator.scaled_variants import INVOCATIONS, target
from tests.tritonstack_local.emulator.test_codepipeline import CONNECTION, declaration
from tests.tritonstack_local.emulator.test_recommender import ADVANCED

REGION, ACCOUNT = "us-east-1", "123456789012"
HERE = f"{REGION}:{ACCOUNT}"
TRITON = "arn:aws:ecr:us-east-1:301217895009:repository/sagemaker-tritonserver"
PULL = "ecr:GetAuthorizationToken ecr:BatchGetImage ecr:GetDownloadUrlForLayer ecr:BatchCheckLayerAvailability"
LOGS = f"arn:aws:logs:{HERE}:log-group:"
Statement = dict[str, Any]
PACKAGE = f"arn:aws:sagemaker:{HERE}:model-package/{{}}/1"
ONE = "def handler(event, context): return 1"


def allow(actions: str, resource: str = "*", **more: Any) -> Statement:
    """A statement; actions are separated by blanks."""
    return {"Effect": "Allow", "Action": actions.split(), "Resource": resource, **more}


class World:
    """One role, called as the test, and what acts with it."""

    def __init__(self, aws: Emulator, name: str) -> None:
        self.aws, self.name, self.arn = aws, name, f"arn:aws:iam::{ACCOUNT}:role/{name}"

    def role(self, service: str, *statements: Statement) -> None:
        """Make the role, which the service may assume for this account."""
        of_account = {"StringEquals": {"aws:SourceAccount": ACCOUNT}}
        trust = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
        document = {"Version": "2012-10-17", "Statement": [{**trust, "Condition": of_account}]}
        self.aws.client("iam").create_role(RoleName=self.name, AssumeRolePolicyDocument=json.dumps(document))
        self.allow(*statements)

    def allow(self, *statements: Statement) -> None:
        """Give the role these statements alone."""
        document = json.dumps({"Version": "2012-10-17", "Statement": [*statements, allow("sts:GetCallerIdentity")]})
        self.aws.client("iam").put_role_policy(RoleName=self.name, PolicyName="access", PolicyDocument=document)

    def function(self, source: str) -> str:
        """A function with the role; its ARN."""
        made = self.aws.client("lambda").create_function(
            FunctionName=self.name,
            Runtime="python3.12",
            Handler="index.handler",
            Role=self.arn,
            Code={"ZipFile": building.zipped({"index.py": textwrap.dedent(source)})},
            Timeout=30,
        )
        return str(made["FunctionArn"])

    def client(self, service: str) -> Any:
        """A client that has the role's credentials."""
        given = self.aws.get(f"/_tritonstack/iam/credentials?role={self.arn}&session=tests")
        return boto3.client(
            service,
            endpoint_url=self.aws.url,
            region_name=REGION,
            aws_access_key_id=given["AccessKeyId"],
            aws_secret_access_key=given["SecretAccessKey"],
            aws_session_token=given["SessionToken"],
        )

    def each_missing(self, statements: dict[str, Statement]) -> Iterator[str]:
        """Take each of the statements away in turn, then none: empty."""
        for missing in (*statements, ""):
            self.allow(*(each for key, each in statements.items() if key != missing))
            yield missing

    def denied(self) -> list[str]:
        """The actions that were denied to the role, or in its name."""
        found = self.aws.get("/_tritonstack/iam")["denials"]
        return [each["action"] for each in found if self.name in json.dumps(each)]


@pytest.fixture
def world(guarded: Emulator, name: str) -> World:
    return World(guarded, name)


def message(call: Callable[[], Any]) -> str:
    """What a call is refused with; empty where it is not."""
    try:
        call()
    except ClientError as error:
        return str(error)
    return ""


def test_a_function_has_its_roles_rights_and_its_log_if_that_may_be_written(world: World) -> None:
    source = """
        import boto3
        def handler(event, context):
            print("said")
            return boto3.client("ssm").get_parameter(Name=event["name"])["Parameter"]["Value"]
    """
    other, lambdas = World(world.aws, f"{world.name}-other"), world.aws.client("lambda")
    other.role("codebuild.amazonaws.com")
    refused = message(lambda: other.function(source))
    assert "(InvalidParameterValueException)" in refused
    assert "The role defined for the function cannot be assumed by Lambda." in refused
    world.role("lambda.amazonaws.com")
    world.aws.client("ssm").put_parameter(Name=f"/{world.name}", Value="read", Type="String")
    world.function(source)

    def invoke() -> str:
        invoked = lambdas.invoke(FunctionName=world.name, Payload=json.dumps({"name": f"/{world.name}"}))
        return str(invoked["Payload"].read().decode())

    assert f"assumed-role/{world.name}/{world.name} is not authorized to perform: ssm:GetParameter" in invoke()
    read = allow("ssm:GetParameter", f"arn:aws:ssm:{HERE}:parameter/{world.name}")
    world.allow(read)
    assert invoke() == '"read"'
    groups = world.aws.client("logs").describe_log_groups(logGroupNamePrefix=f"/aws/lambda/{world.name}")
    assert not groups["logGroups"]
    assert world.denied()[-1] == "logs:CreateLogGroup"
    world.allow(read, allow("logs:*", f"{LOGS}/aws/lambda/{world.name}*"))
    assert invoke() == '"read"'
    events = world.aws.client("logs").filter_log_events(logGroupName=f"/aws/lambda/{world.name}")["events"]
    assert "said" in [each["message"] for each in events]
    queue = {"OnFailure": {"Destination": f"arn:aws:sqs:{HERE}:{world.name}"}}
    put = {"FunctionName": world.name, "DestinationConfig": queue}
    refused = message(lambda: lambdas.put_function_event_invoke_config(**put))
    assert "The provided execution role does not have permissions to call SendMessage on SQS" in refused
    world.allow(allow("sqs:SendMessage", queue["OnFailure"]["Destination"]))
    assert message(lambda: lambdas.put_function_event_invoke_config(**put)) == ""


def test_a_build_fails_where_a_right_of_its_role_is_missing(world: World) -> None:
    store = building.bucket(world.aws, world.name)
    store.put_object(Bucket=world.name, Key="in/source.zip", Body=building.zipped({"a": "text"}))
    key = world.aws.client("kms").create_key()["KeyMetadata"]["Arn"]
    rights = {
        "ACCESS_DENIED": allow("logs:CreateLogStream logs:PutLogEvents", f"{LOGS}{world.name}:*"),
        "VPC_CLIENT_ERROR": allow("ec2:*"),
        "BUILD_CONTAINER_UNABLE_TO_PULL_IMAGE": allow(PULL),
        "s3:GetObject": allow("s3:GetObject", f"arn:aws:s3:::{world.name}/in/*"),
        "ssm:GetParameters": allow("ssm:GetParameters", f"arn:aws:ssm:{HERE}:parameter/{world.name}"),
        "COMMAND_EXECUTION_ERROR": allow("ssm:GetParameter", f"arn:aws:ssm:{HERE}:parameter/{world.name}"),
        "s3:PutObject": allow("s3:PutObject", f"arn:aws:s3:::{world.name}/out/*"),
        "kms:": allow("kms:*", key),
    }
    world.role("codebuild.amazonaws.com", *rights.values())
    world.aws.client("logs").create_log_group(logGroupName=world.name)
    world.aws.client("ssm").put_parameter(Name=f"/{world.name}", Value="read", Type="String")
    python = "python3 -c \"import boto3; boto3.client('ssm').get_parameter(Name='/" + world.name + "')\""
    building.make_project(
        world.aws,
        world.name,
        "",
        serviceRole=world.arn,
        source={
            "type": "S3",
            "location": f"{world.name}/in/source.zip",
            "buildspec": json.dumps(building.buildspec(python, artifacts={"files": ["a"]})),
        },
        artifacts={"type": "S3", "location": world.name, "path": "out", "name": "/"},
        encryptionKey=key,
        environment={
            "type": "LINUX_CONTAINER",
            "image": IMAGE,
            "computeType": "BUILD_GENERAL1_SMALL",
            "imagePullCredentialsType": "SERVICE_ROLE",
            "environmentVariables": [{"name": "P", "value": f"/{world.name}", "type": "PARAMETER_STORE"}],
        },
        logsConfig={"cloudWatchLogs": {"status": "ENABLED", "groupName": world.name}},
        vpcConfig={"vpcId": "vpc-1", "subnets": ["subnet-1"], "securityGroupIds": ["sg-1"]},
    )
    for missing in world.each_missing(rights):
        build = building.run(world.aws, world.name)
        contexts = json.dumps([each["contexts"] for each in build["phases"] if "contexts" in each])
        assert build["buildStatus"] == ("FAILED" if missing else "SUCCEEDED"), (missing, contexts)
        assert missing in contexts
    assert {"s3:GetBucketAcl", "s3:GetBucketLocation"} <= set(world.denied())  # of which none fails the build


def test_a_processing_job_fails_where_a_right_of_its_role_is_missing(world: World) -> None:
    bucket = world.name
    world.aws.client("s3").create_bucket(Bucket=bucket)
    rights = {
        "ecr:GetAuthorizationToken": allow(PULL),
        "logs:": allow("logs:*", f"{LOGS}/aws/sagemaker/ProcessingJobs*"),
        "cloudwatch:PutMetricData": allow("cloudwatch:PutMetricData"),
        "s3:ListBucket": allow("s3:ListBucket", f"arn:aws:s3:::{bucket}"),
        "s3:GetObject": allow("s3:GetObject", f"arn:aws:s3:::{bucket}/job/*"),
        "s3:PutObject": allow("s3:PutObject", f"arn:aws:s3:::{bucket}/output/*"),
        "exit code": allow("s3:ListAllMyBuckets"),
    }
    world.role("sagemaker.amazonaws.com", *rights.values())
    step = """
        import boto3, pathlib
        boto3.client("s3").list_buckets()
        (pathlib.Path(__file__).parents[2] / "output/a").write_text("made")
    """
    for number, missing in enumerate(world.each_missing(rights)):
        name = f"{bucket}-{number}"
        start_job(world.aws, bucket, step, ProcessingJobName=name, RoleArn=world.arn)
        ended = ended_job(world.aws, name)
        assert ended["ProcessingJobStatus"] == ("Failed" if missing else "Completed"), (missing, ended)
        assert missing in ended.get("FailureReason", "")


JOINS = [
    f"ec2:{each}"
    for each in (
        *(f"{verb}NetworkInterface{part}" for verb in ("Create", "Delete") for part in ("", "Permission")),
        *(f"Describe{each}" for each in ("DhcpOptions", "NetworkInterfaces", "SecurityGroups", "Subnets", "Vpcs")),
    )
]
TESTS = ["ec2:DescribeVpcEndpoints", "ec2:ModifyNetworkInterfaceAttribute"]
VPC = {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}


@pytest.mark.parametrize(("kind", "actions"), [("processing", JOINS), ("recommender", [*JOINS, *TESTS])])
def test_a_job_in_a_vpc_is_refused_at_its_creation_where_its_role_bounds_or_lacks_an_action(
    world: World, kind: str, actions: list[str]
) -> None:
    """SageMaker developer guide: "SageMaker AI roles", CreateProcessingJob API (a private VPC); "Give Inference
    Recommender Jobs Access to Resources in Your Amazon VPC".
    """
    sagemaker, name = world.aws.client("sagemaker"), world.name
    world.role("sagemaker.amazonaws.com")

    def create() -> None:
        if kind == "processing":
            sagemaker.create_processing_job(
                **job_request(name, RoleArn=world.arn, NetworkConfig={"VpcConfig": VPC, "EnableNetworkIsolation": True})
            )
            return
        request = json.loads(json.dumps(ADVANCED))
        request["InputConfig"] |= {"ModelPackageVersionArn": PACKAGE.format(name), "VpcConfig": VPC}
        sagemaker.create_inference_recommendations_job(JobName=name, RoleArn=world.arn, **request)

    for missing in world.each_missing({each: allow(each) for each in actions}):
        if missing:
            assert f"must allow {missing} on * without a condition" in message(create)
    interfaces, subnet = f"arn:aws:ec2:{HERE}:network-interface/*", f"arn:aws:ec2:{HERE}:subnet/subnet-1"
    rest = [allow(each) for each in actions[1:]]
    inside = {"ArnEquals": {"ec2:Subnet": subnet}}
    for bounded in (allow(actions[0], interfaces), allow(actions[0], Condition=inside)):
        world.allow(bounded, *rest)
        assert f"must allow {actions[0]} on * without a condition" in message(create)
    world.allow(allow(actions[0]), *rest)
    assert "must allow" not in message(create)  # the recommender's package is not there


def served(world: World, **container: Any) -> Any:
    """A model, a config and an endpoint of the role, which may do everything; the client of SageMaker."""
    sagemaker, name = world.aws.client("sagemaker"), world.name
    sagemaker.create_model(ModelName=name, ExecutionRoleArn=world.arn, PrimaryContainer={"Image": IMAGE, **container})
    variant = {"VariantName": "main", "ModelName": name, "InstanceType": "ml.g4dn.xlarge", "InitialInstanceCount": 1}
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    return sagemaker


def test_an_endpoint_fails_where_a_right_of_its_models_role_is_missing(world: World) -> None:
    sagemaker, name = world.aws.client("sagemaker"), world.name
    world.role("sagemaker.amazonaws.com")
    at = {"Mode": "MultiModel", "ModelDataUrl": f"s3://{name}/some/"}
    assert 'that the role has "s3:ListBucket" permission' in message(lambda: served(world, **at))
    of_slash_alone = {"StringLike": {"s3:prefix": ["some/*"]}}
    world.allow(allow("s3:ListBucket", f"arn:aws:s3:::{name}", Condition=of_slash_alone))
    assert 'that the role has "s3:ListBucket" permission' in message(lambda: served(world, **at))
    below = {"StringLike": {"s3:prefix": ["some/*", "some"]}}
    rights = {
        "BatchGetImage permission for the image": allow(PULL, TRITON),
        "ecr:GetAuthorizationToken": allow("ecr:GetAuthorizationToken"),
        "Failed to download model data": allow("s3:ListBucket", f"arn:aws:s3:::{name}", Condition=below),
    }
    world.allow(*rights.values())
    served(world, **at).delete_endpoint(EndpointName=name)
    for missing in world.each_missing(rights):
        sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
        seen = sagemaker.describe_endpoint(EndpointName=name)
        assert seen["EndpointStatus"] == ("Failed" if missing else "InService"), seen
        assert missing in seen.get("FailureReason", "")
        if missing:
            sagemaker.delete_endpoint(EndpointName=name)
    assert {"cloudwatch:PutMetricData", "logs:CreateLogGroup"} <= set(world.denied()), "it serves without them"


def test_a_machine_invokes_what_its_role_may(world: World) -> None:
    world.role("lambda.amazonaws.com")
    function = world.function(ONE)
    states, machines = World(world.aws, f"{world.name}-m"), world.aws.client("stepfunctions")
    states.role("states.amazonaws.com")
    task = {"Type": "Task", "Resource": function, "End": True}
    machine = {"name": world.name, "definition": json.dumps({"StartAt": "T", "States": {"T": task}})}
    refused = message(lambda: machines.create_state_machine(**machine, roleArn=world.arn))
    assert "Neither the global service principal states.amazonaws.com" in refused
    logging = {"level": "ALL", "destinations": []}
    logged = message(lambda: machines.create_state_machine(**machine, roleArn=states.arn, loggingConfiguration=logging))
    assert "is not authorized to access the Log Destination" in logged
    arn = machines.create_state_machine(**machine, roleArn=states.arn)["stateMachineArn"]

    def end() -> dict[str, Any]:
        execution = machines.start_execution(stateMachineArn=arn)["executionArn"]
        found: dict[str, Any] = wait_until(
            lambda: machines.describe_execution(executionArn=execution), lambda seen: seen["status"] != "RUNNING"
        )
        return found

    failed = end()
    assert failed["error"] == "Lambda.AWSLambdaException"
    assert f"assumed-role/{states.name}/" in failed["cause"]
    assert "is not authorized to perform: lambda:InvokeFunction" in failed["cause"]
    states.allow(allow("lambda:InvokeFunction", function))
    assert end()["status"] == "SUCCEEDED"


def queue_policy(*names: tuple[str, str]) -> str:
    """Who may send: service and the ARN of its source."""
    statements = [
        allow("sqs:SendMessage", Principal={"Service": service}, Condition={"ArnEquals": {"aws:SourceArn": source}})
        for service, source in names
    ]
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def test_eventbridge_invokes_what_its_targets_policies_let_in_and_keeps_the_rest(world: World) -> None:
    queues, events, name = world.aws.client("sqs"), world.aws.client("events"), world.name
    rule = events.put_rule(Name=name, EventPattern=json.dumps({"source": [name]}))["RuleArn"]
    made = {}
    for queue, sources in (("open", [rule]), ("other", [f"{rule}-not"]), ("dead", [rule])):
        policy = queue_policy(*(("events.amazonaws.com", source) for source in sources))
        made[queue] = queues.create_queue(QueueName=f"{name}-{queue}", Attributes={"Policy": policy})["QueueUrl"]
    arns = {queue: f"arn:aws:sqs:{HERE}:{name}-{queue}" for queue in made}
    world.role("lambda.amazonaws.com")
    function = world.function(ONE)
    targets = [("1", function), ("2", arns["other"]), ("3", arns["open"])]
    dead = {"DeadLetterConfig": {"Arn": arns["dead"]}}
    events.put_targets(Rule=name, Targets=[{"Id": number, "Arn": arn, **dead} for number, arn in targets])
    assert [each["action"] for each in world.aws.get("/_tritonstack/iam")["denials"] if name in each["by"]] == []

    def put() -> dict[str, int]:
        events.put_events(Entries=[{"Source": name, "DetailType": "any", "Detail": "{}"}])
        return {
            queue: int(
                queues.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])["Attributes"][
                    "ApproximateNumberOfMessages"
                ]
            )
            for queue, url in made.items()
        }

    assert put() == {"open": 1, "other": 0, "dead": 2}
    assert sorted(set(world.denied()) & {"lambda:InvokeFunction", "sqs:SendMessage"}) == [
        "lambda:InvokeFunction",
        "sqs:SendMessage",
    ]
    world.aws.client("lambda").add_permission(
        FunctionName=name,
        StatementId="events",
        Action="lambda:InvokeFunction",
        Principal="events.amazonaws.com",
        SourceArn=rule,
    )
    assert put() == {"open": 2, "other": 0, "dead": 3}


def test_a_source_uses_its_connection_by_the_name_of_the_service_that_it_is_of(world: World) -> None:
    """The CDK grants ``codestar-connections:UseConnection`` alone."""
    world.role("codepipeline.amazonaws.com")
    pipelines, declared = world.aws.client("codepipeline"), declaration(world.name, world.arn)
    old, new = (
        allow(f"{service}:UseConnection", CONNECTION) for service in ("codestar-connections", "codeconnections")
    )
    world.allow(old)
    refused = message(lambda: pipelines.create_pipeline(pipeline=declared))
    assert f"not authorized to perform: codeconnections:UseConnection on resource: {CONNECTION}" in refused
    world.allow(old, new)
    assert message(lambda: pipelines.create_pipeline(pipeline=declared)) == ""


def test_an_alarm_publishes_to_topics_whose_policies_let_cloudwatch_in(world: World) -> None:
    topics, queues, name = world.aws.client("sns"), world.aws.client("sqs"), world.name
    inbox = queues.create_queue(QueueName=name)["QueueUrl"]
    alarm = f"arn:aws:cloudwatch:{HERE}:alarm:{name}"

    def topic(suffix: str, service: str) -> str:
        statement = allow(
            "sns:Publish", Principal={"Service": service}, Condition={"ArnEquals": {"aws:SourceArn": alarm}}
        )
        arn = topics.create_topic(Name=f"{name}-{suffix}")["TopicArn"]
        policy = json.dumps({"Version": "2012-10-17", "Statement": [{**statement, "Resource": arn}]})
        topics.set_topic_attributes(TopicArn=arn, AttributeName="Policy", AttributeValue=policy)
        topics.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=f"arn:aws:sqs:{HERE}:{name}")
        return str(arn)

    actions = [topic("closed", "events.amazonaws.com"), topic("open", "cloudwatch.amazonaws.com")]
    of = {"Namespace": name, "MetricName": "M", "Statistic": "Sum", "Period": 60, "EvaluationPeriods": 1}
    world.aws.client("cloudwatch").put_metric_alarm(
        AlarmName=name, ComparisonOperator="GreaterThanThreshold", Threshold=5, AlarmActions=actions, **of
    )
    world.aws.client("cloudwatch").set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="test")
    bodies = [json.loads(each["Body"]) for each in queues.receive_message(QueueUrl=inbox)["Messages"]]
    assert [each["TopicArn"] for each in bodies] == actions[1:]
    assert world.denied() == ["sns:Publish"]


def test_application_auto_scaling_tries_its_callers_rights(world: World) -> None:
    models = World(world.aws, f"{world.name}-m")
    models.role("sagemaker.amazonaws.com", allow("*"))
    served(models)
    linked, iam = "AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint", world.aws.client("iam")
    message(lambda: iam.delete_role(RoleName=linked))  # another test's
    of, alarm = target(models.name), f"arn:aws:cloudwatch:{HERE}:alarm:"
    endpoints = f"arn:aws:sagemaker:{HERE}:endpoint/"
    rights = {
        "sagemaker:DescribeEndpoint": allow("sagemaker:DescribeEndpoint", f"{endpoints}{models.name}"),
        "sagemaker:DescribeEndpointConfig": allow("sagemaker:DescribeEndpointConfig"),
        "sagemaker:UpdateEndpointWeightsAndCapacities": allow(
            "sagemaker:UpdateEndpointWeightsAndCapacities", f"{endpoints}*"
        ),
        "cloudwatch:PutMetricAlarm": allow("cloudwatch:PutMetricAlarm", f"{alarm}*"),
        "cloudwatch:DescribeAlarms": allow("cloudwatch:DescribeAlarms", f"{alarm}*"),
        "cloudwatch:DeleteAlarms": allow("cloudwatch:DeleteAlarms", f"{alarm}*"),
    }
    service = {"StringEquals": {"iam:AWSServiceName": "sagemaker.application-autoscaling.amazonaws.com"}}
    linking = allow("iam:CreateServiceLinkedRole", f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/*", Condition=service)
    own = allow("application-autoscaling:RegisterScalableTarget application-autoscaling:PutScalingPolicy")
    named = allow("cloudwatch:*", f"{alarm}TargetTracking-*")
    world.role("lambda.amazonaws.com")
    scaling = world.client("application-autoscaling")
    policy = {"PolicyName": "p", "PolicyType": "TargetTrackingScaling"}
    for missing in world.each_missing(
        {**rights, "iam:CreateServiceLinkedRole": linking, "application-autoscaling:": own}
    ):
        refused = message(lambda: scaling.register_scalable_target(**of, MinCapacity=1, MaxCapacity=3))
        assert missing in refused, refused
        assert ("(ValidationException)" in refused) is (missing in rights)
    world.allow(own, named, *(each for key, each in rights.items() if "Alarm" not in key))
    put = {**of, **policy, "TargetTrackingScalingPolicyConfiguration": INVOCATIONS}
    refused = message(lambda: scaling.put_scaling_policy(**put))
    assert f"cloudwatch:PutMetricAlarm on resource: {alarm} because no identity-based policy" in refused
    world.allow(own, *rights.values())
    assert message(lambda: scaling.put_scaling_policy(**put)) == ""
    assert iam.get_role(RoleName=linked)["Role"]["Path"].startswith(
        "/aws-service-role/sagemaker.application-autoscaling"
    )


def test_s3_uses_a_key_with_its_callers_rights(world: World) -> None:
    store, name = world.aws.client("s3"), world.name
    store.create_bucket(Bucket=name)
    key = world.aws.client("kms").create_key()["KeyMetadata"]["Arn"]
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}}
    store.put_bucket_encryption(Bucket=name, ServerSideEncryptionConfiguration={"Rules": [rule]})
    objects = allow("s3:GetObject s3:PutObject", f"arn:aws:s3:::{name}/*")
    through = {
        "kms:ViaService": "s3.us-east-1.amazonaws.com",
        "kms:EncryptionContext:aws:s3:arn": f"arn:aws:s3:::{name}/a",
    }
    world.role("lambda.amazonaws.com", objects, allow("kms:GenerateDataKey", key, Condition={"StringEquals": through}))
    mine = world.client("s3")
    assert "kms:GenerateDataKey" in message(lambda: mine.put_object(Bucket=name, Key="b", Body=b"text"))
    assert message(lambda: mine.put_object(Bucket=name, Key="a", Body=b"text")) == ""
    assert "kms:Decrypt" in message(lambda: mine.get_object(Bucket=name, Key="a"))
    world.allow(objects, allow("kms:Decrypt", key))
    assert message(lambda: mine.get_object(Bucket=name, Key="a")) == ""


def test_a_deleted_log_group_of_a_function_is_not_made_again_by_what_it_still_writes(aws: Emulator, name: str) -> None:
    """At AWS its role may not; a stack that is deployed again makes a group of that name, which must not exist."""
    logs, functions = aws.client("logs"), aws.client("lambda")
    make_function(aws, name, "def handler(event, context): print('a line')")
    group = f"/aws/lambda/{name}/Activation"
    logs.create_log_group(logGroupName=group)
    functions.update_function_configuration(FunctionName=name, LoggingConfig={"LogGroup": group})
    functions.invoke(FunctionName=name)
    assert wait_until(lambda: logs.filter_log_events(logGroupName=group)["events"], bool)
    logs.delete_log_group(logGroupName=group)
    functions.invoke(FunctionName=name)
    assert logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"] == []
