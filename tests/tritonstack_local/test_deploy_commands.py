"""``local deploy`` and ``local destroy``: what is refused before anything is deployed, and what is there afterwards."""

from __future__ import annotations

import fcntl
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import copytree

import click
import pytest
from click.testing import CliRunner

from tests.models.folders import write_double
from tests.tritonstack_local.fake_parts import AWS
from tritonstack.cli.progress import Steps
from tritonstack.config import AlarmSettings, Environment, load_environment
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.paths import REPOSITORY, LocalPaths, project_folder
from tritonstack.served import served_by
from tritonstack_local.commands import deploy, destroy
from tritonstack_local.commands.deploy import LOCK, LocalDeployment

FILE = REPOSITORY / "environments" / "local.yaml"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the test's own, and the repository's environments."""
    monkeypatch.setenv("TRITONSTACK_HOME", str(tmp_path))
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(REPOSITORY))
    return tmp_path


@pytest.fixture
def settings() -> Environment:
    """The repository's own environment ``local``."""
    return load_environment(REPOSITORY / "environments" / "local.yaml")


NEEDS = {
    "templates": {"bootstrap"},
    "local/artifacts": {"templates"},
    "published": {"built", "local/artifacts"},
    "local/builds": {"local/artifacts"},
    "local/serving-*": {"published"},
    "local/observability": {"published"},
}
"""What an account and a machine must have for a step to succeed."""


class Account:
    """An account that fails a step without its prerequisites.

    ``at_once``: concurrency of each deployment. ``policies``: of CloudFormation's execution role at each bootstrap.
    """

    def __init__(self) -> None:
        self.needs = dict(NEEDS)
        self.there: set[str] = set()
        self.at_once: dict[str, int] = {}
        self.policies: list[list[str]] = []
        self.removed = False

    def add(self, name: str) -> None:
        missing = self.needs.get(name, set()) - self.there
        assert not missing, f"{name} without {missing}"
        self.there.add(name)

    def bootstrap(self, *, policies: Sequence[str] = ()) -> None:
        self.add("bootstrap")
        self.policies.append(list(policies))

    def deploy(self, stacks: str, *, concurrency: int = 1) -> None:
        self.add(stacks)
        self.at_once[stacks] = concurrency

    def destroy(self) -> None:
        self.removed = True


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Account:
    """A new account that ``local deploy`` deploys to."""
    account = Account()

    def step(name: str, result: str = "") -> Callable[..., str]:
        def run(*_: object, **__: object) -> str:
            account.add(name)
            return result

        return run

    monkeypatch.setattr(LocalDeployment, "bootstrapped", lambda _self: "bootstrap" in account.there)
    monkeypatch.setattr(LocalDeployment, "bootstrap", account.bootstrap)
    monkeypatch.setattr(LocalDeployment, "execution_policies", lambda _self, settings: [settings.environment])
    monkeypatch.setattr(LocalDeployment, "synthesise", step("templates"))
    monkeypatch.setattr(LocalDeployment, "deploy", account.deploy)
    monkeypatch.setattr(LocalDeployment, "destroy", account.destroy)
    monkeypatch.setattr(deploy, "build_environment", step("built", "2 built"))
    monkeypatch.setattr(deploy, "publish_environment", step("published", "2 published"))
    monkeypatch.setattr(deploy, "started_local_aws", lambda: AWS)
    monkeypatch.setattr(destroy, "require_local_aws", lambda: AWS)
    monkeypatch.setattr(deploy, "refuse_stuck", lambda _aws, _environment: None)
    monkeypatch.setattr(destroy, "own_stacks", lambda _aws, _environment: ())
    return account


def test_a_deployment_ends_with_published_archives_and_endpoints(
    account: Account, settings: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    deploy.deploy(settings, AWS, Steps())
    assert {"published", "local/observability"} <= account.there
    printed = capsys.readouterr().err
    assert "2 built" in printed
    assert "2 published" in printed


@pytest.mark.parametrize(
    ("watched", "stack"),
    [
        ({"dashboard": True}, "local/observability"),
        ({"alarms": AlarmSettings()}, "local/observability"),
        ({}, "local/serving-*"),
    ],
    ids=["dashboard", "alarms", "neither"],
)
def test_endpoints_are_deployed_several_at_once_with_their_observability_where_there_is_any(
    account: Account, settings: Environment, watched: dict[str, object], stack: str
) -> None:
    changed = settings.model_copy(update={"dashboard": False, "alarms": None, **watched})
    deploy.deploy(changed, AWS, Steps(), builds=True, concurrency=3)
    assert account.at_once == {"local/artifacts": 1, "local/builds": 1, stack: 3}


def test_a_restricted_deployment_bootstraps_again_with_the_policy_of_its_environment(account: Account) -> None:
    for option in ([], [], ["--restrict-cloudformation"]):
        assert CliRunner().invoke(deploy.deploy_command, option).exit_code == 0
    assert account.policies == [[], ["local"]]


def test_nothing_is_deployed_after_a_step_that_failed_nor_bootstrapped_again(
    account: Account, settings: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise WorkFailedError("the export failed")

    account.there.add("bootstrap")
    monkeypatch.setattr(LocalDeployment, "bootstrap", lambda _self: pytest.fail("bootstrapped again"))
    monkeypatch.setattr(deploy, "build_environment", fail)
    with pytest.raises(WorkFailedError, match="the export failed"):
        deploy.deploy(settings, AWS, Steps())
    assert set(account.at_once) == {"local/artifacts"}


def test_another_account_and_another_region_are_refused_both_at_once(settings: Environment) -> None:
    deploy.check_account(settings, file="local.yaml")
    other = settings.model_copy(update={"account": "210987654321", "region": "eu-west-1"})
    with pytest.raises(InputError) as raised:
        deploy.check_account(other, file="dev.yaml")
    assert [(one.file, one.field, one.found, one.allowed) for one in raised.value.problems] == [
        ("dev.yaml", "account", "210987654321", "123456789012"),
        ("dev.yaml", "region", "eu-west-1", "us-east-1"),
    ]
    assert 'with account: "123456789012"' in raised.value.problems[0].advice


def test_models_without_a_folder_are_named_with_every_place_in_the_file(settings: Environment, tmp_path: Path) -> None:
    served_by(settings, project_folder() / "model_repos", file=FILE)
    head, endpoints, digits = FILE.read_text().partition("endpoints:\n")
    one = digits.replace("name: digits", "name: one").replace(
        "[digits-onnx, digits-ensemble]", "[missing-a, missing-b]"
    )
    two = one.replace("name: one", "name: two").replace("missing-b", "missing-c")
    file = tmp_path / "local.yaml"
    file.write_text(head + endpoints + one + two)
    first, second = (n for n, line in enumerate(file.read_text().splitlines(), start=1) if "models: [missing" in line)
    with pytest.raises(InputError) as raised:
        served_by(load_environment(file), project_folder() / "model_repos", file=file)
    assert [(problem.file, problem.field, problem.found.split(",")[0]) for problem in raised.value.problems] == [
        (f"{file}:{first}", "endpoints[0].models[0]", "missing-a"),
        (f"{file}:{first}", "endpoints[0].models[1]", "missing-b"),
        (f"{file}:{second}", "endpoints[1].models[0]", "missing-a"),
        (f"{file}:{second}", "endpoints[1].models[1]", "missing-c"),
    ]


@pytest.mark.parametrize(
    ("mode", "served"),
    [
        ("multi-model", "models: [double]"),
        ("single-model", "variants: [{name: a, model: double, weight: 1}, {name: b, model: other, weight: 1}]"),
    ],
)
def test_a_model_that_the_local_triton_cannot_load_is_refused_before_anything_is_deployed(
    account: Account, home: Path, monkeypatch: pytest.MonkeyPatch, mode: str, served: str
) -> None:
    folder = write_double(home)
    for file, old, new in (("recipe.yaml", "python", "other"), ("double/config.pbtxt", '"python"', '"fil"')):
        (folder / file).write_text((folder / file).read_text().replace(old, new, 1))
    head, _, digits = FILE.read_text().partition("endpoints:\n")
    environment = home / "environments/local.yaml"
    environment.parent.mkdir()
    copytree(folder, folder.with_name("other"))
    endpoint = re.sub(r"(?s)models: \[.*?\n(?=    timeouts)", f"{served}\n", digits.replace("multi-model", mode))
    environment.write_text(f"{head}endpoints:\n{endpoint}")
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(home))
    result = CliRunner().invoke(deploy.deploy_command, [])
    assert isinstance(result.exception, InputError)
    problem = result.exception.problems[0]
    assert problem.field == f"endpoints[0].{served.partition(':')[0]}"
    assert problem.found.startswith("double, and the local Triton has no backend fil: its load would fail here")
    assert account.there == set()


def test_what_was_deployed_is_removed_and_nothing_that_was_only_half_synthesised(account: Account, home: Path) -> None:
    assembly = LocalPaths(home).assembly("local")
    assembly.mkdir(parents=True)
    for name in ("local", "dev"):
        result = CliRunner().invoke(destroy.destroy_command, ["-e", name])
        assert isinstance(result.exception, InputError)
        assert f"tritonstack local deploy -e {name}" in str(result.exception)
    for name in ("..", "../other", "a*", "", "Local"):
        assert isinstance(CliRunner().invoke(destroy.destroy_command, ["-e", name]).exception, InputError)
    assert not account.removed
    (assembly / "manifest.json").write_text("{}")
    assert CliRunner().invoke(destroy.destroy_command, []).exit_code == 0
    assert account.removed


@pytest.mark.parametrize("command", [deploy.deploy_command, destroy.destroy_command])
def test_deployments_and_removals_hold_the_lock(
    command: click.Command, account: Account, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[bool] = []

    def look(*_: object) -> None:
        with (home / LOCK).open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                held.append(True)

    account.there |= {"bootstrap", "templates"}
    for name in ("synthesise", "destroy"):
        monkeypatch.setattr(LocalDeployment, name, look)
    assembly = LocalPaths(home).assembly("local")
    assembly.mkdir(parents=True)
    (assembly / "manifest.json").write_text("{}")
    assert CliRunner().invoke(command, []).exit_code == 0
    assert held == [True]


def test_an_interrupted_deployment_reports_that_the_local_aws_stays_up(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_self: LocalDeployment) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalDeployment, "synthesise", interrupt)
    result = CliRunner().invoke(deploy.deploy_command, [])
    assert result.exit_code != 0
    assert "the local AWS stays up" in result.stderr
