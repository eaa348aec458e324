"""The app that cdk.json names, run as the CDK's command line runs it."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from tritonstack.errors import InputError, WorkFailedError
from tritonstack.review.assembly import synthesise

TELL = """
import json, os, pathlib
out = pathlib.Path(os.environ["CDK_OUTDIR"])
names = ("CDK_CONTEXT_JSON", "CDK_VALIDATION", "AWS_PROFILE", "CDK_DEFAULT_ACCOUNT")
told = {name: os.environ.get(name) for name in names}
(out / "told.json").write_text(json.dumps({**told, "cwd": os.getcwd()}))
"""


def project(folder: Path, app: str, **settings: object) -> Path:
    """A project whose app is a Python program."""
    folder.mkdir(exist_ok=True)
    (folder / "its app.py").write_text(app)
    command = f"{shlex.quote(sys.executable)} 'its app.py'"
    (folder / "cdk.json").write_text(json.dumps({"app": command, **settings}))
    return folder


def test_the_app_gets_the_context_and_no_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "mine")
    monkeypatch.setenv("CDK_DEFAULT_ACCOUNT", "999999999999")
    folder = project(tmp_path / "project", TELL, context={"a": 1, "b": 1})
    synthesise(folder, tmp_path / "out", validation=False, context={"b": 2})
    told = json.loads((tmp_path / "out" / "told.json").read_text())
    assert json.loads(told.pop("CDK_CONTEXT_JSON")) == {"a": 1, "b": 2}
    assert told == {
        "CDK_VALIDATION": "false",
        "AWS_PROFILE": None,
        "CDK_DEFAULT_ACCOUNT": None,
        "cwd": str(folder),
    }


def test_what_the_app_says_of_its_input_is_passed_on_word_by_word(tmp_path: Path) -> None:
    folder = project(tmp_path / "project", "import sys\nsys.exit(sys.stderr.write('prod.yaml: wrong') and 2)")
    with pytest.raises(InputError) as raised:
        synthesise(folder, tmp_path / "out")
    assert str(raised.value) == "prod.yaml: wrong"


def test_an_app_that_fails_is_failed_work(tmp_path: Path) -> None:
    folder = project(tmp_path / "project", "raise SystemExit('no such module')")
    with pytest.raises(WorkFailedError, match="no such module"):
        synthesise(folder, tmp_path / "out")


def test_open_findings_are_no_failure(tmp_path: Path) -> None:
    report = "import os, pathlib\npathlib.Path(os.environ['CDK_OUTDIR'], 'validation-report.json').write_text('{}')\n"
    folder = project(tmp_path / "project", f"{report}raise SystemExit(1)")
    synthesise(folder, tmp_path / "out")
    with pytest.raises(WorkFailedError):
        synthesise(folder, tmp_path / "other", validation=False)


@pytest.mark.parametrize(("text", "found"), [(None, "no such file"), ("{}", "no app"), ("{", "no JSON")])
def test_a_project_without_an_app_is_refused(tmp_path: Path, text: str | None, found: str) -> None:
    if text is not None:
        (tmp_path / "cdk.json").write_text(text)
    with pytest.raises(InputError, match=found):
        synthesise(tmp_path, tmp_path / "out")
