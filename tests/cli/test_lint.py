"""``tritonstack lint`` and ``explain``: findings, formats, exit codes, and pages of rules."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from shutil import copytree
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from tests.cases import cases
from tests.models.folders import CONFIG, write, write_double
from tritonstack.cli import lint
from tritonstack.cli.lint import explain_command as command
from tritonstack.cli.lint import page
from tritonstack.cli.schema import schema_text
from tritonstack.errors import InputError
from tritonstack.lint.registry import CATEGORIES, rule, rule_ids

ENVIRONMENT = """\
environment: test
account: "123456789012"
region: us-east-1
production: false
endpoints:
  - {name: one, mode: multi-model, release: "24.09", instance_type: ml.g4dn.xlarge, models: [double]}
"""
SECOND_GPU = "instance_group [ { kind: KIND_GPU gpus: [ 1 ] } ]\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one sound model folder and one environment, which is the working directory."""
    write_double(tmp_path)
    write(tmp_path, {"environments/test.yaml": ENVIRONMENT})
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _config(project: Path, text: str) -> None:
    (project / "model_repos/double/double/config.pbtxt").write_text(text)


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(lint.lint_command, arguments, catch_exceptions=False)


def _json(*arguments: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(_run("--json", *arguments).stdout)
    return document


def test_an_error_ends_with_exit_code_one_and_a_warning_does_not(project: Path) -> None:
    _config(project, f"{CONFIG}{SECOND_GPU}")
    result = _run()
    assert (result.exit_code, result.stderr) == (0, "folders: 1, errors: 0, warnings: 1\n")
    _config(project, CONFIG.replace("TYPE_FP32", "TYPE_FP99"))
    assert _run().exit_code == 1


@pytest.mark.parametrize("options", [[], ["-e", "test"]], ids=["alone", "of an environment"])
@pytest.mark.parametrize(
    ("start", "named"),
    [(".", "."), (".", "model_repos"), (".", "model_repos/"), ("model_repos", "."), ("model_repos/double", ".")],
)
def test_a_project_its_model_folders_and_one_of_them_are_linted_alike(
    options: list[str], start: str, named: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of them is read as a Triton repository."""
    monkeypatch.chdir(project / start)
    result = _run(*options, named)
    assert (result.exit_code, result.stderr.partition(", warnings")[0]) == (0, "folders: 1, errors: 0")


def test_model_folders_elsewhere_are_linted_outside_of_any_project_and_nothing_is_refused(
    tmp_path_factory: pytest.TempPathFactory, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRITONSTACK_PROJECT")
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert _run(str(project / "model_repos" / "double")).exit_code == 0
    with pytest.raises(InputError, match=r"(?s)no project.*tritonstack init"):
        _run()


def test_a_project_without_a_model_is_no_error_and_the_command_that_adds_one_is_named(project: Path) -> None:
    shutil.rmtree(project / "model_repos" / "double")
    result = _run("model_repos")
    assert (result.exit_code, result.stderr.splitlines()) == (
        0,
        ["no model folder in model_repos: tritonstack add FILE makes one", "folders: 0, errors: 0, warnings: 0"],
    )


def test_json_keeps_its_schema_and_says_rule_level_category_and_place(project: Path) -> None:
    _config(project, CONFIG.replace("max_batch_size: 8", "max_batchsize: 8"))
    document = _json()
    jsonschema.validate(document, json.loads(schema_text("lint-report")))
    assert (document["errors"], document["warnings"], document["folders"]) == (1, 0, ["model_repos/double"])
    (finding,) = document["findings"]
    assert finding["file"] == "model_repos/double/double/config.pbtxt"
    assert (finding["line"], finding["rule"]) == (3, "config")
    assert (finding["level"], finding["category"]) == ("error", "triton-core")
    assert finding["advice"] == "Did you mean max_batch_size?"


def test_annotations_are_workflow_commands_with_file_and_line_and_escape_what_would_end_them(project: Path) -> None:
    _config(project, CONFIG.replace("max_batch_size: 8", "max_batch_size: -1"))
    assert _run("--annotations").stdout == (
        "::error file=model_repos/double/double/config.pbtxt,line=3,title=max-batch-size"
        "::max_batch_size: -1; allowed: 0 or more\n"
    )
    _config(project, CONFIG.replace('name: "double"', 'name: "100%\\n,:"'))
    (line,) = _run("--annotations").stdout.splitlines()
    assert "100%25%0A,:" in line


def test_an_environments_endpoints_are_what_its_folders_are_checked_for(project: Path) -> None:
    _config(project, f"{CONFIG}{SECOND_GPU}")
    rules = [finding["rule"] for finding in _json("--environment", "test")["findings"]]
    assert rules == ["release-vulnerable", "instance-gpu-missing"]
    assert _run("--environment", "test", "model_repos/double").exit_code == 1
    assert _run("--instance-type", "ml.g4dn.12xlarge").exit_code == 0


def test_a_response_cache_and_the_model_that_uses_it_need_each_other(project: Path) -> None:
    def found(*folders: str) -> dict[str, str]:
        findings = _json("--environment", "test", *folders)["findings"]
        return {each["rule"]: each["file"] for each in findings if each["rule"].startswith("response-cache")}

    in_model, on_endpoint = f"{CONFIG}response_cache {{ enable: true }}\n", "container: {response_cache_bytes: 1048576}"
    assert found() == {}
    _config(project, in_model)
    assert found() == {"response-cache-off": "model_repos/double/double/config.pbtxt"}
    file = project / "environments/test.yaml"
    file.write_text(ENVIRONMENT.replace("models: [double]", f"{on_endpoint}, models: [double]"))
    assert found() == {}
    _config(project, CONFIG)
    assert found() == {"response-cache-unused": "environments/test.yaml"}
    assert found("model_repos/double") == {}, "another folder of the endpoint may use it"


def test_a_variant_is_linted_for_its_own_instance_type_and_container(project: Path) -> None:
    copytree(project / "model_repos/double", project / "model_repos/other")
    _config(project, f"{CONFIG}response_cache {{ enable: true }}\n{SECOND_GPU}")
    larger = "instance_type: ml.g4dn.12xlarge, container: {response_cache_bytes: 1048576}"
    variants = f"[{{name: a, model: double, weight: 1, {larger}}}, {{name: b, model: other, weight: 1}}]"
    text = ENVIRONMENT.replace("multi-model", "single-model").replace("models: [double]", f"variants: {variants}")
    (project / "environments/test.yaml").write_text(text)
    rules = {finding["rule"] for finding in _json("--environment", "test")["findings"]}
    assert not rules & {"instance-gpu-missing", "response-cache-off", "response-cache-unused"}


def test_a_release_has_its_backends(project: Path) -> None:
    _config(project, CONFIG.replace('backend: "python"', 'platform: "tensorflow_graphdef"'))
    (project / "model_repos/double/double/1/model.graphdef").write_text("\n\3\n\1x")  # one node
    (project / "model_repos/double/recipe.yaml").write_text(
        (project / "model_repos/double/recipe.yaml").read_text().replace("kind: python", "kind: tensorflow")
    )
    assert _run("--release", "24.09").exit_code == 0
    result = _run("--release", "25.09")
    assert result.exit_code == 1
    assert "backend tensorflow" in result.stdout
    assert "release 25.09" in result.stdout


def test_a_release_with_known_vulnerabilities_is_one_warning_where_the_environment_names_it(project: Path) -> None:
    (finding,) = _json("--environment", "test")["findings"]
    assert (finding["rule"], finding["level"]) == ("release-vulnerable", "warning")
    assert (finding["file"], finding["line"]) == ("environments/test.yaml", 6)
    assert "CVE-2025-23310 (CVSS 9.8, fixed in 25.07)" in finding["found"]
    assert finding["found"].startswith("release 24.09 of endpoint one of test has ")
    (project / "model_repos/other").mkdir()
    (project / "model_repos/other/recipe.yaml").write_text((project / "model_repos/double/recipe.yaml").read_text())
    of_option = [each for each in _json("--release", "24.09")["findings"] if each["rule"] == "release-vulnerable"]
    assert [each["file"] for each in of_option] == ["model_repos"]
    assert not [each for each in _json("--release", "26.10")["findings"] if each["rule"].startswith("release-")]
    not_read = [each["rule"] for each in _json("--release", "30.01")["findings"] if each["rule"].startswith("release-")]
    assert not_read == ["release-not-read"]


def test_the_release_that_lint_advises_fits_the_endpoint_and_has_fewer_vulnerabilities(project: Path) -> None:
    (finding,) = _json("--environment", "test")["findings"]
    assert finding["allowed"].startswith(
        "release 26.05, the newest release with an image of AWS's in us-east-1 that fits this endpoint: 9 of"
    )
    file = project / "environments/test.yaml"
    file.write_text(ENVIRONMENT.replace("24.09", "26.05"))
    result = _run("--environment", "test")
    assert (result.exit_code, result.stderr) == (0, "folders: 1, errors: 0, warnings: 0, notes: 1\n")
    assert "note: release 26.05 of endpoint one of test has 9 known vulnerabilities" in result.stdout
    assert _run("--environment", "test", "--annotations").stdout.startswith(
        "::notice file=environments/test.yaml,line=6"
    )


def test_no_release_is_advised_that_lacks_a_backend_of_the_endpoints_models(project: Path) -> None:
    """No release from 25.03 on has TensorFlow, so 24.09 is the best that such an endpoint can have."""
    _config(project, CONFIG.replace('backend: "python"', 'platform: "tensorflow_graphdef"'))
    (project / "model_repos/double/double/1/model.graphdef").write_text("\n\3\n\1x")
    found = {each["rule"]: each for each in _json("--environment", "test")["findings"]}
    assert "release-vulnerable" not in found
    assert "none in us-east-1 that fits this endpoint has more of the fixes" in found["release-unfixed"]["allowed"]


def test_with_an_image_of_ones_own_the_advised_release_needs_none_of_awss(project: Path) -> None:
    own = 'release: "26.05", image: 123456789012.dkr.ecr.us-east-1.amazonaws.com/triton:26.05-py3'
    (project / "environments/test.yaml").write_text(ENVIRONMENT.replace('release: "24.09"', own))
    (finding,) = _json("--environment", "test")["findings"]
    assert finding["allowed"] == "release 26.10, the newest release that fits this endpoint: none left"


@cases("arguments, said")
def test_what_cannot_be_checked_is_refused(project: Path, arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(InputError, match=said):
        _run(*arguments)


def _explain(*arguments: str) -> str:
    return CliRunner().invoke(command, arguments, catch_exceptions=False).stdout


def test_without_a_rule_every_one_is_listed_once_below_its_category() -> None:
    lines = _explain().splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    assert sorted(listed) == list(rule_ids())
    assert [line.split(":")[0] for line in lines if line and not line.startswith(" ")] == list(CATEGORIES)


def test_a_rules_page_is_printed_as_it_is_where_there_is_no_terminal() -> None:
    assert _explain("instance-gpus") == page(rule("instance-gpus"))


def test_near_rules_are_named_for_one_that_does_not_exist() -> None:
    with pytest.raises(InputError) as caught:
        _explain("instance-gpu")
    assert caught.value.problems[0].allowed.split(", ")[0] in {"instance-gpus", "instance-count"}
    with pytest.raises(InputError, match="the list"):
        _explain("xyzzy")
