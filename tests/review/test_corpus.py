"""The report of a review on each change of the corpus."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.constructs_lib.templates import ROOT
from tests.review.corpus.case import Case, Settled, case, cases, settled_by_hand
from tests.review.corpus.made import Made, facts_of
from tritonstack.cloudformation.resource_schemas import replacement_rules
from tritonstack.review.assembly import read_assembly, synthesise
from tritonstack.review.change import Effect
from tritonstack.review.document import BaseEntry
from tritonstack.review.report import document_of
from tritonstack.review.views.markdown import markdown
from tritonstack.review.views.pages import page

ANEW = "where that is meant: python -m tests.review.corpus.write, and read what it changes"
NAMES = [each.name for each in cases()]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("corpus"))


def test_every_case_has_facts() -> None:
    assert len(NAMES) >= 50
    assert not [each.name for each in cases() if not each.facts]


@pytest.mark.parametrize("name", NAMES)
def test_the_facts_of_a_report(made: Made, name: str) -> None:
    """Compared part by part, so that a failure names the part."""
    found, expected = facts_of(made, case(name)), case(name).facts
    for part in {**expected, **found}:
        assert found.get(part) == expected.get(part), f"{name}: {part}; {ANEW}"


SETTLED = settled_by_hand()
IN_CASES = [each for each in SETTLED if each.case is not None]


def test_many_cases_are_settled_by_hand() -> None:
    assert len(SETTLED) >= 40
    assert len({each.case for each in IN_CASES}) >= 8
    assert {each.type for each in IN_CASES} >= {
        "AWS::SageMaker::Model",
        "AWS::SageMaker::EndpointConfig",
        "AWS::SageMaker::Endpoint",
        "AWS::S3::Bucket",
        "AWS::IAM::Role",
    }


@pytest.mark.parametrize("settled", SETTLED, ids=str)
def test_what_replaces_is_what_aws_documents(settled: Settled) -> None:
    rules = replacement_rules(settled.type)
    assert rules is not None
    assert rules.of((settled.property,)) == ("yes" if settled.replaces else "no")


@pytest.mark.parametrize("settled", IN_CASES, ids=str)
def test_a_review_reports_of_a_case_what_aws_documents(made: Made, settled: Settled) -> None:
    changes = [
        (resource, [each for each in resource.properties if each.path[0] == settled.property])
        for stack in made.change(case(settled.case or "")).stacks
        for resource in stack.resources
        if f"{stack.name}/{resource.path}" == settled.at
    ]
    [(resource, properties)] = changes
    assert resource.type == settled.type
    wanted = ("yes", Effect.REPLACED) if settled.replaces else ("no", Effect.CHANGED)
    assert {each.replaces for each in properties if each.certain} == {wanted[0]}
    if settled.replaces or len(properties) == len(resource.properties):
        assert resource.effect is wanted[1]


def test_a_report_has_the_same_bytes_from_another_folder_in_every_form(made: Made, tmp_path: Path) -> None:
    def texts(made: Made, each: Case) -> tuple[str, str, str]:
        document = made.document(each)
        return document.text(), markdown(document), page(document)

    again = Made(tmp_path / "an other folder")
    for name in ("instance type", "single-model becomes multi-model", "VPC switched at once"):
        assert texts(made, case(name)) == texts(again, case(name)) == texts(again, case(name))


@pytest.mark.long
def test_a_new_policy_finding_is_reported(tmp_path: Path) -> None:
    """With cdk-nag, which the cases are synthesised without: it takes longer than all of them."""
    project = tmp_path / "project"
    project.mkdir()
    command = f"env PYTHONPATH={ROOT} {sys.executable} -m tests.review.corpus.validated"
    settings = {"app": command, "context": json.loads((ROOT / "cdk.json").read_text())["context"]}
    (project / "cdk.json").write_text(json.dumps(settings))
    sides = []
    for side in ("before", "after"):
        context = {"case": "containers may do everything in S3", "side": side, "folder": str(tmp_path / side)}
        synthesise(project, tmp_path / f"{side}.out", context=context)
        sides.append(read_assembly(tmp_path / f"{side}.out"))
    [environment] = document_of(*sides, base=BaseEntry(ref="main", commit="0" * 40, chosen=False)).environments
    assert environment.findings_known
    assert {(each.stack, each.path, each.rule) for each in environment.findings if each.change == "new"} == {
        ("serving-digits", "ExecutionRole/Access3a26eb68", "AwsSolutions-IAM5[Action::s3:*]"),
    }
    assert "1 new policy finding" in environment.sentence
