"""``tritonstack outputs`` over what the real CDK deployed, and the page's blocks as other pipelines run them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.e2e.project import REPOSITORY, Project
from tests.outputs.page import PAGE, Block, blocks, jq_is_there, run_sh
from tritonstack.outputs.contract import OutputsDocument
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(700)]


@pytest.fixture(scope="module")
def document(project: Project, deployed: LocalAws) -> dict[str, Any]:
    """The document of the deployed environment, written by the command line."""
    project.run("outputs", "-e", "local", "--output", "outputs.json")
    read: dict[str, Any] = json.loads((project.root / "outputs.json").read_text())
    return read


def test_the_document_is_by_the_schema_and_names_what_is_deployed(document: dict[str, Any], deployed: LocalAws) -> None:
    schema = json.loads((REPOSITORY / "schemas" / "outputs.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)
    read = OutputsDocument.model_validate(document).model_dump()
    assert set(read["endpoints"]) == {"digits", "many", "memory", "single"}
    sagemaker, ssm = deployed.client("sagemaker"), deployed.client("ssm")
    for endpoint in read["endpoints"].values():
        described = sagemaker.describe_endpoint(EndpointName=endpoint["name"])
        assert endpoint["arn"] == described["EndpointArn"]
        assert [each["VariantName"] for each in described["ProductionVariants"]] == [endpoint["variant"]]
        config = sagemaker.describe_endpoint_config(EndpointConfigName=described["EndpointConfigName"])
        model = sagemaker.describe_model(ModelName=config["ProductionVariants"][0]["ModelName"])
        assert model["ExecutionRoleArn"] == endpoint["execution_role_arn"]
        assert model["PrimaryContainer"]["ModelDataUrl"] == endpoint["model_data_url"]
        for record in endpoint["releases"].values():
            assert ssm.get_parameter(Name=record["parameter"])["Parameter"]["Value"] == record["digest"]
    digits = read["endpoints"]["digits"]
    key = digits["archive_prefix"] + digits["releases"]["digits-onnx"]["archive"]
    assert deployed.client("s3").head_object(Bucket=read["artifacts"]["bucket"], Key=key)["ContentLength"]
    assert deployed.client("kms").describe_key(KeyId=read["artifacts"]["key_arn"])
    assert set(read["absent"]) == {
        "/network", "/builds", "/observability", *(f"/endpoints/{name}/alarms" for name in read["endpoints"]),
    }  # fmt: skip


def test_the_stacks_outputs_have_the_same_values(document: dict[str, Any], deployed: LocalAws) -> None:
    """What ``cdk deploy --outputs-file`` writes: each stack's outputs."""
    stacks = deployed.client("cloudformation").describe_stacks(StackName="local-serving-digits")["Stacks"]
    outputs = {each["OutputKey"]: each["OutputValue"] for each in stacks[0]["Outputs"]}
    digits = document["endpoints"]["digits"]
    assert outputs["EndpointArn"] == digits["arn"]
    assert outputs["EndpointName"] == digits["name"]
    assert outputs["ExecutionRoleArn"] == digits["execution_role_arn"]
    assert outputs["ModelDataUrl"] == digits["model_data_url"]


def test_json_is_the_file_and_the_table_has_every_reason(document: dict[str, Any], project: Project) -> None:
    assert json.loads(project.run("outputs", "-e", "local", "--json").stdout) == document
    printed = project.run("outputs", "-e", "local").stdout
    assert document["endpoints"]["digits"]["arn"] in printed
    assert "- (the environment was deployed with neither a dashboard nor alarms)" in printed


@pytest.mark.parametrize("block", [each for each in blocks() if each.language == "sh"], ids=lambda each: each.heading)
def test_a_shell_block_of_the_page_runs_as_it_stands(
    block: Block, project: Project, deployed: LocalAws, document: dict[str, Any], tmp_path: Path
) -> None:
    if "jq " in block.text and not jq_is_there():
        pytest.skip("this machine has no jq, which the block calls")
    (tmp_path / "outputs.json").write_text(json.dumps(document))
    assert "local-digits" in run_sh(block.text, project=project, aws=deployed, folder=tmp_path)


@pytest.mark.parametrize(
    "block", [each for each in blocks() if each.language == "python"], ids=lambda each: each.heading
)
def test_a_python_block_of_the_page_runs_as_it_stands(
    block: Block,
    project: Project,
    deployed: LocalAws,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in deployed.variables().items():
        monkeypatch.setenv(name, value)
    exec(compile(block.text, str(PAGE), "exec"), {})  # noqa: S102 - the page's own code
    assert "local-digits" in capsys.readouterr().out


def test_the_steps_of_the_workflow_run_as_they_stand(project: Project, deployed: LocalAws, tmp_path: Path) -> None:
    if not jq_is_there():
        pytest.skip("this machine has no jq, which the workflow calls")
    [workflow] = [yaml.safe_load(each.text) for each in blocks() if each.language == "yaml"]
    kept = tmp_path / "github-env"
    kept.touch()
    printed = []
    for step in workflow["jobs"]["smoke"]["steps"]:
        if "run" in step:
            variables = dict(line.split("=", 1) for line in kept.read_text().splitlines())
            variables["GITHUB_ENV"] = str(kept)
            printed.append(run_sh(step["run"], project=project, aws=deployed, folder=tmp_path, variables=variables))
    assert printed == ["", "InService\n"]
