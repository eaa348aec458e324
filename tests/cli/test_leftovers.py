"""``tritonstack leftovers``: what it lists, confirms, deletes and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.cli.test_examples import run_example
from tests.deployed.account import BUCKET, EMPTIED, NOT_AUTHORIZED, Account, part
from tritonstack.cli import leftovers
from tritonstack.config import load_environment
from tritonstack.errors import InputError, WorkFailedError

FILE = """
environment: dev
account: "{account}"
region: us-east-1
production: false
prices: {{ml.g4dn.xlarge: 0.5}}
endpoints:
  - {{name: new, mode: multi-model, release: "24.09", instance_type: ml.g4dn.xlarge, models: [double]}}
"""


class World:
    """A project with one environment, and an account where its endpoint had another name."""

    def __init__(self, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.account = Account(
            rows=[part("dev", name) for name in ("artifacts", "serving-new", "serving-old", "network")]
            + [part("dev-old", "serving-x")],
            templates={"dev-artifacts": {"Bucket": BUCKET}},
            instances={"dev-old": 2, "dev-new": 1},
        )
        self.project = project
        self.terminal = False
        self.write()
        monkeypatch.setenv("TRITONSTACK_PROJECT", str(project))
        monkeypatch.setattr(leftovers, "POLL_SECONDS", 0)
        for name in ("session_of", "calling_session"):
            monkeypatch.setattr(leftovers, name, lambda *_, **__: self.account)

    def write(self, account: str = "123456789012") -> None:
        file = self.project / "environments" / "dev.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(FILE.format(account=account))

    def run(self, *arguments: str, answer: str | None = None) -> Result:
        return CliRunner().invoke(leftovers.command, ["-e", "dev", *arguments], input=answer, standalone_mode=False)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def test_without_delete_what_left_is_listed_with_its_cost_and_nothing_changes(world: World) -> None:
    result = world.run()
    assert result.exit_code == 0
    assert "dev-serving-old (endpoint dev-old, 2 of ml.g4dn.xlarge) is still deployed in us-east-1" in result.stdout
    assert "it costs 1.00 USD/hour" in result.stdout
    assert "together: 1.00 USD/hour" in result.stdout
    assert "tritonstack leftovers -e dev --delete" in result.stdout
    for other in ("dev-serving-new", "dev-old-serving-x", "dev-artifacts"):
        assert other not in result.stdout
    rows: list[dict[str, Any]] = json.loads(world.run("--json").stdout)["left"]
    assert [(each["stack"], each["usd_per_hour"]) for each in rows] == [("dev-serving-old", 1.0), ("dev-network", 0.0)]
    assert world.account.deleted == []


def test_a_deletion_lists_its_stacks_and_needs_a_terminal_or_yes(world: World) -> None:
    result = world.run("--delete")
    assert isinstance(result.exception, InputError)
    assert "--yes" in str(result.exception)
    assert "1. delete dev-serving-old" in result.stdout
    assert "2. delete dev-network" in result.stdout
    assert world.account.deleted == []
    assert world.run("--delete", "--yes").exit_code == 0
    assert world.account.deleted == ["dev-serving-old", "dev-network"]
    assert "nothing of dev is deployed that its file does not have" in world.run().stdout
    assert world.run("--delete", "--yes").exit_code == 0


@pytest.mark.parametrize(("answer", "deleted"), [("y\n", 2), ("n\n", 0), ("\n", 0)])
def test_at_a_terminal_the_answer_decides(
    world: World, monkeypatch: pytest.MonkeyPatch, answer: str, deleted: int
) -> None:
    monkeypatch.setattr(leftovers, "_at_a_terminal", lambda: True)
    result = world.run("--delete", answer=answer)
    assert "Delete dev-serving-old, dev-network?" in result.stderr
    assert len(world.account.deleted) == deleted
    assert (result.return_value == 0) is bool(deleted)


def test_the_example_of_help_deletes_after_its_question(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    file = world.project / "environments" / "dev.yaml"
    file.with_name("prod.yaml").write_text(file.read_text().replace("environment: dev", "environment: prod"))
    world.account.rows = [part("prod", name) for name in ("artifacts", "serving-new", "serving-old")]
    world.account.templates = {"prod-artifacts": {"Bucket": BUCKET}}
    monkeypatch.setattr(leftovers, "_at_a_terminal", lambda: True)
    assert run_example("leftovers", typed="y\n").exception is None
    assert world.account.deleted == ["prod-serving-old"]


def test_what_is_in_use_stays_with_exit_code_1_and_the_reason(world: World) -> None:
    world.account.rows[1]["Parameters"] = [
        {"ParameterKey": "P", "ParameterValue": "/tritonstack/dev/_network/subnet-us-east-1a"}
    ]
    result = world.run("--delete", "--yes")
    assert result.return_value == 1
    assert "dev-serving-new reads its parameters" in result.stdout
    assert world.account.deleted == ["dev-serving-old"]


def test_credentials_of_another_account_delete_nothing(world: World) -> None:
    world.write(account="210987654321")
    assert isinstance(world.run("--delete", "--yes").exception, InputError)
    assert world.account.deleted == []


def test_a_file_that_was_removed_is_said_and_archives_are_never_deleted_silently(world: World) -> None:
    assert "--removed" in str(world.run("--removed").exception), "the file is there"
    (world.project / "environments" / "dev.yaml").unlink()
    assert "--removed" in str(world.run().exception), "a misspelt environment must not delete everything"
    world.account.templates["dev-artifacts"] = EMPTIED
    result = world.run("--removed", "--delete", "--yes")
    assert result.return_value == 1
    assert "dev-artifacts-bucket with every archive in it: --archives allows that" in result.stdout
    assert "dev-artifacts" not in world.account.deleted
    result = world.run("--removed", "--delete", "--yes", "--archives")
    assert result.exit_code == 0
    assert "DELETES the bucket dev-artifacts-bucket" in result.stdout
    assert world.account.deleted[-1] == "dev-artifacts"
    assert world.account.rows[-1]["StackStatus"] == "CREATE_COMPLETE", "of environment dev-old"


def test_in_a_region_that_the_file_names_no_longer_everything_left(world: World) -> None:
    result = world.run("--region", "eu-west-1")
    assert "dev-serving-new" in result.stdout
    assert "environments/dev.yaml deploys to us-east-1" in result.stdout
    assert "leftovers -e dev --region eu-west-1 --delete" in result.stdout


def test_options_of_a_deletion_without_it_and_refusals_are_messages(world: World) -> None:
    assert isinstance(world.run("--yes").exception, InputError)
    world.account.refused = {"DescribeStacks": NOT_AUTHORIZED}
    result = world.run()
    assert isinstance(result.exception, WorkFailedError)
    assert "cloudformation:DescribeStacks" in str(result.exception)


def test_other_commands_name_what_left_and_go_on_where_aws_does_not_say(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = load_environment(world.project / "environments" / "dev.yaml")
    found = leftovers.note_left(settings, world.account, local=False)
    assert [each.stack for each in found or ()] == ["dev-serving-old", "dev-network"]
    assert "do:      tritonstack leftovers -e dev lists them" in capsys.readouterr().err
    world.account.refused = {"DescribeStacks": NOT_AUTHORIZED}
    assert leftovers.note_left(settings, world.account, local=False) is None
    assert "stacks that left environments/dev.yaml could not be listed" in capsys.readouterr().err
