"""The pipeline's template: what comes after what, what goes back, and who may do what."""

from __future__ import annotations

import fnmatch
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.stacks.app_process import ROOT, files_under, run_app
from tests.stacks.test_cfn_lint import linter, passed_over, said
from tritonstack.errors import InputError
from tritonstack.pipeline.bootstrap import environment_policy, pipeline_policy
from tritonstack.pipeline.names import PipelineNames
from tritonstack.pipeline.snapshot import FOLDER, added_by_pipeline
from tritonstack.review.assembly import read_assembly
from tritonstack.review.current import out_of_date
from tritonstack.settings.pipeline_loader import load_pipeline

Template = dict[str, Any]


class Synthesised:
    """The app with a pipeline."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pipeline = self.template("pipeline.template.json")
        [self.definition] = [each["Properties"] for each in of_type(self.pipeline, "AWS::CodePipeline::Pipeline")]
        self.stages: dict[str, Template] = {stage["Name"]: stage for stage in self.definition["Stages"]}

    def template(self, name: str) -> Template:
        """A template of the assembly."""
        template: Template = json.loads((self.folder / name).read_text())
        return template

    def actions(self, stage: str) -> list[str]:
        """Names of a stage's actions in the order of their run."""
        ordered = sorted(self.stages[stage]["Actions"], key=lambda action: int(action["RunOrder"]))
        assert len({action["RunOrder"] for action in ordered}) == len(ordered), "none beside another"
        return [action["Name"] for action in ordered]

    def access(self, environment: str) -> Template:
        """The stack that lets the pipeline into an environment."""
        [found] = (self.folder / f"assembly-{environment}").glob("*pipelineaccess*.template.json")
        template: Template = json.loads(found.read_text())
        return template


def of_type(template: Template, kind: str) -> list[Template]:
    return [each for each in template["Resources"].values() if each["Type"] == kind]


def synthesised(folder: Path, *, pipeline: Template | None = None) -> Synthesised:
    """The committed pipeline, or another over the committed environments."""
    file = "true"
    if pipeline is not None:
        (folder / "pipeline.yaml").write_text(yaml.safe_dump(pipeline))
        file = str(folder / "pipeline.yaml")
    ran = run_app(folder / "out", context={"pipeline": file})
    assert ran.returncode == 0, ran.stderr
    return Synthesised(folder / "out")


@pytest.fixture(scope="session")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """The repository's own pipeline, synthesised without credentials and network."""
    return synthesised(tmp_path_factory.mktemp("pipeline"))


def settings(**more: Any) -> Template:
    """A pipeline over dev and prod."""
    return {
        "name": "other",
        "account": "444444444444",
        "region": "us-east-1",
        "source": {
            "connection": "arn:aws:codeconnections:us-east-1:444444444444:connection/"
            "11111111-2222-3333-4444-555555555555",
            "repository": "a/b",
            "paths": ["model_repos/**"],
        },
        "permissions_boundary": "arn:aws:iam::444444444444:policy/boundary",
        "role_path": "/team/",
        "email": ["team@example.com"],
        "stages": [
            {
                "environment": "dev",
                "rollback": False,
                "gates": [
                    {"name": "cost", "function": "cost-gate"},
                    {"name": "load-test", "commands": ["scripts/load.sh"], "timeout_minutes": 30},
                ],
            },
            {"environment": "prod"},
        ],
        **more,
    }


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """A pipeline with everything else on: paths, a path of roles, a boundary, gates of both kinds, no rollback."""
    return synthesised(tmp_path_factory.mktemp("other"), pipeline=settings())


def test_the_stages_go_from_the_source_to_production_which_is_approved_after_the_gates(committed: Synthesised) -> None:
    assert list(committed.stages) == [
        "Source",
        "Build",
        "UpdatePipeline",
        "Assets",
        "dev",
        "staging",
        "gates-staging",
        "approve-prod",
        "prod",
    ]
    [approval] = committed.stages["approve-prod"]["Actions"]
    assert approval["ActionTypeId"]["Provider"] == "Manual"
    assert "dashboard" in approval["Configuration"]["CustomData"]
    assert committed.definition["PipelineType"] == "V2"
    assert committed.definition["ExecutionMode"] == "QUEUED"


def test_archives_are_made_after_what_holds_them_and_before_what_serves_them(committed: Synthesised) -> None:
    for name in ("dev", "staging", "prod"):
        actions = committed.actions(name)
        made = actions.index(f"pipeline-access.prepare-{name}")
        assert actions.index("artifacts.Deploy") < actions.index("pipeline-access.Deploy") < made
        assert all(made < actions.index(each) for each in actions if each.startswith("serving-"))
        assert actions[-1] == f"verify-{name}", "verified last, with everything deployed"


def test_a_stage_that_fails_goes_back_and_neither_source_nor_gate_nor_approval_does(
    committed: Synthesised, other: Synthesised
) -> None:
    def back(made: Synthesised) -> list[str]:
        return [name for name, stage in made.stages.items() if stage.get("OnFailure") == {"Result": "ROLLBACK"}]

    assert back(committed) == ["dev", "staging", "prod"]
    assert back(other) == ["prod"]
    assert not [name for name, stage in other.stages.items() if "OnFailure" in stage and name != "prod"]


def test_gates_are_named_and_follow_one_another(other: Synthesised) -> None:
    assert other.actions("gates-dev") == ["cost", "load-test"]
    providers = [action["ActionTypeId"]["Provider"] for action in other.stages["gates-dev"]["Actions"]]
    assert providers == ["Lambda", "CodeBuild"]
    assert list(other.stages).index("dev") + 1 == list(other.stages).index("gates-dev")


def test_only_pushes_that_change_named_files_start_it(other: Synthesised, committed: Synthesised) -> None:
    [trigger] = other.definition["Triggers"]
    assert trigger["GitConfiguration"] == {
        "SourceActionName": other.stages["Source"]["Actions"][0]["Name"],
        "Push": [{"Branches": {"Includes": ["main"]}, "FilePaths": {"Includes": ["model_repos/**"]}}],
    }
    assert "Triggers" not in committed.definition


def statements(template: Template) -> Iterator[Template]:
    for policy in of_type(template, "AWS::IAM::Policy"):
        yield from policy["Properties"]["PolicyDocument"]["Statement"]


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_no_statement_of_the_pipeline_has_a_wildcard_for_a_resource_but_three_reading_ones(
    committed: Synthesised, other: Synthesised
) -> None:
    for made in (committed, other):
        everything = [each for each in statements(made.pipeline) if "*" in listed(each["Resource"])]
        allowed = {"cloudformation:DescribeStacks", "s3:ListBucket", "lambda:ListFunctions"}
        assert {action for each in everything for action in listed(each["Action"])} <= allowed
        whole = json.dumps(list(statements(made.pipeline)))
        assert "role/*" not in whole
        assert "report-group" not in whole
        assert "/aws/codebuild/" not in whole


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
        assert len(assumed) == 2 * len(environments)


def test_who_verifies_writes_nothing_and_who_prepares_calls_no_endpoint(committed: Synthesised) -> None:
    access = committed.access("prod")
    by_role: dict[str, list[str]] = {}
    for policy in of_type(access, "AWS::IAM::Policy"):
        [role] = policy["Properties"]["Roles"]
        name = access["Resources"][role["Ref"]]["Properties"]["RoleName"]
        by_role[name] = [
            action
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
            for action in listed(statement["Action"])
        ]
    prepare, verify = by_role["tritonstack-prod-prepare"], by_role["tritonstack-prod-verify"]
    writing = ("*:Put*", "*:Delete*", "*:Create*", "*:Update*", "*:Start*", "*:Stop*", "*:Pass*")
    assert not [action for action in verify for pattern in writing if fnmatch.fnmatchcase(action, pattern)]
    assert not [action for action in prepare if "InvokeEndpoint" in action]
    assert not [action for action in prepare + verify if "*" in action]


def test_execution_policies_cover_every_type_and_every_role_that_the_stacks_have(committed: Synthesised) -> None:
    """What ``tritonstack pipeline bootstrap`` writes is enough for what is synthesised."""
    loaded = load_pipeline(ROOT / "pipeline.yaml", environments=ROOT / "environments")
    names = PipelineNames.of(loaded.settings)
    made = {"pipeline": ([committed.folder / "pipeline.template.json"], pipeline_policy(loaded))}
    for stage in loaded.stages:
        name = stage.environment.environment
        files = sorted((committed.folder / f"assembly-{name}").glob("*.template.json"))
        made[name] = (files, environment_policy(stage.environment, names))
    for name, (files, policy) in made.items():
        allowed = {action for each in policy["Statement"] for action in listed(each["Action"])}
        roles = next(each["Resource"] for each in policy["Statement"] if each["Sid"] == "Roles")
        assert files
        for file in files:
            for resource in json.loads(file.read_text())["Resources"].values():
                service = resource["Type"].split("::")[1].lower()
                if resource["Type"].startswith("Custom::") or service == "iam":
                    continue
                service = {"applicationautoscaling": "application-autoscaling"}.get(service, service)
                assert f"{service}:*" in allowed, f"{name}: {resource['Type']} of {file.name}"
            for logical_id, resource in json.loads(file.read_text())["Resources"].items():
                if resource["Type"] == "AWS::IAM::Role":
                    start = "tritonstack-pipeline" if name == "pipeline" else name
                    made_name = resource["Properties"].get("RoleName", f"{start}-{logical_id}")
                    account = roles[0].split(":")[4]
                    arn = f"arn:aws:iam::{account}:role/{made_name}"
                    assert any(fnmatch.fnmatchcase(arn, pattern) for pattern in roles), f"{file.name}: {made_name}"


def test_every_role_has_the_boundary_and_the_path(other: Synthesised) -> None:
    roles = of_type(other.pipeline, "AWS::IAM::Role")
    assert len(roles) > 8
    assert {role["Properties"].get("Path") for role in roles} == {"/team/"}
    assert {role["Properties"].get("PermissionsBoundary") for role in roles} == {
        "arn:aws:iam::444444444444:policy/boundary"
    }


def test_artifacts_expire_encrypted_and_people_are_told(other: Synthesised) -> None:
    [artifacts] = [
        each["Properties"]
        for each in of_type(other.pipeline, "AWS::S3::Bucket")
        if "LoggingConfiguration" in each["Properties"]
    ]
    assert (
        artifacts["BucketEncryption"]["ServerSideEncryptionConfiguration"][0]["ServerSideEncryptionByDefault"][
            "SSEAlgorithm"
        ]
        == "aws:kms"
    )
    assert artifacts["LifecycleConfiguration"]["Rules"][0]["ExpirationInDays"] == 90
    [log] = of_type(other.pipeline, "AWS::Logs::LogGroup")
    assert log["Properties"]["RetentionInDays"] == 90
    assert "KmsKeyId" in log["Properties"]
    projects = of_type(other.pipeline, "AWS::CodeBuild::Project")
    assert all("EncryptionKey" in each["Properties"] for each in projects)
    patterns = [each["Properties"]["EventPattern"] for each in of_type(other.pipeline, "AWS::Events::Rule")]
    assert {json.dumps(each["detail"]) for each in patterns} == {
        '{"state": ["FAILED"]}',
        '{"state": ["STARTED"], "type": {"category": ["Approval"]}}',
    }
    [mail] = of_type(other.pipeline, "AWS::SNS::Subscription")
    assert mail["Properties"]["Endpoint"] == "team@example.com"


def test_builds_take_their_tools_from_the_lock_files(committed: Synthesised) -> None:
    specs = [
        each["Properties"]["Source"]["BuildSpec"] for each in of_type(committed.pipeline, "AWS::CodeBuild::Project")
    ]
    fetching = [spec for spec in specs if "npm install" in spec]
    assert len(fetching) == 1, "self-mutation alone, whose command line is pinned"
    pinned = json.loads((ROOT / "package.json").read_text())["devDependencies"]["aws-cdk"]
    assert f"aws-cdk@{pinned}" in fetching[0]


@pytest.mark.long
def test_the_same_commit_gives_the_same_bytes(committed: Synthesised, tmp_path: Path) -> None:
    assert files_under(synthesised(tmp_path).folder) == files_under(committed.folder)


@pytest.mark.long
def test_neither_a_changed_model_nor_another_number_of_assets_changes_the_pipeline_that_a_rollback_needs(
    other: Synthesised, tmp_path: Path
) -> None:
    """CodePipeline goes back only to executions of the current pipeline structure (user guide: "Stage rollback")."""
    models = tmp_path / "repository" / "model_repos"
    shutil.copytree(ROOT / "model_repos", models)
    shutil.copytree(ROOT / "requirements", models.parent / "requirements")
    recipe = models / "digits-onnx" / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("description: ", "description: Changed. ", 1))
    export = next(path for path in (models / "digits-onnx").rglob("*.py"))
    export.write_text(f"{export.read_text()}\n# changed\n")
    environments = tmp_path / "environments"
    shutil.copytree(ROOT / "environments", environments)
    dev = (environments / "dev.yaml").read_text()
    assert "retain: " in dev
    turned = dev.replace("retain: false", "retain: true") if "retain: false" in dev else dev.replace("true", "false", 1)
    (environments / "dev.yaml").write_text(turned)
    context = {
        "pipeline": str(other.folder.parent / "pipeline.yaml"),
        "model-repositories": str(models),
        "environments-folder": str(environments),
    }
    ran = run_app(tmp_path / "out", context=context)
    assert ran.returncode == 0, ran.stderr
    changed = Synthesised(tmp_path / "out")
    served = [
        [path.read_text() for path in sorted((made.folder / "assembly-dev").glob("*serving*.template.json"))]
        for made in (other, changed)
    ]
    assert served[0] != served[1], "the model did change"
    assets = [len(list(made.folder.glob("asset.*"))) for made in (other, changed)]
    assert assets[0] != assets[1], "one function more or less"
    assert changed.definition == other.definition


def test_the_committed_snapshots_of_the_pipeline_are_what_is_synthesised(committed: Synthesised) -> None:
    told = out_of_date(added_by_pipeline(read_assembly(committed.folder)), ROOT / FOLDER)
    if told:
        pytest.fail("\n".join([f"{FOLDER}/ is out of date:", *told]), pytrace=False)


@pytest.mark.long
def test_cdk_nag_finds_nothing_that_is_not_accepted_with_a_reason(other: Synthesised, tmp_path: Path) -> None:
    """AwsSolutions and NIST 800-53 R5 with every setting on."""
    context = {"pipeline": str(other.folder.parent / "pipeline.yaml")}
    ran = run_app(tmp_path / "out", context=context, variables={"CDK_VALIDATION": "true"})
    report = tmp_path / "out" / "validation-report.json"
    assert ran.returncode == 0, report.read_text() if report.is_file() else ran.stderr


PASSED_OVER = {
    "E3703": "It asks for Fn::Sub instead of Fn::Join in a role's ARN; CDK Pipelines writes it, and both are the same."
}


@pytest.mark.long
def test_cfn_lint_finds_nothing_that_is_not_passed_over_with_a_reason(
    committed: Synthesised, other: Synthesised
) -> None:
    lints = linter("us-east-1")
    found: dict[str, list[str]] = {}
    for made in (committed, other):
        files = [made.folder / "pipeline.template.json", *made.folder.glob("assembly-*/*pipelineaccess*.template.json")]
        assert len(files) > 2
        for file in files:
            for check, where in said(file.read_text(), by=lints):
                found.setdefault(check, []).append(f"{file.name}: {where}")
    accepted = {*PASSED_OVER, *passed_over()}
    assert {check: where for check, where in found.items() if check not in accepted} == {}
    assert set(PASSED_OVER) <= set(found), "what finds nothing any more is passed over no more"


def test_environments_alone_import_nothing_of_the_pipeline(tmp_path: Path) -> None:
    ran = run_app(tmp_path / "out", context={"environments": "local"}, variables={"PYTHONPROFILEIMPORTTIME": "1"})
    assert ran.returncode == 0, ran.stderr
    imported = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines() if line.startswith("import time:")}
    assert "stacks.stage" in imported
    wanted = ("aws_cdk.pipelines", "aws_cdk.aws_codepipeline", "stacks.pipeline", "tritonstack.settings.pipeline")
    assert not [name for name in imported if name.startswith(wanted)]


def test_wrong_settings_end_the_app_with_every_problem_and_no_template(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(settings(region="mars", stages=[{"environment": "porduction"}])))
    ran = run_app(tmp_path / "out", context={"pipeline": str(file)})
    assert ran.returncode == InputError.exit_code
    assert "region" in ran.stderr
    assert "porduction" in ran.stderr
    assert "Traceback" not in ran.stderr
    both = run_app(tmp_path / "both", context={"pipeline": "true", "environments": "dev"})
    assert both.returncode == InputError.exit_code
    assert "A pipeline's file names its environments." in both.stderr
