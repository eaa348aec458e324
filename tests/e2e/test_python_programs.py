"""Python models of many forms, as people write them: `add`, `local deploy`, `invoke`, and the right response."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import endpoint
from tests.e2e.project import Project, environment_yaml
from tests.e2e.running import running
from tests.models.folders import write
from tests.tritonstack_local.container.test_python_programs import DOUBLES, PROGRAMS, files_of

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(2400)]
LEAST = 25
"""As many forms have to be in the table for this to say something."""


def test_python_models_of_many_forms_are_added_deployed_and_called(tmp_path: Path) -> None:
    assert len(PROGRAMS) >= LEAST
    # Several models without an ensemble are for single-model endpoints: multi-model mode addresses one of an archive.
    alone = [case for case, told in PROGRAMS.items() if told.get("others")]
    together = [case for case in PROGRAMS if case not in alone]
    project = Project(tmp_path)
    endpoints = [endpoint("together", together)]
    endpoints += [endpoint(f"alone-{number}", [case], mode="single-model") for number, case in enumerate(alone)]
    answers = {}
    with running(project):
        for case, told in PROGRAMS.items():
            files = files_of(case, told)
            for other in told.get("others", ()):
                files |= files_of(other, {"model": DOUBLES})
            write(tmp_path / "given" / case, files)
            project.run("add", f"given/{case}")
        project.write("environments/local.yaml", environment_yaml(name="local", endpoints=endpoints))
        project.run("local", "deploy", timeout=1500)
        project.run("verify")
        for case, told in PROGRAMS.items():
            kind, values = "BYTES" if "types" in told else "FP32", told.get("ask", [1.0, 2.0, 3.0, 4.0])
            body = {"inputs": [{"name": "x", "datatype": kind, "shape": [1, 4], "data": values}]}
            project.write("request.json", json.dumps(body))
            printed = project.run("invoke", case, "--input", "request.json", "--raw", "--json").stdout
            answers[case] = json.loads(printed)["outputs"][0]["data"]
    assert answers == {
        case: told.get("answer") or [2 * value for value in told.get("ask", [1.0, 2.0, 3.0, 4.0])]
        for case, told in PROGRAMS.items()
    }
