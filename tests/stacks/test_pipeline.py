"""The pipeline's template: what comes after what, what goes back, and who may do what."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import aws_cdk as cdk
import pytest

from stacks.pipeline import add_pipeline
from tests.constructs_lib.templates import flat, listed
from tests.review.small import out_of_date
from tests.stacks.app_process import ROOT, run_app
from tests.stacks.pipeline_templates import (
    Synthesised,
    context_of,
    of_type,
    statements,
)
from tests.stacks.test_cfn_lint import findings, linter, passed_over
from tritonstack.errors import InputError
from tritonstack.review.assembly import read_assembly
from tritonstack.review.snapshot import PIPELINE_FOLDER, added_by_pipeline

MODELS = ROOT / "model_repos"


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
        orders = {each["Name"]: int(each["RunOrder"]) for each in committed.stages[name]["Actions"]}
        made = orders[f"pipeline-access.prepare-{name}"]
        assert orders["artifacts.Deploy"] < orders["pipeline-access.Deploy"] < made
        assert all(made < order for each, order in orders.items() if each.startswith("serving-"))
        last = orders.pop(f"verify-{name}")
        assert last > max(orders.values()), "verified last, with everything deployed"


def test_the_endpoints_of_an_environment_are_deployed_at_once_as_preflight_counts_them(committed: Synthesised) -> None:
    for name in ("dev", "staging", "prod"):
        actions = committed.stages[name]["Actions"]
        serving = [each for each in actions if each["Name"].startswith("serving-")]
        assert len({each["Name"].partition(".")[0] for each in serving}) > 1
        deploying = {each["RunOrder"] for each in serving if each["Name"].endswith(".Deploy")}
        assert len(deploying) == 1


def test_a_stage_that_fails_goes_back_and_neither_source_nor_gate_nor_approval_does(committed: Synthesised) -> None:
    back = {name: stage["OnFailure"] for name, stage in committed.stages.items() if "OnFailure" in stage}
    assert back == {name: {"Result": "ROLLBACK"} for name in ("dev", "staging", "prod")}


def test_gates_are_named_and_follow_one_another(other: Synthesised) -> None:
    assert other.actions("gates-dev") == ["sound", "load-test"]
    assert list(other.stages).index("dev") + 1 == list(other.stages).index("gates-dev")


def test_a_load_test_is_a_gate_after_the_deployment_with_a_role_of_its_own_and_time_for_it(
    committed: Synthesised, other: Synthesised
) -> None:
    assert committed.actions("gates-staging") == ["answers", "load-test"]
    assert list(committed.stages).index("gates-staging") < list(committed.stages).index("approve-prod")
    measures = other.stages["gates-dev"]["Actions"][-1]["Configuration"]["ProjectName"]["Ref"]
    project = other.pipeline["Resources"][measures]["Properties"]
    commands = json.loads(project["Source"]["BuildSpec"])["phases"]["build"]["commands"]
    assert commands[-1] == ".envs/main/bin/python -m tritonstack capacity bench --cloud -e dev --yes"
    assert project["TimeoutInMinutes"] == 480
    role = other.pipeline["Resources"][project["ServiceRole"]["Fn::GetAtt"][0]]
    assert role["Properties"]["RoleName"] == "other-dev-measure-build"
    variables = {each["Name"]: each["Value"] for each in project["Environment"]["EnvironmentVariables"]}
    assert variables["TRITONSTACK_ROLE_ARN"].endswith(":role/other-dev-measure")


def test_the_step_that_makes_archives_reads_the_token_for_the_hub_and_no_other_secret(
    committed: Synthesised, other: Synthesised
) -> None:
    [action] = [each for each in other.stages["dev"]["Actions"] if each["Name"] == "pipeline-access.prepare-dev"]
    project = other.pipeline["Resources"][action["Configuration"]["ProjectName"]["Ref"]]["Properties"]
    variables = {each["Name"]: (each["Type"], each["Value"]) for each in project["Environment"]["EnvironmentVariables"]}
    assert variables["HF_TOKEN"] == ("PARAMETER_STORE", "/team/hub-token")
    assert variables["HF_ENDPOINT"] == ("PLAINTEXT", "https://hub.example.com")
    read = [each for each in statements(other.pipeline) if "ssm:GetParameters" in listed(each["Action"])]
    assert [flat(each["Resource"]) for each in read] == ["arn:aws:ssm:us-east-1:444444444444:parameter/team/hub-token"]
    assert not [each for each in statements(committed.pipeline) if "ssm:GetParameters" in listed(each["Action"])]


def test_artifacts_are_encrypted_and_expire_and_people_are_notified(other: Synthesised) -> None:
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
def test_neither_a_changed_model_nor_another_number_of_assets_changes_the_pipeline(
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
    for name in ("environments", "images"):
        shutil.copytree(other.folder.parent / name, tmp_path / name)
    dev = (environments / "dev.yaml").read_text()
    assert "retain: " in dev
    turned = dev.replace("retain: false", "retain: true") if "retain: false" in dev else dev.replace("true", "false", 1)
    (environments / "dev.yaml").write_text(turned)
    context = {
        **context_of(other.folder.parent),
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


def test_images_are_built_by_docker_in_a_privileged_build_that_pulls_awss_triton(other: Synthesised) -> None:
    projects = [each["Properties"] for each in of_type(other.pipeline, "AWS::CodeBuild::Project")]
    [images] = [each for each in projects if each["Environment"].get("PrivilegedMode")]
    [spec] = [
        path.read_text()
        for path in other.folder.glob("buildspec-*")
        if "assets.json" in path.read_text() and path.name in json.dumps(images["Source"])
    ]
    assert "763104351884.dkr.ecr.us-east-1.amazonaws.com" in spec
    assert "cdk-docker-creds.json" in spec
    pulled = [each["Resource"] for each in statements(other.pipeline) if each.get("Sid") == "PullImage"]
    assert pulled == ["arn:aws:ecr:us-east-1:763104351884:repository/sagemaker-tritonserver"] * len(pulled) != []


def test_the_committed_snapshots_of_the_pipeline_are_what_is_synthesised(committed: Synthesised) -> None:
    outdated = out_of_date(added_by_pipeline(read_assembly(committed.folder, accepted=True)), ROOT / PIPELINE_FOLDER)
    if outdated:
        pytest.fail("\n".join([f"{PIPELINE_FOLDER}/ is out of date:", *outdated]), pytrace=False)


@pytest.mark.long
def test_cdk_nag_finds_nothing_that_is_not_accepted_with_a_reason(other: Synthesised, tmp_path: Path) -> None:
    """AwsSolutions and NIST 800-53 R5 with every setting on."""
    context = context_of(other.folder.parent)
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
            for check, where in findings(file.read_text(), by=lints):
                found.setdefault(check, []).append(f"{file.name}: {where}")
    accepted = {*PASSED_OVER, *passed_over()}
    assert {check: where for check, where in found.items() if check not in accepted} == {}
    assert set(PASSED_OVER) <= set(found), "what finds nothing any more is passed over no more"


def test_environments_are_not_chosen_together_with_a_pipeline() -> None:
    app = cdk.App(context={"environments": "dev"})
    with pytest.raises(InputError, match="A pipeline's file names its environments"):
        add_pipeline(app, chosen="true", root=ROOT, models=MODELS, folder=ROOT / "environments")


def test_a_project_without_the_scripts_that_its_builds_would_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no scripts/setup\.py"):
        add_pipeline(cdk.App(), chosen="true", root=tmp_path, models=tmp_path, folder=tmp_path)
