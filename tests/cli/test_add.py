"""``tritonstack add``, and ``build --record-sample``."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.command_line import run
from tests.config.environment_file import write_environment
from tests.lint.onnx_files import node, write_graph
from tests.models.folders import write, write_double
from tritonstack.cli.root import root
from tritonstack.client.inputs import InputFile, read_inputs
from tritonstack.config import load_environment
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.models.manifest import Manifest

FIXTURES = Path(__file__).parents[1] / "adding/fixtures"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that serves the folder ``double``; the working folder."""
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(tmp_path))
    monkeypatch.setenv("TRITONSTACK_HOME", str(tmp_path / ".local"))
    monkeypatch.chdir(tmp_path)
    write_double(tmp_path)
    (tmp_path / "environments").mkdir()
    write_environment(tmp_path / "environments", header="builds: {size: tiny}", endpoint="models: [double]")
    return tmp_path


def models_line(project: Path) -> str:
    lines = (project / "environments/local.yaml").read_text().splitlines()
    return next(line.strip() for line in lines if "models:" in line)


def manifest(project: Path, model: str) -> Manifest:
    (path,) = (project / ".local/archives").glob(f"{model}.*.json")
    return Manifest.model_validate_json(path.read_bytes())


def test_an_onnx_file_becomes_a_folder_that_builds_and_an_endpoint_serves(project: Path) -> None:
    done = run("add", str(FIXTURES / "classifier.onnx"), "--name", "iris")
    assert done.return_value == 0, done.output
    assert "X FP32 [4] → label INT64 [1], probabilities FP32 [3], up to 8 rows a request" in done.stdout
    assert "to check: the file does not state how many rows fit" in done.stdout
    assert (
        "tritonstack local deploy\n  tritonstack invoke digits/iris --input model_repos/iris/sample/request.json"
        in done.stdout
    )
    assert models_line(project) == "models: [double, iris]"
    answer = json.loads((project / "model_repos/iris/sample/answer.json").read_text())
    assert [(each["name"], each["shape"]) for each in answer["outputs"]] == [
        ("label", [1, 1]),
        ("probabilities", [1, 3]),
    ]
    assert sum(answer["outputs"][1]["data"]) == pytest.approx(1, abs=1e-5)
    built = CliRunner().invoke(root, ["build", "-e", "local", "iris"])
    assert built.exit_code == 0, built.output
    assert manifest(project, "iris").figures["sample_difference"] < 1e-6
    assert not list((project / "model_repos").glob(".*"))


def test_a_model_becomes_the_second_variant_of_an_endpoint_that_serves_one(project: Path) -> None:
    environments = project / "environments"
    file = write_environment(environments, header="builds: {size: tiny}", endpoint="mode: single-model")
    write(project / "pair", {f"{name}/1/model.onnx": "" for name in "ab"})
    write_graph(project / "pair/a/1/model.onnx", _relu())
    write_graph(project / "pair/b/1/model.onnx", _relu())
    several = run("add", "pair", "--variant", "candidate")
    assert "2 models" in str(several.exception)
    done = run("add", "pair/a", "--name", "relu", "--variant", "candidate")
    assert done.return_value == 0, done.output
    assert "endpoint digits serves it: variants current and candidate, whose weight 0" in done.stdout
    assert "/relu --input model_repos/relu/sample/request.json --variant candidate" in done.stdout
    [endpoint] = load_environment(file).endpoints
    assert [(each.model, each.weight) for each in endpoint.variants] == [("digits-onnx", 1), ("relu", 0)]


def test_a_folder_that_is_there_is_never_overwritten(project: Path) -> None:
    before = sorted((path, path.read_bytes()) for path in (project / "model_repos").rglob("*") if path.is_file())
    done = run("add", str(FIXTURES / "classifier.onnx"), "--name", "double")
    assert isinstance(done.exception, InputError)
    assert "model_repos/double" in str(done.exception)
    assert "--name" in str(done.exception)
    assert "tritonstack update double FILE_OR_FOLDER" in str(done.exception)
    assert (
        sorted((path, path.read_bytes()) for path in (project / "model_repos").rglob("*") if path.is_file()) == before
    )
    assert models_line(project) == "models: [double]"


def test_without_an_endpoint_the_folder_alone_is_written(project: Path) -> None:
    (project / "environments/local.yaml").unlink()
    write_graph(project / "My Net.onnx", _relu())
    done = run("add", "My Net.onnx")
    assert done.return_value == 0, done.output
    assert "Not put onto an endpoint" in done.stdout
    assert "tritonstack build my-net" in done.stdout
    assert (project / "model_repos/my-net/my-net/1/model.onnx").is_file()
    named = run("add", "My Net.onnx", "--name", "other", "--endpoint", "digits")
    assert isinstance(named.exception, InputError)
    assert not (project / "model_repos/other").exists()


def test_a_model_that_gives_no_response_leaves_its_folder_and_what_to_do(project: Path) -> None:
    graph = {
        "inputs": [{"name": "ids", "dtype": "INT64", "shape": ["N", 2]}],
        "outputs": [{"name": "y", "dtype": "INT64", "shape": ["N", "M"]}],
        "nodes": [node("Reshape", ["ids", "ids"], ["y"])],
    }
    write_graph(project / "net.onnx", graph)
    done = run("add", "net.onnx")
    assert done.return_value == 1
    assert "model_repos/net is written, but its model gave no response" in done.stderr
    assert "tritonstack update net" in done.stderr
    assert "put it onto endpoint digits, in environments/local.yaml:" in done.stderr
    [line] = re.findall(r"line 12: (.*)", done.stderr)
    assert line == "    models: [double, net]"
    assert ".partial" not in done.stderr
    assert models_line(project) == "models: [double]"
    assert not (project / "model_repos/net/sample/answer.json").exists()
    assert (project / "model_repos/net/net/config.pbtxt").is_file()


def test_a_model_that_the_endpoint_cannot_serve_is_written_with_its_response(project: Path) -> None:
    write_graph(project / "net.onnx", {**_relu(), "opset": 23})
    done = run("add", "net.onnx")
    assert done.return_value == 2
    assert "model_repos/net is written, but the endpoint cannot serve it" in done.stderr
    assert "[onnx-version]" in done.stderr
    assert models_line(project) == "models: [double]"
    assert (project / "model_repos/net/sample/answer.json").is_file()


UNREADABLE = "  account: [\n"
"""A line that no YAML has."""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda text: f"{text}{UNREADABLE}",
            [
                r"local\.yaml:\d+\n  found: ",
                r"  do:      fix \S*local\.yaml:\d+\n",
                "  - name: models\n",
                r"models: \[my-net\]",
            ],
        ),
        (
            lambda text: text.replace("models: [double]", "models: [double]\n    relaese: 1"),
            [r"local\.yaml:\d+: endpoints\[0\]\.relaese\n", "release", "  - name: models\n"],
        ),
        (
            lambda text: text + text.partition("endpoints:\n")[2].replace("digits", "letters"),
            [r"endpoint digits:\n +line 12:     models: \[double, my-net\]\n +or endpoint letters:\n +line \d+: "],
        ),
        (
            lambda text: text.replace("mode: multi-model", "mode: single-model"),
            ["no endpoint with `mode: multi-model`", "  - name: models\n    +mode: multi-model\n"],
        ),
    ],
    ids=["no YAML", "a wrong field", "two endpoints", "one that serves one model"],
)
def test_a_model_on_no_endpoint_comes_with_the_fix_and_the_lines_to_add(
    project: Path, change: Callable[[str], str], said: list[str]
) -> None:
    file = project / "environments/local.yaml"
    file.write_text(change(file.read_text()))
    before = file.read_text()
    write_graph(project / "My Net.onnx", _relu())
    done = run("add", "My Net.onnx")
    assert done.return_value == 0, done.output
    text = done.stdout.partition("Not put onto an endpoint:\n")[2]
    assert "  do:      " in text
    for each in (
        *said,
        r"  then:    put my-net onto an endpoint, in environments/local\.yaml:\n",
        "tritonstack lint\n",
    ):
        assert re.search(each, text), f"{each}\n{text}"
    assert file.read_text() == before


@pytest.mark.parametrize(
    ("file", "content", "found"),
    [
        ("model.pkl", b"\x80\x04\x95", "pickled Python object"),
        ("model.plan", b"ftrt", "a TensorRT plan"),
        ("model.safetensors", b"{}", "a .safetensors file"),
        ("none.onnx", None, "no such file or folder"),
        ("model.tar.gz", b"\x1f\x8b\x08 damaged", "damaged"),
        ("model.zip", b"PK\x03\x04", "no TorchScript: cut off"),
        ("model.pt", b"weights", "no TorchScript: text that begins 'weights'"),
        ("model.onnx", b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1\n", "Git LFS pointer"),
        ("empty.onnx", b"", "an empty file"),
    ],
)
def test_files_of_other_formats_are_refused_with_what_to_make_of_them(
    project: Path, file: str, content: bytes | None, found: str
) -> None:
    if content is not None:
        (project / file).write_bytes(content)
    done = run("add", file, "--name", "net")
    assert isinstance(done.exception, InputError)
    assert found in str(done.exception)
    assert not (project / "model_repos/net").exists()


def test_a_forest_is_written_and_how_it_can_be_proved_is_said(project: Path) -> None:
    shutil.copy(FIXTURES / "forest.txt", project / "loan.txt")
    done = run("add", "loan.txt")
    assert done.return_value == 1
    assert "loan/config.pbtxt    input__0 FP32 [4] → output__0 FP32 [1], up to 1024 rows a request" in done.stdout
    assert "the proof is skipped, for no server here runs it: the local Triton has no backend fil" in done.stderr
    assert "onnxmltools.convert_lightgbm(" in done.stderr
    assert "line 12:     models: [double, loan]" in done.stderr
    assert models_line(project) == "models: [double]"


def test_a_large_sample_is_stored_compressed_and_updates_read_it(project: Path) -> None:
    """112 pixels a side in each of three colours: 150 KB as JSON for the request, 400 KB for the response."""
    shape = ("N", 3, 112, 112)
    ends = [{"name": name, "dtype": "FP32", "shape": shape} for name in ("x", "y")]
    nodes = [node("Sigmoid", "x", "y")]
    write_graph(project / "net.onnx", {"inputs": ends[:1], "outputs": ends[1:], "nodes": nodes})
    done = run("add", "net.onnx")
    assert done.return_value == 0, done.output
    folder = project / "model_repos/net"
    sizes = {each.name: each.stat().st_size for each in (folder / "sample").iterdir()}
    assert sizes.keys() == {"request.json.gz", "answer.json.gz"}
    assert sizes["request.json.gz"] < 40_000
    assert sizes["answer.json.gz"] < 80_000
    assert "sample/answer.json.gz" in done.stdout
    recipe = (folder / "recipe.yaml").read_text()
    assert "request: sample/request.json.gz\n  answer: sample/answer.json.gz\n" in recipe
    before = {each: each.read_bytes() for each in (folder / "sample").iterdir()}
    assert run("update", "net").exit_code == 0
    assert {each: each.read_bytes() for each in (folder / "sample").iterdir()} == before
    inputs = read_inputs([InputFile.parse(str(folder / "sample/request.json.gz"))], None, fetch=lambda *_: {})
    assert inputs["x"].shape == (1, 3, 112, 112)


def test_what_a_folder_of_many_bytes_puts_into_git_is_said_with_two_ways_around(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tritonstack.adding.large_files.LARGE", 1000)
    monkeypatch.setattr("tritonstack.adding.large_files.COUNTS", 1000)
    done = run("add", str(FIXTURES / "regressor.onnx"), "--name", "net")
    model = project / "model_repos/net/net/1/model.onnx"
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert "model_repos/net/net/1/model.onnx filter=lfs diff=lfs merge=lfs -text" in lines
    url = f"s3://BUCKET/net/{digest[:16]}/model.onnx"
    assert f"aws s3 cp model_repos/net/net/1/model.onnx {url}" in lines
    entry = lines[lines.index("files:") + 1]
    with (project / "model_repos/net/recipe.yaml").open("a") as recipe:
        recipe.write(f"files:\n  {entry}\n".replace("BUCKET", "my-bucket"))
    assert run("build", "-e", "local", "net").exit_code == 0, "the folder's own file has the hash"


def test_a_small_model_says_nothing_of_large_files(project: Path) -> None:
    write_graph(project / "net.onnx", _relu())
    assert "into git" not in run("add", "net.onnx").stdout


def test_a_name_has_letters_digits_and_hyphens(project: Path) -> None:
    write_graph(project / "net.onnx", _relu())
    done = run("add", "net.onnx", "--name", "My_Net")
    assert isinstance(done.exception, InputError)
    assert "--name" in str(done.exception)


def test_record_sample_writes_what_the_model_answers_now(project: Path) -> None:
    folder = project / "model_repos/double"
    request = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 1], "data": [0.25, 4]}]}
    write(folder, {"sample/request.json": json.dumps(request)})
    done = CliRunner().invoke(root, ["build", "double", "--record-sample"])
    assert done.exit_code == 0, done.output
    assert "model_repos/double/sample/answer.json: y, by the local Triton" in done.stdout
    (answer,) = json.loads((folder / "sample/answer.json").read_text())["outputs"]
    assert answer == {"name": "y", "datatype": "FP32", "shape": [2, 1], "data": [0.5, 8]}
    write(
        folder, {"double/1/model.py": "class TritonPythonModel:\n def execute(self, requests):\n  raise KeyError(1)\n"}
    )
    failed = run("build", "double", "--record-sample")
    assert isinstance(failed.exception, WorkFailedError)
    assert 'double/1/model.py", line 3, in execute\n      raise KeyError(1)' in str(failed.exception)
    assert json.loads((folder / "sample/answer.json").read_text())["outputs"] == [answer]


def test_record_sample_is_about_models_whose_response_no_export_makes(project: Path) -> None:
    assert isinstance(run("build", "--record-sample").exception, InputError)
    with (project / "model_repos/double/recipe.yaml").open("a") as recipe:
        recipe.write("exports: [{produces: [sample/answer.json]}]\n")
    done = run("build", "double", "nothing", "--record-sample")
    assert isinstance(done.exception, InputError)
    assert "sample.answer" in str(done.exception)
    assert "nothing, which no model folder" in str(done.exception)


def test_outputs_that_differ_between_two_runs_are_in_no_response(project: Path) -> None:
    noise = node("RandomNormalLike", ["x"], ["noise"])
    tensors = [{"name": name, "dtype": "FP32", "shape": ["N", 2]} for name in ("x", "y", "noise")]
    nodes = [node("Relu", ["x"], ["y"]), noise]
    write_graph(project / "both.onnx", {"inputs": tensors[:1], "outputs": tensors[1:], "nodes": nodes})
    done = run("add", "both.onnx")
    assert done.return_value == 0, done.output
    assert "without noise: two runs of one request differ" in done.stdout
    answer = json.loads((project / "model_repos/both/sample/answer.json").read_text())
    assert [each["name"] for each in answer["outputs"]] == ["y"]
    assert CliRunner().invoke(root, ["build", "both"]).exit_code == 0
    write_graph(project / "noise.onnx", {"inputs": tensors[:1], "outputs": tensors[2:], "nodes": [noise]})
    done = run("add", "noise.onnx")
    assert done.return_value == 1
    assert "two runs of one request differ, as those of random operators do: noise" in done.stderr
    assert not (project / "model_repos/noise/sample/answer.json").exists()


def _relu() -> dict[str, object]:
    tensors = [{"name": name, "dtype": "FP32", "shape": ["N", 2]} for name in ("x", "y")]
    return {"inputs": tensors[:1], "outputs": tensors[1:], "nodes": [node("Relu", ["x"], ["y"])]}
