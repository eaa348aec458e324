"""cfn-lint over every template: the committed environments', and those of one with everything on, in another region."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import aws_cdk as cdk
import pytest
import yaml
from cfnlint.config import ConfigMixIn, ManualArgs
from cfnlint.decode.decode import decode_str
from cfnlint.runner import Runner

from tests.constructs_lib.templates import new_app
from tests.stacks.app_process import ROOT, committed_assembly
from tests.stacks.everything import everything

REGIONS = ("us-east-1", "eu-central-1")
CONFIG = ROOT / ".cfnlintrc"
CARELESS = """
Resources:
  Endpoint: {Type: AWS::SageMaker::Endpoint, Properties: {EndpointConfigName: one, EndpointNam: two}}
"""

Found = dict[str, list[str]]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Check → where it found something, with nothing passed over and nothing to be reached."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        patch.setattr(socket, "getaddrinfo", refuse)
        templates = list(committed(committed_assembly(tmp_path_factory)))
        whole = new_app()
        everything(tmp_path_factory.mktemp("everything"), scope=whole, region="eu-central-1")
        templates += synthesised(whole)
        assert len(templates) > 20
        assert {region for region, _, _ in templates} == set(REGIONS)
        everywhere: Found = {}
        # From a folder and a home without a configuration, which would be read by itself.
        patch.chdir(tmp_path_factory.mktemp("elsewhere"))
        patch.setenv("HOME", str(Path.cwd()))
        linters = {region: linter(region) for region in REGIONS}
        for region, stack, text in templates:
            for check, where in findings(text, by=linters[region]):
                everywhere.setdefault(check, []).append(f"{region} {stack}: {where}")
        return everywhere


def refuse(*_arguments: object, **_keywords: object) -> None:
    """In place of a connection."""
    raise OSError("cfn-lint reached for the network")


def committed(assembly: Path) -> Iterator[tuple[str, str, str]]:
    """Region, stack and template of every stack of the committed environments."""
    for file in sorted(assembly.glob("assembly-*/manifest.json")):
        for name, each in json.loads(file.read_text())["artifacts"].items():
            if each["type"] == "aws:cloudformation:stack":
                region = each["environment"].rpartition("/")[2]
                yield region, name, (file.parent / each["properties"]["templateFile"]).read_text()


def synthesised(whole: cdk.App) -> Iterator[tuple[str, str, str]]:
    """Region, stack and template of every stack of an app."""
    for nested in whole.synth().nested_assemblies:
        for stack in nested.nested_assembly.stacks:
            yield stack.environment.region, stack.stack_name, Path(stack.template_full_path).read_text()


def linter(region: str) -> Runner:
    """cfn-lint for one region; its rules are loaded once, which takes longer than a template."""
    return Runner(ConfigMixIn(**ManualArgs(regions=[region])))


def findings(text: str, *, by: Runner) -> list[tuple[str, str]]:
    """Check, place and message of each finding of cfn-lint in a template."""
    template, errors = decode_str(text)
    matches = [*errors, *(by.validate_template(template) if template is not None else ())]
    return [(each.rule.id, f"{'/'.join(map(str, each.path or ()))}: {each.message}") for each in matches]


def passed_over() -> dict[str, str]:
    """Check → reason, as the configuration file has them: a check a line, its reason in the comment above."""
    read = re.findall(r"((?:^ *#.*\n)+)^ *- (\S+)$", CONFIG.read_text(), re.MULTILINE)
    return {check: " ".join(line.strip(" #") for line in comment.splitlines()) for comment, check in read}


@pytest.mark.long
def test_cfn_lint_finds_nothing_that_is_not_passed_over_with_a_reason(found: Found) -> None:
    assert {check: where for check, where in found.items() if check not in passed_over()} == {}


@pytest.mark.long
def test_what_is_passed_over_is_a_warning_that_is_there_and_has_a_reason(found: Found) -> None:
    reasons = passed_over()
    assert sorted(reasons) == sorted(yaml.safe_load(CONFIG.read_text())["ignore_checks"])
    assert sorted(reasons) == sorted(set(found) & set(reasons)), "one that finds nothing any more"
    for check, reason in reasons.items():
        assert check.startswith("W"), "errors are fixed"
        assert reason.endswith("."), check
        assert len(reason.split()) > 12, check


def test_cfn_lint_does_look() -> None:
    assert "E3002" in {check for check, _ in findings(CARELESS, by=linter("us-east-1"))}
