"""Who may do what: the pipeline's roles, those that it takes in environments, and the execution policies."""

from __future__ import annotations

import fnmatch
import json
import re
from typing import Any

import pytest

from tests.arns import arn_of
from tests.cases import table
from tests.stacks.app_process import ROOT
from tests.stacks.pipeline_templates import Synthesised, of_type, statements
from tritonstack.aws.iam_evaluation import Policies, Request, evaluate
from tritonstack.aws.iam_policies import listed
from tritonstack.config.pipeline import load_pipeline
from tritonstack.pipeline.bootstrap import environment_policy, pipeline_policy
from tritonstack.pipeline.builds import PipelineNames
from tritonstack.review.intrinsics import readable
from tritonstack.review.normal_form import normal

KEY = "arn:aws:kms:us-east-1:333333333333:key/1"
Row = tuple[str, str, dict[str, str]]
PROD, DEV = "333333333333", "111111111111"


def rows(name: str, account: str) -> list[Row]:
    """A table of requests: action, resource, context."""
    written = table(__file__, name, list[tuple[str, str] | tuple[str, str, dict[str, str]]])
    return [(action, arn_of(resource, account=account), dict(*context)) for action, resource, *context in written]


VERIFIES, PREPARES, MEASURES = rows("verifies", PROD), rows("prepares", PROD), rows("measures", DEV)
NOT_MEASURES, NEITHER = rows("does_not_measure", DEV), rows("neither", PROD)


def test_no_statement_of_the_pipeline_has_a_wildcard_for_a_resource_but_those_that_only_read(
    committed: Synthesised, other: Synthesised
) -> None:
    for made in (committed, other):
        everything = [each for each in statements(made.pipeline) if "*" in listed(each["Resource"])]
        allowed = {"cloudformation:DescribeStacks", "s3:ListBucket"}
        if made is other:  # one of its endpoints builds an image; the action takes no resource
            allowed |= {"ecr:GetAuthorizationToken"}
        assert {action for each in everything for action in listed(each["Action"])} <= allowed
        whole = json.dumps(list(statements(made.pipeline)))
        assert "role/*" not in whole
        assert "report-group" not in whole
        assert "/aws/codebuild/" not in whole


def test_services_assume_the_pipelines_roles_for_its_own_account_alone(
    committed: Synthesised, other: Synthesised
) -> None:
    """CodePipeline and CodeBuild user guides, "Cross-service confused deputy prevention"."""
    for made in (committed, other):
        trusts = [
            statement
            for role in of_type(made.pipeline, "AWS::IAM::Role")
            for statement in role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
            if "Service" in statement["Principal"]
        ]
        assert {each["Principal"]["Service"] for each in trusts} >= {
            "codebuild.amazonaws.com",
            "codepipeline.amazonaws.com",
        }
        equals = [each.get("Condition", {}).get("StringEquals", {}) for each in trusts]
        assert {each.get("aws:SourceAccount") for each in equals} == {"444444444444"}


def test_each_build_may_assume_the_one_role_that_trusts_it(committed: Synthesised, other: Synthesised) -> None:
    """Both sides name the other by a fixed name: the pair must fit, with the path of the roles."""
    for made, path, environments in ((committed, "/", ("dev", "staging", "prod")), (other, "/team/", ("dev", "prod"))):
        trusted: dict[str, str] = {}
        for environment in environments:
            for role in of_type(made.access(environment), "AWS::IAM::Role"):
                [statement] = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
                assert "444444444444:root" in json.dumps(statement["Principal"])
                account = {"dev": "111111111111", "staging": "222222222222", "prod": "333333333333"}[environment]
                own = f"arn:aws:iam::{account}:role/{role['Properties']['RoleName']}"
                trusted[statement["Condition"]["ArnEquals"]["aws:PrincipalArn"]] = own
        assumed: dict[str, str] = {}
        roles = {name: each for name, each in made.pipeline["Resources"].items() if each["Type"] == "AWS::IAM::Role"}
        for policy in of_type(made.pipeline, "AWS::IAM::Policy"):
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
                if statement.get("Sid") == "WorkInEnvironment":
                    [role] = policy["Properties"]["Roles"]
                    name = roles[role["Ref"]]["Properties"]["RoleName"]
                    assert roles[role["Ref"]]["Properties"].get("Path", "/") == path
                    assumed[f"arn:aws:iam::444444444444:role{path}{name}"] = statement["Resource"]
        assert assumed == trusted
        assert len(assumed) == 2 * len(environments) + 1, "and one that measures"


def test_the_connection_may_be_used_under_both_names_of_its_service(committed: Synthesised) -> None:
    """By the role that reads the source; each name has an ARN of its own (test_every_template checks the pairs)."""
    rest = "us-east-1:444444444444:connection/11111111-2222-3333-4444-555555555555"
    both = [
        {"Effect": "Allow", "Action": f"{service}:UseConnection", "Resource": f"arn:aws:{service}:{rest}"}
        for service in ("codeconnections", "codestar-connections")
    ]
    granted = [
        [each for each in policy["Properties"]["PolicyDocument"]["Statement"] if "UseConnection" in str(each["Action"])]
        for policy in of_type(committed.pipeline, "AWS::IAM::Policy")
    ]
    readers = [each for each in granted if each]
    assert readers
    assert all(each == both for each in readers)


def test_execution_policies_cover_every_role_that_the_stacks_have(committed: Synthesised) -> None:
    """What ``tritonstack pipeline bootstrap`` writes; the types are held by the tests of CloudFormation's handlers."""
    loaded = load_pipeline(ROOT / "pipeline.yaml", environments=ROOT / "environments")
    names = PipelineNames.of(loaded.settings)
    made = {"pipeline": ([committed.folder / "pipeline.template.json"], pipeline_policy(loaded))}
    for stage in loaded.stages:
        name = stage.environment.environment
        files = sorted((committed.folder / f"assembly-{name}").glob("*.template.json"))
        made[name] = (files, environment_policy(stage.environment, names))
    for name, (files, policy) in made.items():
        roles = next(each["Resource"] for each in policy["Statement"] if each["Sid"] == "Roles")
        assert files
        for file in files:
            for logical_id, resource in json.loads(file.read_text())["Resources"].items():
                if resource["Type"] == "AWS::IAM::Role":
                    start = "tritonstack-pipeline" if name == "pipeline" else name
                    made_name = resource["Properties"].get("RoleName", f"{start}-{logical_id}")
                    account = roles[0].split(":")[4]
                    arn = f"arn:aws:iam::{account}:role/{made_name}"
                    assert any(fnmatch.fnmatchcase(arn, pattern) for pattern in roles), f"{file.name}: {made_name}"


def policy_of(access: dict[str, Any], work: str) -> list[dict[str, Any]]:
    """The statements of the role for this work, with the bucket and key that its parameters would name."""
    [found] = [
        policy["Properties"]["PolicyDocument"]["Statement"]
        for name, policy in access["Resources"].items()
        if policy["Type"] == "AWS::IAM::Policy" and name.startswith(work)
    ]

    def text(value: Any) -> str:
        shown = readable(normal(value, {}))
        shown = re.sub(r"\$\{SsmParameter\w+loadtestprojectname\w+\}", "Bench", shown)
        shown = re.sub(r"\$\{SsmParameter\w+loadteststatemachinename\w+\}", "Recommender", shown)
        shown = re.sub(r"\$\{ArtifactsBucketName\w+\}", "archives", shown)
        return re.sub(r"\$\{ArtifactsKeyArn\w+\}", KEY, shown)

    return [{**each, "Resource": [text(one) for one in listed(each["Resource"])]} for each in found]


CALLER = "arn:aws:iam::333333333333:role/any"


def allowed(requests: list[Row], statements: list[dict[str, Any]]) -> list[Row]:
    """Of these requests, those that a role with such statements may make."""
    return [
        row
        for row in requests
        if evaluate(
            Request(principal=CALLER, action=row[0], resource=row[1], context=row[2]), Policies(identity=statements)
        ).allowed
    ]


@pytest.mark.parametrize("work", ["Verify", "Prepare"])
def test_each_role_may_do_its_work_and_nothing_that_is_not(committed: Synthesised, work: str) -> None:
    policy = policy_of(committed.access("prod"), work)
    own, foreign = (VERIFIES, PREPARES) if work == "Verify" else (PREPARES, VERIFIES)
    assert allowed(own, policy) == own
    assert allowed(NEITHER, policy) == []
    other_work = "s3:PutObject" if work == "Verify" else "sagemaker:InvokeEndpoint"
    assert allowed([row for row in foreign if row[0] == other_work], policy) == []


def test_who_measures_starts_tests_and_reads_them_and_calls_no_endpoint_itself(other: Synthesised) -> None:
    policy = policy_of(other.access("dev"), "Measure")
    assert allowed(MEASURES, policy) == MEASURES
    assert allowed([*NOT_MEASURES, *NEITHER], policy) == []


def test_each_statement_of_the_measuring_policy_is_needed_as_narrow_as_it_is(other: Synthesised) -> None:
    """One that is removed, of everything, or unconditional changes a verdict."""
    policy = policy_of(other.access("dev"), "Measure")
    tried = [*MEASURES, *NOT_MEASURES, *NEITHER]
    before = allowed(tried, policy)
    survivors = []
    for index, statement in enumerate(policy):
        changes: dict[str, list[dict[str, Any]]] = {"removed": [], "of everything": [{**statement, "Resource": "*"}]}
        if statement.get("Condition"):
            changes["unconditional"] = [{**statement, "Condition": {}}]
        for what, instead in changes.items():
            if allowed(tried, [*policy[:index], *instead, *policy[index + 1 :]]) == before:
                survivors.append(f"{statement['Sid']} {what}")
    assert survivors == []


def test_only_a_load_test_gets_the_role_of_load_tests(committed: Synthesised) -> None:
    assert "measure" in json.dumps(committed.access("staging"))
    assert not [name for name in ("dev", "prod") if "measure" in json.dumps(committed.access(name))]
