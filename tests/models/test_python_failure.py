"""Messages of Triton on a Python model's program, as Python's own traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import cases
from tests.models.folders import write
from tritonstack.client.errors import ModelFailedError
from tritonstack.models.python_failure import dumped_calls, fatal_error, program_failure, response_failure


@cases("message, where, text")
def test_a_message_on_a_program_becomes_its_traceback_with_the_models_own_calls(
    message: str, where: str, text: str
) -> None:
    failure = program_failure(message)
    assert failure is not None
    assert (failure.where, failure.text(shown=lambda file: file, quoted=False)) == (where, text.rstrip("\n"))


@cases("message")
def test_a_message_on_something_else_is_none_of_a_program(message: str) -> None:
    assert program_failure(message) is None


@cases("log, where, text")
def test_a_crash_in_compiled_code_is_read_from_the_log(log: str, where: str, text: str) -> None:
    failure = fatal_error(log)
    assert failure is not None
    assert (failure.where, failure.text(shown=lambda file: file, quoted=False)) == (where, text.rstrip("\n"))


@cases("log, functions")
def test_the_calls_of_a_program_that_waits_are_those_of_the_thread_that_triton_called(
    log: str, functions: list[str]
) -> None:
    assert [call.function for call in dumped_calls(log)] == functions


def test_a_syntax_error_names_the_file_that_has_it(tmp_path: Path) -> None:
    write(tmp_path, {"1/model.py": "import broken\n", "1/broken.py": "x = (1,\n"})
    message = f"E: '(' was never closed (broken.py, line 1)\n\nAt:\n  {tmp_path}/1/model.py(1): <module>\n"
    failure = program_failure(message)
    assert failure is not None
    assert failure.text(shown=lambda file: file, quoted=True).splitlines()[-3:] == [
        f'  File "{tmp_path}/1/broken.py", line 1',
        "    x = (1,",
        "E: '(' was never closed (broken.py, line 1)",
    ]


CALLS = "\\n\\nAt:\\n  {0}(2): weigh\\n  {0}(4): execute\\n"
PROGRAM = "import sys\ndef weigh(n):\n    return 1 / n\n\n"


def failed(file: str) -> ModelFailedError:
    message = f'{{"error":"Failed to process the request(s) for model \'a_0_0\', message: E: no{CALLS.format(file)}"}}'
    return ModelFailedError(place="dev-a (a.0.tar.gz)", status=400, container_message=message, log_stream_arn="arn:l")


@pytest.mark.parametrize(
    "file", ["/opt/ml/model/double/1/model.py", f"/opt/ml/models/{32 * 'a'}/model/double/1/model.py"]
)
def test_a_response_names_the_projects_files_where_they_are_and_else_the_archives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    monkeypatch.chdir(tmp_path)
    repositories = tmp_path / "model_repos"
    text = response_failure(failed(file), model="slow", repositories=repositories)
    assert text.splitlines()[:3] == [
        "dev-a (a.0.tar.gz): the container responded 400, in execute:",
        "  Traceback (most recent call last):",
        '    File "double/1/model.py", line 4, in execute',
    ]
    assert text.endswith("  E: no\n  its log: arn:l")
    write(repositories, {"slow/double/1/model.py": PROGRAM, "other/double/1/model.py": ""})
    text = response_failure(failed(file), model="slow", repositories=repositories)
    assert '    File "model_repos/slow/double/1/model.py", line 2, in weigh\n      def weigh(n):\n' in text
    assert "lines:" not in text
    for serves_folder, what in ((False, "serves another version"), (None, "may serve another version")):
        text = response_failure(failed(file), model="slow", repositories=repositories, serves_folder=serves_folder)
        assert "      def weigh(n):\n" in text
        assert f"  lines:   of the project's files as they are now; the endpoint {what}\n" in text
    text = response_failure(failed("/elsewhere/model.py"), model="slow", repositories=repositories, serves_folder=False)
    assert "lines:" not in text
