"""Each statement of each role of a deployment taken out of its template in turn: where it is missed.

    python -m tests.e2e.mutations

No test: some sixty deployments of the environment of ``previous.py``, two at a time, 10 minutes. Each is deployed to a
local AWS of its own, called once and destroyed. Its archives are there already, so that builds have nothing
to do. ``local iam report`` finds the same without deploying again, and for more cases.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from tests.e2e.calls import invoke, target_model
from tests.e2e.previous import ENDPOINT, MODEL, NAME, deploy, destroy, freeze, unpack
from tests.e2e.project import Project
from tests.e2e.running import running


@dataclass(frozen=True)
class Statement:
    """A statement of a role's policy in a template."""

    template: str  # path below the archive's folder
    policy: str  # logical id
    number: int
    document: dict[str, Any]

    def remove(self, folder: Path) -> None:
        path = folder / self.template
        template = json.loads(path.read_text())
        statements = _documents(template["Resources"][self.policy])[0]["Statement"]
        del statements[self.number]
        if not statements:  # IAM takes no policy without a statement
            statements.append({"Effect": "Deny", "Action": "none:None", "Resource": "*"})
        path.write_text(json.dumps(template))


def _documents(resource: dict[str, Any]) -> list[dict[str, Any]]:
    properties = resource.get("Properties", {})
    if resource["Type"] == "AWS::IAM::Policy":
        return [properties["PolicyDocument"]]
    return [each["PolicyDocument"] for each in properties.get("Policies", ())] if "Role" in resource["Type"] else []


def statements(folder: Path) -> Iterator[Statement]:
    """The allowing statements of every template of an unpacked archive."""
    for path in sorted(folder.glob("assembly/*/*.template.json")):
        for name, resource in json.loads(path.read_text())["Resources"].items():
            documents = _documents(resource)
            assert len(documents) < 2, f"{name}: a role has one policy"
            for number, each in enumerate(documents[0]["Statement"] if documents else ()):
                if each["Effect"] == "Allow":
                    yield Statement(str(path.relative_to(folder)), name, number, each)


def missed(archive: Path, statement: Statement) -> str:
    """Where a deployment without the statement fails, with the action that was denied; or what else became of it."""
    with tempfile.TemporaryDirectory() as temporary:
        project = Project(Path(temporary))
        folder = unpack(archive, project)
        statement.remove(folder)
        with running(project, denied=["*"]) as aws:
            failed = ""
            try:
                deploy(folder, project, aws)
                target = target_model(aws, endpoint=ENDPOINT, model=MODEL, environment=NAME)
                invoke(aws.client("sagemaker-runtime"), endpoint=ENDPOINT, target=target, value=3.0, environment=NAME)
                destroy(folder / "assembly", project, aws)
            except AssertionError as error:
                failed = f"{'destroy' if 'cdk destroy' in str(error) else 'deployment'}: {error}"
            except ClientError as error:
                failed = f"call: {error}"
            denials = aws.iam()["denials"]
    actions = ", ".join(sorted({each["action"] for each in denials}))
    if not failed:
        return f"all went on; the status lists {actions}" if denials else "not missed"
    where = failed.partition(":")[0]
    named = any(each["action"] in failed for each in denials)
    return f"{where} fails, naming {actions}" if named else f"{where} fails without naming {actions or 'any'}: {failed}"


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        archive = freeze(Path(temporary))
        every = list(statements(unpack(archive, Project(Path(temporary)))))
        with ThreadPoolExecutor(2) as pool:
            for each, found in zip(every, pool.map(lambda one: missed(archive, one), every), strict=True):
                sys.stdout.write(f"{each.policy} {each.document.get('Sid', '')}: {found}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
