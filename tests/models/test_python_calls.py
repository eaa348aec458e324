"""What is read off the program of a Python model, without running it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.folders import CONFIG, source_of, write, write_double
from tritonstack.models.contents import contents_of
from tritonstack.models.python_calls import INFERS, LOADS, UTILS, calls_of, programs_of

HEAD = f"import {UTILS} as pb\n"
CALLS = """\
class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceRequest(model_name="double", requested_output_names=["y"], inputs=[]).exec()]
"""


@pytest.mark.parametrize(
    ("program", "calls"),
    [
        (HEAD + CALLS, {INFERS}),
        (f"from {UTILS} import load_model as load\nload('a')\n", {LOADS}),
        (f"import {UTILS}\n{UTILS}.load_model('a')\n", {LOADS}),
        (HEAD + "def f(request: pb.InferenceRequest) -> None: ...\n", set()),  # named, not called
        (HEAD + "import keras\nkeras.models.load_model('a')\n", set()),
        (HEAD + "# pb.load_model('a')\n", set()),
        (HEAD + "def broken(:\n", set()),
    ],
)
def test_calls_are_found_under_whatever_name_the_module_was_imported(
    tmp_path: Path, program: str, calls: set[str]
) -> None:
    (tmp_path / "model.py").write_text(program)
    assert calls_of([tmp_path / "model.py"]) & {INFERS, LOADS} == calls


def test_calls_inside_a_function_are_distinguished_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(HEAD + "def initialize():\n    pb.load_model('a')\n")
    assert LOADS in calls_of([tmp_path / "model.py"], inside="initialize")
    assert LOADS not in calls_of([tmp_path / "model.py"], inside="execute")


def test_the_newest_version_is_read(tmp_path: Path) -> None:
    write(tmp_path, {"m/9/model.py": "", "m/10/model.py": "", "m/10/lib/part.py": "", "m/notes.py": ""})
    assert [path.relative_to(tmp_path).as_posix() for path in programs_of(tmp_path / "m")] == [
        "m/10/lib/part.py",
        "m/10/model.py",
    ]


def test_models_that_no_ensemble_uses_are_called_where_a_program_calls_any(tmp_path: Path) -> None:
    folder = write_double(tmp_path, "pipeline")
    write(folder, {"double/config.pbtxt": CONFIG, "double/1/model.py": ""})
    assert contents_of(source_of(folder)).called == ()
    write(folder, {"pipeline/1/model.py": HEAD + CALLS})
    found = contents_of(source_of(folder))
    assert (found.addressed, found.called) == ("pipeline", ("double",))
    step = 'ensemble_scheduling { step [ { model_name: "double" } ] }'
    write(folder, {"whole/config.pbtxt": f'platform: "ensemble"\n{step}'})
    assert contents_of(source_of(folder)).called == ()
