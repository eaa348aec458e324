"""The seam between the emulator and MiniStack: one package has all its names; a test lists what an upgrade breaks."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.tritonstack_local.emulator.running import PYTHON, REPOSITORY
from tritonstack_local.emulator.ministack_adapter import SEEN_IN
from tritonstack_local.emulator.ministack_adapter.private_names import Function, ReplacedModule

ADAPTER = REPOSITORY / "tritonstack_local/emulator/ministack_adapter"
CHECK = "tritonstack_local.emulator.ministack_adapter.check"


def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Python in the emulator's environment."""
    return subprocess.run([PYTHON, *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False)


def test_installed_ministack_has_every_name_that_the_emulator_uses() -> None:
    """A failure lists what to adapt before the pin of MiniStack moves."""
    checked = ran("-m", CHECK)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_version_of_the_names_is_the_one_that_is_pinned() -> None:
    assert f"ministack=={SEEN_IN}" in (REPOSITORY / "requirements/emulator.in").read_text().split()


# What releases of a package do to their private names.
CHANGES = """
import importlib.metadata
import sys

from ministack import services
from ministack.core import responses
from ministack.services import cloudwatch, ec2, ecr, iam, kms, s3, sns
from ministack.services.cloudformation import drift, handlers, stacks

importlib.metadata.version = lambda _name: "1.6.0"
del iam._roles
del handlers._ACTION_HANDLERS["RollbackStack"]
del responses.AccountScopedDict.get_scoped
iam._lookup_policy = {}
s3._buckets = []
s3._bucket_owner_account = lambda account, name: None
kms._resolve_key = lambda key_id_or_arn, region: None
sns._fanout = lambda topic_arn, msg_id, message: None
ecr._describe_images = lambda data, version: None
drift._revert_update = stacks._revert_update
stacks._evaluate_conditions = lambda template, params: {}
cloudwatch.time = 0.0
sys.modules["ministack.services.ec2"] = None
del services.ec2

from tritonstack_local.emulator.ministack_adapter import check
sys.exit(check.main())
"""
BROKEN = f"""
__init__.py: SEEN_IN is {SEEN_IN}, and MiniStack 1.6.0 is installed: go through what follows and the tests of the \
emulator, then set SEEN_IN
iam.py: roles uses ministack.services.iam._roles, which does not exist
iam.py: lookup_policy uses ministack.services.iam._lookup_policy, which is not callable
cloudformation.py: action_handlers uses ministack.services.cloudformation.handlers._ACTION_HANDLERS, which has no key \
RollbackStack
core.py: account_table uses ministack.core.responses.AccountScopedDict, which has no get_scoped
s3.py: buckets uses ministack.services.s3._buckets, which is a list, no AccountScopedDict
s3.py: bucket_owner_account uses ministack.services.s3._bucket_owner_account, which takes (account name), and is \
called with (name)
s3.py: bucket_owner_account uses ministack.services.s3._bucket_owner_account, which needs the parameter account, \
which is not given
kms.py: resolve_key uses ministack.services.kms._resolve_key, which needs the parameter region, which is not given
sns.py: fanout uses ministack.services.sns._fanout, which takes (topic_arn msg_id message), and is called with \
(topic_arn msg_id message subject)
ecr.py: describe_images uses ministack.services.ecr._describe_images, which takes (data version), and what replaces \
it takes (data)
cloudformation.py: revert_update uses ministack.services.cloudformation.stacks._revert_update, which is imported by \
ministack.services.cloudformation.drift, too, which would go on with MiniStack's
cloudformation.py: evaluate_conditions uses ministack.services.cloudformation.engine._evaluate_conditions, which is \
not what ministack.services.cloudformation.stacks has under that name
cloudwatch.py: system_time uses ministack.services.cloudwatch.time, which is a float, no module
ec2.py cannot be imported: import of ministack.services.ec2 halted; None in sys.modules
"""


def test_upgrade_that_breaks_names_is_reported_with_what_uses_them() -> None:
    checked = ran("-c", CHANGES)
    broken = sorted(f"ministack_adapter/{line}" for line in BROKEN.strip().splitlines())
    assert sorted(checked.stdout.splitlines()) == broken, checked.stderr
    assert checked.returncode == 1


def test_module_that_is_replaced_is_used_for_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The emulator gives MiniStack's CloudWatch a ``time`` with ``time()`` alone."""
    (tmp_path / "watch.py").write_text("import time\n\n\ndef now():\n    return time.time() + time.monotonic()\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "watch", raising=False)
    import watch  # type: ignore[import-not-found]

    assert list(ReplacedModule(watch, "time", functions="time").problems()) == ["is used for time.monotonic, too"]
    assert not list(ReplacedModule(watch, "time", functions="time monotonic").problems())


def test_parameter_that_is_not_declared_is_refused_when_it_is_given() -> None:
    module = ModuleType("theirs")
    module.call = lambda name, *, region="", account="": (name, region, account)  # type: ignore[attr-defined]
    function = Function(module, "call", "name * region")
    assert function("a", region="b") == ("a", "b", "")
    for given, named in ((("a", "b"), {}), (("a",), {"account": "c"})):
        with pytest.raises(TypeError, match=r"theirs\.call was declared with the parameters \(name \* region\)"):
            function(*given, **named)


def uses_of_ministack(file: Path) -> Iterator[str]:
    """Imports of MiniStack, and texts that name one of its modules (``importlib``, ``sys.modules``)."""
    tree = ast.parse(file.read_text())
    documented = {ast.get_docstring(each, clean=False) for each in ast.walk(tree) if isinstance(each, ast.Module)}
    for each in ast.walk(tree):
        if isinstance(each, ast.Import):
            yield from (one.name for one in each.names if one.name.partition(".")[0] == "ministack")
        elif isinstance(each, ast.ImportFrom) and (each.module or "").partition(".")[0] == "ministack":
            yield str(each.module)
        elif isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value not in documented:
            yield from re.findall(r"\bministack\.(?:app|core|services)\b", each.value)


def test_no_other_module_of_the_local_aws_uses_ministack() -> None:
    used = {file: list(uses_of_ministack(file)) for file in (REPOSITORY / "tritonstack_local").rglob("*.py")}
    assert {file.parent for file, names in used.items() if names} == {ADAPTER}
    own_tests = [file for file in Path(__file__).parent.rglob("*.py") if file != Path(__file__)]
    assert not {file: names for file in own_tests if (names := list(uses_of_ministack(file)))}
