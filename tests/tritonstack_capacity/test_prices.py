"""``tritonstack capacity prices``: what it prints, what it writes, and its exit code where AWS refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from botocore.exceptions import NoCredentialsError

from tests.cli.test_examples import run_example
from tests.config.environment_file import write_environment
from tests.fake_aws import AwsError, FakeAws
from tests.tritonstack_capacity.price_list.documents import TYPE, text
from tritonstack.cli import root as cli

SCHEMA = Path(__file__).parents[2] / "schemas/prices.schema.json"
Run = Callable[..., tuple[int, str, str]]
OTHER = "ml.g5.16xlarge"
"""A type that the catalogue knows no price of in us-east-1."""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with environments in two regions."""
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(tmp_path))
    monkeypatch.setenv("TRITONSTACK_HOME", str(tmp_path / "state"))
    folder = tmp_path / "environments"
    folder.mkdir()
    write_environment(folder, header="environment: dev", endpoint=f"instance_type: {OTHER}", name="dev")
    write_environment(folder, header="environment: prod\nregion: eu-west-3", name="prod")
    return tmp_path


@dataclass
class PriceList:
    """Responses of GetProducts: documents by region, in pages; or a refusal for one region."""

    documents: dict[str, list[str]]
    page: int = 100
    refusals: dict[str, Exception] = field(default_factory=dict)
    requests: list[dict[str, Any]] = field(default_factory=list)

    def respond(self, request: dict[str, Any]) -> dict[str, Any] | Exception:
        self.requests.append(request)
        wanted = {row["Field"]: row["Value"] for row in request["Filters"]}
        assert wanted["component"] == "Hosting"
        if wanted["regionCode"] in self.refusals:
            return self.refusals[wanted["regionCode"]]
        found, start = self.documents.get(wanted["regionCode"], []), int(request.get("NextToken", 0))
        end = start + self.page
        more = {"NextToken": str(end)} if end < len(found) else {}
        return {"PriceList": found[start:end], **more}


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> PriceList:
    """A Price List in the place of AWS's."""
    found = PriceList(
        documents={
            "us-east-1": [text(TYPE, "0.7500000000"), text(OTHER, "5.1200000000"), text("ml.m5.large", "0.1")],
            "eu-west-3": [text(TYPE, "0.8610000000", region="eu-west-3")],
        }
    )

    def session(region: str) -> FakeAws:
        assert region == "us-east-1", "where the list answers"
        return FakeAws(responses={"pricing.GetProducts": found.respond}, region=region)

    monkeypatch.setattr("tritonstack_capacity.commands.prices.AccountSession", session)
    return found


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """``capacity prices <arguments>``: exit code, standard output, standard error. A traceback fails the test."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["tritonstack", "capacity", "prices", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    return call


def test_without_an_argument_the_environments_prices_are_shown_and_those_that_are_unknown(run: Run) -> None:
    code, printed, _ = run()
    assert code == 0
    lines = {line.split()[0]: line for line in printed.splitlines() if line.split()}
    assert "not known" in lines["dev/digits"]
    assert "0.861" in lines["prod/digits"]
    assert "on-demand list price of 2026-10-04" in lines["prod/digits"]
    assert (
        f"not known: {OTHER} in us-east-1, of dev/digits: `tritonstack capacity prices update --region us-east-1`"
        in printed
    )
    assert "fmbench 2.1.1" in printed
    assert " 0 " not in printed


def test_an_environment_s_own_price_is_shown_as_its_own(run: Run, project: Path) -> None:
    write_environment(
        project / "environments",
        header=f"environment: dev\nprices: {{{OTHER}: 5.5}}",
        endpoint=f"instance_type: {OTHER}",
        name="dev",
    )
    code, printed, _ = run("list", "--region", "us-east-1")
    assert code == 0
    [line] = [line for line in printed.splitlines() if "dev/digits" in line]
    assert "5.5" in line
    assert "the environment's file" in line
    assert "not known" not in printed
    assert "prod/digits" not in printed


def test_an_update_requests_every_environment_s_region_and_writes_a_file_of_the_schema(
    run: Run, aws: PriceList, project: Path
) -> None:
    aws.page = 2
    code, printed, messages = run("update")
    assert code == 0
    document = json.loads((project / "prices.json").read_text())
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(document)
    assert set(document["regions"]) == {"eu-west-3", "us-east-1"}
    assert set(document["regions"]["us-east-1"]["types"]) == {TYPE, OTHER}
    assert document["regions"]["us-east-1"]["types"][OTHER] == {
        "usd_per_hour": 5.12,
        "sku": f"SKU-{OTHER}-us-east-1",
        "usage_type": f"USE1-Host:{OTHER}",
        "effective": "2026-11-01",
    }
    assert len(aws.requests) == 3
    assert "4 products of eu-west-3, us-east-1" in messages
    assert "us-east-1: 2 prices; Price List 20261120025606, published 2026-11-20" in printed
    assert "look at its diff, and commit it" in printed
    assert "not known:" not in printed
    before = (project / "prices.json").stat().st_ino
    assert run("update", "--region", "us-east-1")[0] == 0
    assert (project / "prices.json").stat().st_ino == before, "the same prices are not written anew"
    aws.documents["us-east-1"].pop(0)
    assert f"listed no longer, kept as it was: us-east-1 {TYPE}" in run("update")[1]
    code, _, messages = run("update", "--region", "ap-south-1")
    assert code == 1
    assert "no hosting product in ap-south-1: nothing is written" in messages


def test_the_example_of_help_writes_prices(aws: PriceList, project: Path) -> None:
    aws.documents["eu-west-1"] = [text(TYPE, "0.8210000000", region="eu-west-1")]
    assert run_example("capacity prices update").exception is None
    assert json.loads((project / "prices.json").read_text())["regions"]["eu-west-1"]["types"].keys() == {TYPE}


def test_a_price_that_is_not_clear_is_refused_by_name_and_the_others_are_written(
    run: Run, aws: PriceList, project: Path
) -> None:
    aws.documents["us-east-1"] += [text(OTHER, "4.0", sku="B"), "no JSON"]
    code, _, messages = run("update", "--region", "us-east-1")
    assert code == 1
    assert f"refused: us-east-1 {OTHER}: 2 products: SKU SKU-{OTHER}-us-east-1 at 5.12 USD, SKU B at 4 USD" in messages
    assert "refused: us-east-1: the document is no JSON" in messages
    assert set(json.loads((project / "prices.json").read_text())["regions"]["us-east-1"]["types"]) == {TYPE}


@pytest.mark.parametrize(
    ("code_of_aws", "words"),
    [
        ("AccessDeniedException", "AWS denies pricing:GetProducts"),
        ("ThrottlingException", "throttled to the last attempt"),
        ("ExpiredTokenException", "credentials do not work"),
    ],
)
def test_a_refusal_is_one_message_and_leaves_the_file(
    code_of_aws: str, words: str, *, run: Run, aws: PriceList, project: Path
) -> None:
    file = project / "prices.json"
    run("update")
    before = file.read_bytes()
    aws.documents["eu-west-3"] = [text(TYPE, "0.9", region="eu-west-3")]
    aws.refusals["us-east-1"] = AwsError(code_of_aws)
    code, printed, messages = run("update")
    assert code == 1
    assert printed == ""
    assert words in messages
    assert "Nothing is written" in messages
    assert file.read_bytes() == before


def test_without_credentials_the_message_names_the_permission(run: Run, aws: PriceList) -> None:
    aws.refusals = dict.fromkeys(aws.documents, NoCredentialsError())
    code, _, messages = run("update")
    assert code == 2
    for word in ("Unable to locate credentials", "of any account", "pricing:GetProducts"):
        assert word in messages


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["update", "--region", "us-east-9", "--region", "x"], ["found:   us-east-9", "found:   x", "us-east-1"]),
        (["list", "--region", "us-east-9"], ["found:   us-east-9"]),
    ],
)
def test_wrong_input_ends_with_2_and_sends_no_request(
    arguments: list[str], words: list[str], run: Run, aws: PriceList
) -> None:
    code, _, messages = run(*arguments)
    assert code == 2
    for word in words:
        assert word in messages
    assert aws.requests == []
