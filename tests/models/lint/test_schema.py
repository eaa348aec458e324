"""Both readers of config.pbtxt: protobuf's with Triton's own messages, and ours, which says more."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tritonclient

from tritonstack.models.lint import config as syntax
from tritonstack.models.lint.config import Refusal
from tritonstack.models.lint.view import view_repository
from tritonstack.models.model_config import read_config
from tritonstack.models.programs import REPOSITORY, environment_python

_READ = """\
import json, sys
from tritonstack.models.lint.config import refusal_of
refusals = [refusal_of(text) for text in json.load(sys.stdin)]
json.dump([refusal and [refusal.line, refusal.column, refusal.reason] for refusal in refusals], sys.stdout)
"""
_PIECES = (
    *"{}[]<>:,;-\n\t#.",
    *("1", "0x1F", "017", "1.5", "1e3", "inf", "true", "yes", "'a'", '"a"', '"\\x41"', "KIND_GPU", "TYPE_FP32", "99"),
    *("dims", "name", "input", "//", "ä", "\0"),
)


def _refusals(texts: list[str]) -> list[list[Any] | None]:
    """What protobuf says of each text, read in an environment that has it."""
    libraries = Path(tritonclient.__path__[0]).parent
    done = subprocess.run(
        [str(environment_python("exporters")), "-c", _READ],
        input=json.dumps(texts),
        env={**os.environ, "PYTHONPATH": f"{REPOSITORY}:{libraries}"},
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[list[Any] | None] = json.loads(done.stdout)
    return found


def _mutated(count: int) -> list[str]:
    """The project's own configurations with small pieces left out, doubled or put in; the same ones every time."""
    bases = [path.read_text() for path in sorted((REPOSITORY / "model_repos").glob("*/*/config.pbtxt"))]
    choose = random.Random(0)
    texts = []
    for _ in range(count):
        text = choose.choice(bases)
        for _ in range(choose.choice([1, 1, 2, 3])):
            start = choose.randrange(len(text))
            end = min(len(text), start + choose.choice([0, 1, 2, 5, 20]))
            middle = choose.choice(["", 2 * text[start:end], choose.choice(_PIECES)])
            text = f"{text[:start]}{middle}{text[end:]}"
        texts.append(text)
    return texts


def test_both_readers_refuse_the_same_of_a_thousand_mutated_configurations() -> None:
    texts = _mutated(1000)
    theirs = [refusal is not None for refusal in _refusals(texts)]
    ours = [bool(read_config(text).complaints) for text in texts]
    assert [text for text, one, other in zip(texts, theirs, ours, strict=True) if one != other] == []
    assert 200 < sum(theirs) < 900


def test_protobufs_own_message_has_line_and_column() -> None:
    texts = ['name: "a"\n  max_batch: 8\n', "name: 1\n", 'name: "a"\n', "input {\n"]
    found = _refusals(texts)
    assert found[0] is not None
    assert found[0][:2] == [2, 3]
    assert 'no field named "max_batch"' in found[0][2]
    assert found[1] is not None
    assert found[1][0] == 1
    assert found[2] is None
    assert found[3] is not None


def test_what_only_protobuf_refuses_is_found_with_line_and_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/config.pbtxt").write_text('backend: "python"\n')
    monkeypatch.setattr(syntax, "is_installed", lambda: True)
    monkeypatch.setattr(syntax, "refusal_of", lambda _text: Refusal(1, 4, "something of its own"))
    view = view_repository(tmp_path, addressed=None)
    (finding,) = syntax.check_syntax(view, view.models["a"])
    assert (finding.line, finding.column, finding.found) == (1, 4, "something of its own")


def test_the_linter_imports_no_protobuf_until_it_reads_a_configuration() -> None:
    program = "import sys, tritonstack.models.lint as lint; print('google.protobuf' in sys.modules, lint.__name__)"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "tritonstack.models.lint"]
