"""A small project in a git repository of its own; its app makes a pipeline where the context asks for one."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.review.projects import NO_FINDINGS, SETTINGS, git
from tests.review.reports import READ, policy
from tests.review.small import Template, resource, serving, write_assembly, write_json
from tritonstack.review.assembly import read_assembly
from tritonstack.review.snapshot import PIPELINE_FOLDER, added_by_pipeline
from tritonstack.review.stored import write_snapshots

APP = """
import json, os, pathlib, shutil, sys
here = pathlib.Path(__file__).parent
asked = json.loads(os.environ["CDK_CONTEXT_JSON"]).get("pipeline")
name, validation = ("assembly" if asked is None else "pipeline"), os.environ["CDK_VALIDATION"]
with (here / ".local" / "asked").open("a") as log:
    print(name, validation, file=log)
if asked is not None and "wrong" in (here / "pipeline.yaml").read_text():
    sys.exit(print("found:   wrong", file=sys.stderr) or 2)
out = pathlib.Path(os.environ["CDK_OUTDIR"])
shutil.copytree(here / ".local" / name, out, dirs_exist_ok=True)
if validation == "false":
    (out / "validation-report.json").unlink(missing_ok=True)
"""
TRUST = {
    "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "codebuild.amazonaws.com"}}]
}
ROLE = resource("AWS::IAM::Role", {"AssumeRolePolicyDocument": TRUST})
GROUP = {"GroupDescription": "builds"}
OPEN = [{"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "CidrIp": "0.0.0.0/0"}]
OWN: Template = {
    "Role": ROLE,
    "Policy": policy(READ),
    "Build": resource("AWS::CodeBuild::Project", {"Name": "tritonstack-build", "ServiceRole": "arn:role"}),
    "Group": resource("AWS::EC2::SecurityGroup", GROUP),
}
"""The pipeline's own stack."""
ACCESS: Template = {"Role": ROLE, "Policy": policy(READ)}
"""The stack that lets it into dev."""
ACCEPTED = {"AwsSolutions-S1": "The logs are elsewhere."}
OPEN_FINDING = {
    "ruleName": "AwsSolutions-CB4",
    "severity": "error",
    "violatingConstructs": [{"constructPath": "pipeline/Build"}],
}


def write_pipeline(
    folder: Path,
    own: Template = OWN,
    access: Template = ACCESS,
    *,
    found: bool = False,
    accepted: Mapping[str, str] = ACCEPTED,
) -> None:
    """The cloud assembly of a pipeline over dev. ``found``: whether validation finds something in its own stack."""
    shutil.rmtree(folder, ignore_errors=True)
    reasons = {"/Role/Resource": [{"type": "aws:cdk:acknowledged-rules", "data": dict(accepted)}]}
    _stack(folder, "pipeline", "tritonstack-pipeline", own, reasons)
    _stack(folder / "assembly-dev", "dev/pipeline-access", "dev-pipeline-access", access, reasons)
    _stack(folder / "assembly-dev", "dev/serving", "dev-serving", serving(), {})
    manifest = json.loads((folder / "manifest.json").read_text())
    stage = {"directoryName": "assembly-dev", "displayName": "dev"}
    manifest["artifacts"]["assembly-dev"] = {"type": "cdk:cloud-assembly", "properties": stage}
    write_json(folder / "manifest.json", manifest)
    report = {"version": "1.0", "pluginReports": [{"violations": [OPEN_FINDING]}]} if found else NO_FINDINGS
    write_json(folder / "validation-report.json", report)


def _stack(folder: Path, path: str, name: str, template: Template, metadata: Mapping[str, Any]) -> None:
    identity = path.replace("/", "")
    file = folder / "manifest.json"
    artifacts = json.loads(file.read_text())["artifacts"] if file.is_file() else {}
    artifacts[identity] = {
        "type": "aws:cloudformation:stack",
        "environment": "aws://111111111111/us-east-1",
        "properties": {"templateFile": f"{identity}.template.json", "stackName": name, "tags": {"team": "platform"}},
        "metadata": {f"/{path}{inside}": entries for inside, entries in metadata.items()},
        "displayName": path,
    }
    write_json(file, {"artifacts": artifacts})
    write_json(folder / f"{identity}.template.json", {"Resources": template})


def make_pipeline_project(folder: Path, *, committed: bool = True) -> Path:
    """A branch off ``main`` on which nothing changed yet. ``committed``: whether ``main`` has the pipeline."""
    synthesised = folder / ".local"
    synthesised.mkdir(parents=True)
    write_assembly(synthesised / "assembly", template={"Resources": serving()}, report=NO_FINDINGS)
    write_pipeline(synthesised / "pipeline")
    (folder / "environments").mkdir()
    (folder / "environments" / "dev.yaml").write_text(SETTINGS)
    (folder / "app.py").write_text(APP)
    (folder / "cdk.json").write_text(json.dumps({"app": f"{sys.executable} app.py"}))
    (folder / ".gitignore").write_text("/.local/\n__pycache__/\n")
    write_snapshots(read_assembly(synthesised / "assembly"), folder / "snapshots")
    if committed:
        (folder / "pipeline.yaml").write_text("name: tritonstack\nregion: us-east-1\n")
        write_snapshots(added_by_pipeline(read_assembly(synthesised / "pipeline")), folder / PIPELINE_FOLDER)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "base")
    git(folder, "checkout", "-q", "-b", "change")
    return folder


def app_requests(project: Path) -> list[str]:
    """Stages that the app was to synthesise, and whether with validation; in the order of the words."""
    return sorted((project / ".local" / "asked").read_text().splitlines())
