"""What each function is given to run: all that it needs, and nothing that it does not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import boto3
import pytest

from constructs_lib import handler_function
from constructs_lib.handler_function import HANDLERS, entry_point, handler_files, pack

FUNCTIONS = sorted(path.parent.name for path in HANDLERS.glob("*/handler.py"))
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


def test_a_change_of_what_one_function_alone_uses_is_no_change_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {
        "one/handler.py": "from ..shared.told import tell\n",
        "one/part.py": "def work():\n    from ..shared.late import now\n",
        "other/handler.py": "from ..shared import told, other_only\n",
        "shared/told.py": "from .text import cut\n",
        "shared/text.py": "",
        "shared/late.py": "from .told import tell\n",
        "shared/other_only.py": "from . import text\n",
        "shared/nobodys.py": "",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(handler_function, "HANDLERS", tmp_path)
    shared = {
        function: sorted(name for name in handler_files(function) if name.startswith("shared/"))
        for function in ("one", "other")
    }
    assert shared == {
        "one": ["shared/late.py", "shared/text.py", "shared/told.py"],
        "other": ["shared/other_only.py", "shared/text.py", "shared/told.py"],
    }


def test_every_shared_file_is_used() -> None:
    used = {name for function in FUNCTIONS for name in handler_files(function)}
    assert {f"shared/{path.name}" for path in (HANDLERS / "shared").glob("*.py")} <= used
