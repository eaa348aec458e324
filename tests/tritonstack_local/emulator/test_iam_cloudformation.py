"""What CloudFormation's handlers need of a stack's principal, and what comes of a refusal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from scripts.update_cloudformation_schemas import extract_permissions
from tests.arns import ACCOUNT, arn, arn_of
from tests.cases import cases
from tests.constructs_lib.templates import template_of
from tests.stacks.app_process import ROOT
from tests.stacks.everything import everything, everything_served, stacks_of
from tests.tritonstack_local.emulator.running import Emulator, parameter
from tritonstack.aws.iam_evaluation import Policies, Request, evaluate
from tritonstack.config.loader import load_environment
from tritonstack.config.pipeline import load_pipeline
from tritonstack.pipeline.bootstrap import environment_policy, pipeline_policy
from tritonstack.pipeline.builds import PipelineNames
from tritonstack.review.intrinsics import readable
from tritonstack.review.normal_form import normal
from tritonstack_local.emulator.cloudformation import handler_needs
from tritonstack_local.emulator.cloudformation.handler_needs import (
    ResourceChange,
    Role,
    Site,
    UnknownTypeError,
    arn_formats,
    handler_actions,
    needs_of_handler,
)
from tritonstack_local.emulator.iam.needs import Need

FOLDER = Path(handler_needs.__file__).parent
PERMISSIONS = json.loads((FOLDER / "handler_permissions.json").read_text())
TYPES: dict[str, Any] = json.loads((FOLDER / "handler_resources.json").read_text())["types"]
EVENTS: tuple[handler_needs.Event, ...] = ("create", "update", "delete")

# --- The data ---


def test_the_permissions_are_those_of_the_installed_schemas() -> None:
    assert extract_permissions(list(PERMISSIONS["types"])) == PERMISSIONS


def test_each_type_has_its_calls_in_one_file_and_its_arn() -> None:
    with_calls = {kind for kind, each in TYPES.items() if "calls" in each}
    assert with_calls | PERMISSIONS["types"].keys() == TYPES.keys()
    assert not with_calls & PERMISSIONS["types"].keys()
    assert [kind for kind in PERMISSIONS["types"] if "own" not in TYPES[kind]] == []


def rules(kind: str) -> Iterator[tuple[dict[str, Any], set[str]]]:
    """Each rule of a type, with the actions that it is about; last the other actions of its own service."""
    left = {action for event in EVENTS for action in handler_actions(kind, event)}
    for rule in TYPES[kind].get("rules", ()):
        about = {each for each in left if handler_needs._is_about(rule, each)}
        left -= about
        yield rule, about
    own = str(TYPES[kind].get("own"))
    yield {"on": ["{own}"]}, {each for each in left if each.split(":")[0] in own}


def fits(kind: str, form: str, action: str) -> bool:
    """Whether a form is one of those that the reference has for an action."""
    if form.startswith("{own}"):
        return any(fits(kind, own + form.removeprefix("{own}"), action) for own in TYPES[kind]["own"])
    if form == "*" or re.fullmatch(r"(role:)?\{[A-Z][^{}]*\}", form):
        return True  # unknown, or an ARN among the properties
    service, _, rest = form.rpartition("|")
    text = f"arn:aws:{service}:us-east-1:{ACCOUNT}:{rest}" if service else form
    text = re.sub(r"\{[^}]+\}", "x", text.replace("{path}", "/"))
    patterns = [re.sub(r"\\\$\\\{.+?\\\}", ".+", re.escape(each)) for each in arn_formats(action) or ()]
    return any(re.fullmatch(each, text) for each in patterns)


UNFIT = {("AWS::CloudWatch::Dashboard", f"cloudwatch:{each}Resource") for each in ("Tag", "Untag", "ListTagsFor")}
"""The reference has no dashboard among what these tag; the schema names them all the same."""


@pytest.mark.parametrize("kind", TYPES)
def test_an_arn_is_one_that_its_actions_take_and_no_rule_is_dead_or_without_a_reason(kind: str) -> None:
    for rule, actions in rules(kind):
        if "actions" in rule:
            assert actions, f"{rule['actions']} is about nothing that a handler calls"
            conditional = "with" in rule or "without" in rule or rule.get("on") == []
            assert conditional is ("because" in rule), rule
        for action in actions:
            if arn_formats(action) and (kind, action) not in UNFIT:
                for form in rule.get("on", ()):
                    assert fits(kind, form, action), f"{action} on {form}: {arn_formats(action)}"


# --- The needs of a resource ---

ROLE = f"arn:aws:iam::{ACCOUNT}:role/team/Runs"
SITE = Site(account=ACCOUNT, region="us-east-1", role=lambda name: Role(arn=f"arn:aws:iam::{ACCOUNT}:role/team/{name}"))


def needs(kind: str, event: handler_needs.Event, properties: Mapping[str, Any], **given: Any) -> list[Need]:
    change = ResourceChange(
        kind=kind, event=event, properties=properties, stack="dev-serving", logical_id="One", **given
    )
    return list(needs_of_handler(change, SITE))


def test_every_need_of_a_queue_policy_of_a_custom_resource_and_of_a_wait_condition() -> None:
    queue = {"Queues": ["http://127.0.0.1:4566/123456789012/dead-letters"]}
    assert needs("AWS::SQS::QueuePolicy", "create", queue) == [
        Need(action="sqs:SetQueueAttributes", resource=arn("sqs", "dead-letters"))
    ]
    function = arn("lambda", "function:waits")
    for event in EVENTS:
        made = needs("Custom::Anything", event, {"ServiceToken": function}, physical_id="x")
        assert made == [Need(action="lambda:InvokeFunction", resource=function)]
        assert needs("AWS::CloudFormation::WaitCondition", event, {"Timeout": "1"}) == []


FUNCTION = {"Role": ROLE, "Code": {"S3Bucket": "assets", "S3Key": "a.zip"}}


@cases("kind, event, properties, physical_id, needed")
def test_an_action_is_needed_on_the_arn_with_the_condition_keys_that_aws_evaluates(
    kind: str,
    event: handler_needs.Event,
    properties: dict[str, Any],
    physical_id: str | None,
    needed: tuple[str, str, dict[str, str | tuple[str, ...]]],
) -> None:
    action, resource, context = needed
    wanted = Need(action=action, resource=arn_of(resource), context=context)
    assert wanted in needs(kind, event, properties, physical_id=physical_id)


@cases("kind, properties, action, name")
def test_an_action_that_a_property_makes_the_handler_call_is_not_needed_without_it(
    kind: str, properties: dict[str, Any], action: str, name: str
) -> None:
    def is_needed(given: dict[str, Any]) -> bool:
        return any(each.action == action for event in EVENTS for each in needs(kind, event, given, physical_id="x"))

    assert is_needed(properties)
    assert not is_needed({key: value for key, value in properties.items() if key != name})


def test_a_role_that_is_only_mentioned_is_not_passed() -> None:
    mentions = {**FUNCTION, "Environment": {"Variables": {"ASSUMES": f"{ROLE}-of-others"}}}
    made = needs("AWS::Lambda::Function", "create", mentions)
    assert [each.resource for each in made if each.action == "iam:PassRole"] == [ROLE]


def test_a_type_without_data_is_refused_by_name() -> None:
    with pytest.raises(UnknownTypeError, match=r"update_cloudformation_schemas AWS::DynamoDB::Table"):
        needs("AWS::DynamoDB::Table", "create", {})


# --- Execution policies of ``tritonstack pipeline bootstrap`` ---


@dataclass(frozen=True, kw_only=True)
class Place:
    """What is deployed with one execution policy, every reference followed."""

    account: str
    region: str
    templates: Mapping[str, Any]  # by the stack's name
    policy: Mapping[str, Any]

    def needs(self) -> list[Need]:
        """Everything that its stacks need, from creation to deletion."""
        site = Site(account=self.account, region=self.region, role=self._roles().__getitem__)
        return [
            need
            for stack, template in self.templates.items()
            for logical_id, each in template["Resources"].items()
            for event in EVENTS
            for need in needs_of_handler(self._change(stack, logical_id, each, event), site)
        ]

    def lacking(self, statements: list[Any]) -> set[tuple[str, str]]:
        """Actions and resources of the needs that statements do not allow."""
        role, policies = f"arn:aws:iam::{self.account}:role/cdk-cfn-exec", Policies(identity=statements)
        return {
            (need.action, need.resource)
            for need in self.needs()
            if not evaluate(
                Request(principal=role, action=need.action, resource=need.resource, context=need.context), policies
            ).allowed
        }

    def _change(self, stack: str, logical_id: str, made: Any, event: handler_needs.Event) -> ResourceChange:
        # Generated names are the same each time; a resource with an id gets its logical id, known before it is created.
        physical_id = logical_id.lower() if event != "create" and "name" not in TYPES.get(made["Type"], {}) else None
        return ResourceChange(
            kind=made["Type"],
            event=event,
            properties=self._resolved(stack, made.get("Properties", {})),
            stack=stack,
            logical_id=logical_id,
            physical_id=physical_id,
        )

    def _roles(self) -> dict[str, Role]:
        found = {}
        for stack, template in self.templates.items():
            for logical_id, made in template["Resources"].items():
                if made["Type"] == "AWS::IAM::Role":
                    own = self._arn(stack, logical_id)
                    found[own.rpartition("/")[2]] = Role(
                        arn=own, boundary=made["Properties"].get("PermissionsBoundary")
                    )
        return found

    def _arn(self, stack: str, logical_id: str) -> str:
        made = self.templates[stack]["Resources"][logical_id]
        named = {key: each for key, each in made.get("Properties", {}).items() if isinstance(each, str)}
        change = self._change(stack, logical_id, {"Type": made["Type"], "Properties": named}, "delete")
        site = Site(account=self.account, region=self.region, role=lambda name: Role(arn=name))
        return handler_needs._Resource(change, site).values("own")[0]

    def _resolved(self, stack: str, value: Any) -> Any:
        if isinstance(value, list):
            return [self._resolved(stack, each) for each in value]
        if isinstance(value, dict) and not any(key == "Ref" or key.startswith("Fn::") for key in value):
            return {key: self._resolved(stack, each) for key, each in value.items()}
        if not isinstance(value, str | dict):
            return value
        text = value if isinstance(value, str) else readable(normal(value, {}))
        return re.sub(r"\$\{([^}!]+)\}", lambda found: self._reference(stack, found[1]), text)

    def _reference(self, stack: str, name: str) -> str:
        pseudo = {"AWS::Partition": "aws", "AWS::Region": self.region, "AWS::AccountId": self.account}
        if name in pseudo:
            return pseudo[name]
        logical_id, _, attribute = name.partition(".")
        made = self.templates[stack]["Resources"].get(logical_id)
        if made is None:
            return self._parameter(self.templates[stack].get("Parameters", {}).get(name, {}).get("Default", name))
        if made["Type"].startswith(("AWS::SNS", "AWS::StepFunctions")) or attribute == "Arn":
            return self._arn(stack, logical_id)
        if made["Type"] == "AWS::IAM::Role":
            return self._arn(stack, logical_id).rpartition("/")[2]
        return logical_id.lower()

    def _parameter(self, name: str) -> str:
        """What another stack of the place writes into a parameter of Systems Manager."""
        for stack, template in self.templates.items():
            for each in template["Resources"].values():
                if each["Type"] == "AWS::SSM::Parameter" and each["Properties"].get("Name") == name:
                    return str(self._resolved(stack, each["Properties"]["Value"]))
        return name


def templates_of(name: str, pattern: str) -> dict[str, Any]:
    """Snapshots of stacks, under the names that the stacks have."""
    read = {file.stem: json.loads(file.read_text()) for file in sorted(ROOT.glob(pattern))}
    return {f"{name}-{stem}": each for stem, each in read.items() if "Resources" in each}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Place]:
    pipeline = load_pipeline(ROOT / "pipeline.yaml", environments=ROOT / "environments")
    settings, names = pipeline.settings, PipelineNames.of(pipeline.settings)
    found = {
        "pipeline": Place(
            account=settings.account,
            region=settings.region,
            templates=templates_of(settings.name, "snapshots-pipeline/_app/*.json"),
            policy=pipeline_policy(pipeline),
        )
    }
    for name in sorted(path.name for path in (ROOT / "snapshots").iterdir()):
        environment = load_environment(ROOT / "environments" / f"{name}.yaml")
        found[name] = Place(
            account=environment.account,
            region=environment.region,
            templates=templates_of(name, f"snapshots*/{name}/*.json"),
            policy=environment_policy(environment, names),
        )
    folder = tmp_path_factory.mktemp("everything")
    served = everything_served(folder).environment
    found["everything"] = Place(
        account=served.account,
        region=served.region,
        templates={stack.stack_name: template_of(stack) for stack in stacks_of(everything(folder))},
        policy=environment_policy(served, names),
    )
    return found


PLACES = ["pipeline", "everything", *sorted(path.name for path in (ROOT / "snapshots").iterdir())]


@pytest.mark.parametrize("name", PLACES)
def test_an_execution_policy_has_exactly_the_statements_that_its_stacks_need(
    places: dict[str, Place], name: str
) -> None:
    place = places[name]
    statements = list(place.policy["Statement"])
    assert place.lacking(statements) == set()
    for number, statement in enumerate(statements):
        assert place.lacking(statements[:number] + statements[number + 1 :]), f"{statement['Sid']} is not needed"


# --- Stacks on the local AWS ---

TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "cloudformation.amazonaws.com"}, "Action": "sts:AssumeRole"}
    ],
}


def allow(*actions: str, resource: str = "*") -> dict[str, Any]:
    return {"Effect": "Allow", "Action": list(actions), "Resource": resource}


@dataclass(frozen=True, kw_only=True)
class ExecutionRole:
    """A role that CloudFormation may assume, with one inline policy."""

    aws: Emulator
    name: str

    @property
    def arn(self) -> str:
        return f"arn:aws:iam::{ACCOUNT}:role/{self.name}"

    def may(self, *statements: dict[str, Any]) -> None:
        document = json.dumps({"Version": "2012-10-17", "Statement": statements})
        self.aws.client("iam").put_role_policy(RoleName=self.name, PolicyName="p", PolicyDocument=document)


@pytest.fixture
def aws(guarded: Emulator) -> Emulator:
    """Permissions are enforced."""
    return guarded


@pytest.fixture
def role(aws: Emulator, name: str) -> ExecutionRole:
    aws.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(TRUST))
    return ExecutionRole(aws=aws, name=name)


def own_parameter(name: str, value: str) -> dict[str, Any]:
    made = parameter(value)
    return {**made, "Properties": {**made["Properties"], "Name": f"/{name}/one"}}


def test_a_stack_does_what_its_role_may_and_an_event_names_the_first_action_that_it_may_not(
    aws: Emulator, name: str, role: ExecutionRole
) -> None:
    own = f"arn:aws:ssm:us-east-1:{ACCOUNT}:parameter/{name}/one"
    role.may(allow("ssm:PutParameter", "ssm:AddTagsToResource", resource=own))
    assert aws.deploy(name, {"One": own_parameter(name, "1")}, RoleARN=role.arn) == "ROLLBACK_COMPLETE"
    assert aws.failures(name).splitlines()[-1] == (
        f'Resource handler returned message: "User: arn:aws:sts::{ACCOUNT}:assumed-role/{name}/AWSCloudFormation is not'
        f" authorized to perform: ssm:GetParameters on resource: {own} because no identity-based policy allows the"
        ' ssm:GetParameters action (Service: SSM, Status Code: 403)" (HandlerErrorCode: AccessDenied)'
    )
    assert aws.delete_stack(name) == "DELETE_COMPLETE"

    role.may(allow("ssm:*", resource=own))
    assert aws.deploy(name, {"One": own_parameter(name, "1")}, RoleARN=role.arn) == "CREATE_COMPLETE", aws.failures(
        name
    )
    role.may(allow("ssm:PutParameter", "ssm:AddTagsToResource", "ssm:GetParameters", resource=own))
    # The administrator's update runs with the role that the stack has, too.
    assert aws.deploy(name, {"One": own_parameter(name, "2")}) == "UPDATE_ROLLBACK_COMPLETE"
    assert "ssm:ListTagsForResource" in aws.failures(name)
    both = {"One": own_parameter(name, "1"), "Two": parameter("2")}
    assert aws.deploy(name, both) == "UPDATE_ROLLBACK_COMPLETE", "what does not change needs nothing"
    assert aws.client("ssm").get_parameter(Name=f"/{name}/one")["Parameter"]["Value"] == "1"
    assert aws.delete_stack(name) == "DELETE_FAILED"
    assert "ssm:DeleteParameter" in aws.failures(name)
    role.may(allow("ssm:*"))
    assert aws.delete_stack(name) == "DELETE_COMPLETE"


def test_the_role_of_a_change_set_is_the_stacks_from_its_execution_on(
    aws: Emulator, name: str, role: ExecutionRole
) -> None:
    role.may(allow("ssm:*"))
    stacks = aws.client("cloudformation")

    def execute(change: str, kind: str, resources: dict[str, Any], **more: Any) -> str:
        body = json.dumps({"Resources": resources})
        stacks.create_change_set(StackName=name, ChangeSetName=change, ChangeSetType=kind, TemplateBody=body, **more)
        stacks.get_waiter("change_set_create_complete").wait(
            StackName=name, ChangeSetName=change, WaiterConfig={"Delay": 1}
        )
        stacks.execute_change_set(StackName=name, ChangeSetName=change)
        return str(aws.settled(name)["StackStatus"])

    one = {"One": parameter("1")}
    assert execute("first", "CREATE", one, RoleARN=role.arn) == "CREATE_COMPLETE", aws.failures(name)
    topic = {"Type": "AWS::SNS::Topic"}
    assert execute("second", "UPDATE", {**one, "Topic": topic}) == "UPDATE_ROLLBACK_COMPLETE"
    assert f"assumed-role/{name}/AWSCloudFormation is not authorized to perform: sns:CreateTopic" in aws.failures(name)
    assert aws.delete_stack(name) == "DELETE_COMPLETE"


def test_parameters_of_a_template_from_systems_manager_need_the_permission_to_read_them(
    aws: Emulator, name: str, role: ExecutionRole
) -> None:
    aws.client("ssm").put_parameter(Name=f"/{name}/given", Value="7", Type="String")
    own = f"arn:aws:ssm:us-east-1:{ACCOUNT}:parameter/{name}/*"
    kind = "AWS::SSM::Parameter::Value<String>"
    template = {
        "Parameters": {"Given": {"Type": kind, "Default": f"/{name}/given"}},
        "Resources": {"One": own_parameter(name, "1")},
        "Outputs": {"Given": {"Value": {"Ref": "Given"}}},
    }
    role.may(allow("ssm:*Parameter", "ssm:*Tags*", resource=own))
    stacks = aws.client("cloudformation")
    given = {"StackName": name, "TemplateBody": json.dumps(template), "RoleARN": role.arn}
    with pytest.raises(ClientError, match=r"AccessDenied\. User doesn't have permission to call ssm:GetParameters"):
        stacks.create_stack(**given)
    role.may(allow("ssm:*", resource=own))
    stacks.create_stack(**given)
    assert aws.settled(name)["Outputs"][0]["OutputValue"] == "7"


def test_a_role_that_does_not_trust_cloudformation_is_refused_at_once(aws: Emulator, name: str) -> None:
    trust = json.dumps(TRUST).replace("cloudformation", "lambda")
    made = aws.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    for arn_of_role in (made, f"{made}-that-is-not-there"):
        with pytest.raises(ClientError, match=rf"Role {arn_of_role} is invalid or cannot be assumed"):
            aws.create_stack(name, {"One": parameter()}, RoleARN=arn_of_role)
