"""Functions behind custom resources: their code (all that it needs and no more) and their execution role."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import aws_cdk as cdk
import boto3
import pytest
from aws_cdk import aws_logs as logs

from constructs_lib import handler_function
from constructs_lib.handler_function import HANDLERS, HandlerFunction, entry_point, pack
from tests.constructs_lib.templates import ACCOUNT, REGION, new_app, properties

IMPORT = """
import importlib, json, pathlib, sys
asset, packages, entry = sys.argv[1:]
class OnlyBoto3:
    allowed = {"boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six", "urllib3", "awscrt"}
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in self.allowed or top in sys.stdlib_module_names or top == "lambda":
            return None
        raise ModuleNotFoundError(f"{name} is neither of the standard library nor boto3's", name=name)
sys.meta_path.insert(0, OnlyBoto3())
sys.path[:0] = [asset]
sys.path.append(packages)
module, _, function = entry.rpartition(".")
assert callable(getattr(importlib.import_module(module), function))
for path in sorted(pathlib.Path(asset).rglob("*.py")):
    importlib.import_module(".".join(path.relative_to(asset).with_suffix("").parts))
modules = [module for name, module in sys.modules.items() if name.startswith("lambda.")]
print(json.dumps(sorted(module.__file__ for module in modules if module.__file__)))
"""


@pytest.fixture
def handlers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of handlers with one in it, as a clone with umask 077 leaves it."""
    folder = tmp_path / "handlers" / "greeting"
    folder.mkdir(parents=True)
    source = folder / "handler.py"
    source.write_text("def handler(event, context): ...\n")
    source.chmod(0o600)
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "handler.pyc").write_bytes(b"")
    monkeypatch.setattr(handler_function, "HANDLERS", folder.parent)
    return folder


def synthesised(outdir: Path, *, variables: dict[str, str] | None = None) -> cdk.cx_api.CloudFormationStackArtifact:
    app = new_app(outdir=str(outdir))
    stack = cdk.Stack(app, "stack", env=cdk.Environment(account=ACCOUNT, region=REGION))
    HandlerFunction(
        stack,
        "Greeting",
        handler="greeting",
        description="Greets",
        log_retention=logs.RetentionDays.ONE_WEEK,
        variables=variables,
    )
    return app.synth().get_stack_by_name("stack")


def test_a_handler_that_only_its_owner_may_read_is_readable_for_all_in_the_asset(
    handlers: Path, tmp_path: Path
) -> None:
    synthesised(tmp_path / "out")
    [asset] = (tmp_path / "out").glob("asset.*")
    [packed] = [path for path in asset.rglob("*") if path.is_file()]
    assert packed.relative_to(asset) == Path("lambda/greeting/handler.py")
    assert stat.S_IMODE(packed.stat().st_mode) == 0o644


def test_the_asset_has_the_same_name_whatever_the_modes_in_the_clone(handlers: Path, tmp_path: Path) -> None:
    closed = synthesised(tmp_path / "closed").template
    (handlers / "handler.py").chmod(0o644)
    assert synthesised(tmp_path / "open").template == closed


def test_files_lie_as_they_do_here_with_the_shared_ones(handlers: Path, tmp_path: Path) -> None:
    (handlers.parent / "shared").mkdir()
    (handlers.parent / "shared" / "language.py").write_text("")
    template = synthesised(tmp_path / "out").template
    assert properties(template, "AWS::Lambda::Function")["Handler"] == "lambda.greeting.handler.handler"
    [asset] = (tmp_path / "out").glob("asset.*")
    files = sorted(str(path.relative_to(asset / "lambda")) for path in asset.rglob("*") if path.is_file())
    assert files == ["greeting/handler.py", "shared/language.py"]


FUNCTIONS = sorted(path.parent.name for path in HANDLERS.glob("*/handler.py"))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_runs_from_its_asset_with_the_standard_library_and_boto3_alone(
    function: str, tmp_path: Path
) -> None:
    pack(function, tmp_path)
    packages = Path(boto3.__file__).parent.parent
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", IMPORT, str(tmp_path), str(packages), entry_point(function)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stderr
    imported = [Path(each) for each in json.loads(run.stdout)]
    assert imported == sorted(tmp_path.rglob("*.py"))
