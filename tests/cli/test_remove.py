"""``tritonstack remove``: the folder and its entries go, what is in the way is named, who calls it is said."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.exceptions import Abort
from click.testing import Result

from tests import command_line
from tests.cli.test_examples import run_example
from tests.config.environment_file import write_environment
from tests.fake_aws import DENIED, FakeAws
from tests.models.folders import write_double
from tritonstack.cli import remove
from tritonstack.errors import InputError, Problem

A, B = "a" * 16, "b" * 16


class World(FakeAws):
    """An account with two releases of ``old``, and requests to its endpoint."""

    def __init__(self) -> None:
        name = "/tritonstack/local/digits/old"
        super().__init__(parameters={name: A}, responses={"cloudwatch.GetMetricData": self.metric_data})
        at = datetime(2026, 1, 1, tzinfo=UTC)
        values = ((1, B), (2, A))
        self.versions[name] = [
            {"Name": name, "Value": value, "Version": number, "LastModifiedDate": at} for number, value in values
        ]
        self.invocations: list[float] | None = [1200.0, 34.0]

    def metric_data(self, request: dict[str, Any]) -> dict[str, Any]:
        """GetMetricData's response to a request about the endpoint's one variant."""
        if self.invocations is None:
            raise DENIED
        start, end = (request[name] for name in ("StartTime", "EndTime"))
        assert 86_400 <= end - start < 2 * 86_400
        [query] = request["MetricDataQueries"]
        metric = query["MetricStat"]["Metric"]
        dimensions = {one["Name"]: one["Value"] for one in metric["Dimensions"]}
        assert dimensions == {"EndpointName": "local-digits", "VariantName": "g4dn-xlarge"}
        assert (metric["MetricName"], query["MetricStat"]["Stat"]) == ("Invocations", "Sum")
        return {"MetricDataResults": [{"Id": query["Id"], "Values": self.invocations}]}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """The account that the command finds."""
    world = World()
    monkeypatch.setattr(remove, "session_of", lambda _settings, **_: world)
    return world


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in git that serves ``old`` and ``new``; the working folder."""
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in ("old", "new"):
        write_double(tmp_path, name)
    (tmp_path / "environments").mkdir()
    write_environment(tmp_path / "environments", endpoint="models: [old, new]    # two")
    git("init", "-q")
    git("add", "-A")
    git("-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "two models")
    return tmp_path


def git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], check=True)


def run(*arguments: str, answer: str = "") -> Result:
    return command_line.run("remove", *arguments, typed=answer)


@pytest.mark.usefixtures("world")
def test_the_folder_and_its_entry_go_and_callers_and_what_stays_are_named(project: Path) -> None:
    file = project / "environments/local.yaml"
    before = file.read_text()
    page = (Path(__file__).parents[2] / "docs/next-version.md").read_text()
    assert "$ tritonstack remove iris\n" in page
    done = run("old", "--yes")
    assert done.exception is None, done.output
    assert not (project / "model_repos/old").exists()
    assert file.read_text() == before.replace("[old, new]    # two", "[new]    # two")
    said = (
        "1,234 requests in the last day: to this model and the others of the endpoint, which CloudWatch does not tell"
    )
    assert f"local/digits: {said}" in done.stdout
    assert f"stays: the archive of {A} and of 1 earlier releases, until tritonstack prune -e local" in done.stdout
    assert "to bring it back: git checkout" in done.stdout
    assert "git add -A environments/local.yaml model_repos/old" in done.stdout
    assert [path.name for path in (project / "model_repos").iterdir()] == ["new"]


@pytest.mark.usefixtures("world")
def test_the_example_of_help_removes_a_model(project: Path) -> None:
    write_double(project, "iris")
    assert run_example("remove").exception is None
    assert not (project / "model_repos/iris").exists()


@pytest.mark.usefixtures("world")
def test_without_a_terminal_the_list_alone_is_printed_and_nothing_goes(project: Path) -> None:
    done = run("old")
    assert "tritonstack remove old --yes" in str(done.exception)
    assert "remove model_repos/old" in done.stdout
    assert (project / "model_repos/old").is_dir()
    assert "old" in (project / "environments/local.yaml").read_text()


def test_where_nothing_can_be_asked_the_command_that_does_is_printed(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_environment(project / "environments", name="prod", header="environment: prod", endpoint="models: [old, new]")

    def no_session(*_: Any, **__: Any) -> Any:
        raise InputError([Problem(found="no local AWS runs", allowed="one")])

    monkeypatch.setattr(remove, "session_of", no_session)
    done = run("old", "--yes")
    assert "local/digits: requests of the last day not looked up: no local AWS runs" in done.stdout
    assert "prod/digits: requests of the last day not looked up: no local AWS runs" in done.stdout
    assert "aws cloudwatch get-metric-statistics --region us-east-1" in done.stdout
    assert "Name=EndpointName,Value=prod-digits Name=VariantName,Value=g4dn-xlarge" in done.stdout
    assert not (project / "model_repos/old").exists()


def test_a_day_without_a_request_and_a_refusal_of_aws_are_told_apart(project: Path, world: World) -> None:
    world.invocations = []
    assert "local/digits: no request in the last day: nobody calls old there" in run("old").stdout
    world.invocations = None
    assert "local/digits: requests of the last day not looked up: CloudWatch did not say" in run("old").stdout
    assert (project / "model_repos/old").is_dir()


def test_a_folder_that_another_model_uses_is_refused_and_that_model_named(project: Path) -> None:
    with (project / "model_repos/new/recipe.yaml").open("a") as recipe:
        recipe.write("uses: [{folder: old, models: [old]}]\n")
    done = run("old", "--yes")
    assert "model_repos/new/recipe.yaml: uses" in str(done.exception)
    assert "tritonstack remove new" in str(done.exception)
    assert (project / "model_repos/old").is_dir()


@pytest.mark.usefixtures("world")
def test_an_endpoint_without_a_model_is_refused_or_goes_with_it(project: Path) -> None:
    file = write_environment(project / "environments", endpoint="models: [old]")
    refused = run("old", "--yes")
    assert "tritonstack remove old --with-endpoint" in str(refused.exception)
    assert "tritonstack leftovers -e local --delete" in str(refused.exception)
    done = run("old", "--with-endpoint", "--yes")
    assert done.exception is None, done.output
    assert file.read_text().endswith("endpoints: []\n")
    assert "endpoint digits: - the endpoint itself" in done.stdout
    assert not (project / "model_repos/old").exists()


@pytest.mark.usefixtures("world")
def test_changes_that_no_commit_has_are_named_before_they_are_lost(project: Path) -> None:
    (project / "model_repos/old/old/1/more.py").write_text("")
    assert "model_repos/old holds what no commit has" in run("old").stdout


@pytest.mark.parametrize("name", ["nothing", "../environments", "_exporters", "."])
def test_what_is_no_model_is_refused(project: Path, name: str) -> None:
    (project / "model_repos/_exporters").mkdir()
    done = run(name, "--yes")
    assert isinstance(done.exception, InputError)
    assert "a model folder: new, old" in str(done.exception)
    assert (project / "environments/local.yaml").is_file()


@pytest.mark.usefixtures("world")
def test_an_interruption_leaves_files_and_folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = project / "environments/local.yaml"
    before = file.read_text()

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(Abort):
        run("old", "--yes")
    assert file.read_text() == before
    assert (project / "model_repos/old/recipe.yaml").is_file()
