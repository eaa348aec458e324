"""docs/clients.md: its code runs against the real recipes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.client.examples import blocks, commands, run_python
from tests.client.systems import ARCHIVES, ENVIRONMENT, TRANSLATION, Systems, image_file, running_systems
from tritonstack.cli import invoke
from tritonstack.client import ModelClient
from tritonstack.paths import repository_path


@pytest.fixture
def systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Systems]:
    """The stand-in, with the page's photograph in the current folder."""
    monkeypatch.setenv("TRITONSTACK_HOME", str(tmp_path / "home"))
    image_file(tmp_path / "dog.jpg")
    with running_systems(tmp_path) as running:
        yield running


def test_every_example_runs_unchanged(systems: Systems, tmp_path: Path) -> None:
    systems.aws.responses = {"cloudwatch.PutMetricData": {}}
    client = ModelClient(environment=ENVIRONMENT, session=systems.aws)
    printed = run_python(client, folder=tmp_path)
    lines = {heading: text.splitlines() for heading, text in printed.items()}
    assert len(lines["ResNet50: image → top-5"]) == 15
    assert lines["ONNX backend: text → embedding"][0].startswith("(1024,) ")
    assert -1 <= float(lines["TensorRT backend: text → embedding"][0].removeprefix("cosine: ")) <= 1.0001
    assert len(lines["Ensemble: JPEG → top-5"]) == 5
    assert lines["Python backend: text → translation"] == [TRANSLATION]
    assert {line.partition(" ")[2] for line in lines["BERT-large: text → class"]} == {"class 0", "class 1"}
    pooled, everything = map(int, lines["One output of several"][0].split())
    assert pooled < 5000
    assert everything > 390_000
    assert lines["Arrays"][0].startswith("(2, 1000) ")
    assert lines["Arrays"][1] == "2"
    assert lines["Records"] == ["(2, 1000)"]
    assert lines["Latency at the client"] == ["1"]
    assert lines["Triton's own clients"] == ["(2, 1000)"]
    invoked = {str(request.target_model).split(".")[0] for request in systems.endpoint.requests}
    assert invoked == set(ARCHIVES), "every system has its example"


def test_every_command_line_runs_unchanged(systems: Systems, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(invoke, "calling_session", lambda _, **__: systems.aws)
    assert len(commands()) == 5
    for program, name, *arguments in commands():
        assert (program, name) == ("tritonstack", "invoke")
        result = CliRunner().invoke(invoke.command, arguments)
        assert result.exit_code == 0, (arguments, result.output, result.exception)


def test_no_block_is_left_out() -> None:
    # test_rights.py calls with the policy; perf_analyzer's console is in tests/docs/blocks.yaml.
    assert {block.language for block in blocks()} == {"python", "sh", "json", "console"}
    assert repository_path("docs/clients.md").read_text().count("```") == 2 * len(blocks())
