"""``tritonstack update``: a model's next version, what users set kept, nothing half-written."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.exceptions import Abort
from click.testing import CliRunner

import tritonstack.updating.next_version as under_test
from tests.adding.test_exported_folder import write_encoder
from tests.command_line import run
from tests.config.environment_file import write_environment
from tests.lint.onnx_files import node, write_graph
from tests.models.folders import MODEL, write, write_double
from tritonstack.cli.root import root
from tritonstack.errors import InputError, WorkFailedError

FIXTURES = Path(__file__).parents[1] / "adding/fixtures"
SET_BY_HAND = "instance_group [ { kind: KIND_CPU } ] # mine\ndynamic_batching { max_queue_delay_microseconds: 100 }\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that serves ``net``, an ONNX model with settings of a user's; the working folder."""
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(tmp_path))
    monkeypatch.setenv("TRITONSTACK_HOME", str(tmp_path / ".local"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "environments").mkdir()
    write_environment(tmp_path / "environments", header="builds: {size: tiny}", endpoint="models: [net]")
    graph(tmp_path / "net.onnx", "Relu")
    assert run("add", "net.onnx").return_value == 0
    config = tmp_path / "model_repos/net/net/config.pbtxt"
    config.write_text(config.read_text().replace("max_batch_size: 8", "max_batch_size: 16") + SET_BY_HAND)
    recipe = tmp_path / "model_repos/net/recipe.yaml"
    recipe.write_text(recipe.read_text().replace("The ONNX model net.onnx.", "Mine."))
    return tmp_path


def graph(path: Path, operator: str, *, width: int = 2, more: str = "", batch: int | str = "N") -> None:
    """A graph of inputs x and outputs y; ``more``: a second output."""
    names = ["x", "y", *([more] if more else [])]
    tensors = [{"name": name, "dtype": "FP32", "shape": [batch, width]} for name in names]
    nodes = [node(operator, ["x"], ["y"]), *([node("Neg", ["x"], [more])] if more else [])]
    write_graph(path, {"inputs": tensors[:1], "outputs": tensors[1:], "nodes": nodes})


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def answer(folder: Path) -> list[dict[str, Any]]:
    outputs: list[dict[str, Any]] = json.loads((folder / "sample/answer.json").read_text())["outputs"]
    return outputs


def test_a_new_file_takes_the_old_ones_place_and_what_was_set_by_hand_stays(project: Path) -> None:
    folder = project / "model_repos/net"
    before = content(folder)
    graph(project / "net-v2.onnx", "Sigmoid")
    page = (Path(__file__).parents[2] / "docs/next-version.md").read_text()
    [documented] = re.findall(r"^\$ tritonstack (update .*)$", page, re.MULTILINE)
    done = run(*documented.replace("iris", "net").split())
    assert done.return_value == 0, done.output
    after = content(folder)
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"net/1/model.onnx", "sample/answer.json"}
    assert after.keys() == before.keys()
    assert after["net/1/model.onnx"] == (project / "net-v2.onnx").read_bytes()
    assert "net: inputs, outputs, types, shapes and batch are as before" in done.stdout
    assert "y[0, 1]: 0.732 → 0.675244; largest difference 0.0568; 2 of 2 values differ" in done.stdout
    assert "git add -A model_repos/net && git commit -m 'net: net-v2.onnx'" in done.stdout
    assert "tritonstack invoke digits/net --input model_repos/net/sample/request.json" in done.stdout
    assert [path.name for path in (project / "model_repos").iterdir()] == ["net"]
    built = CliRunner().invoke(root, ["build", "net"])
    assert built.exit_code == 0, built.output


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"width": 3}, "input x: FP32 [-1, 2] → FP32 [-1, 3]; output y: FP32 [-1, 2] → FP32 [-1, 3]"),
        ({"batch": 1}, "batch: up to 16 rows a request → none"),
    ],
)
def test_what_callers_would_notice_is_refused_until_it_is_accepted(
    project: Path, changes: Mapping[str, Any], said: str
) -> None:
    folder = project / "model_repos/net"
    before = content(folder)
    graph(project / "other.onnx", "Relu", **changes)
    refused = run("update", "net", "other.onnx")
    assert isinstance(refused.exception, InputError)
    assert said in str(refused.exception)
    assert "tritonstack update net other.onnx --accept-changes" in str(refused.exception)
    assert content(folder) == before
    done = run("update", "net", "other.onnx", "--accept-changes")
    assert done.return_value == 0, done.output
    config = (folder / "net/config.pbtxt").read_text()
    assert config.startswith("# Written by tritonstack add from net.onnx.\n")
    assert SET_BY_HAND in config or changes == {"batch": 1}
    assert "description: Mine." in (folder / "recipe.yaml").read_text()
    if "width" in changes:
        assert "sample/request.json changes, too: new seeded values for x" in done.stdout
        assert "not compared with the earlier response" in done.stdout
        assert answer(folder)[0]["shape"] == [1, 3]
    assert CliRunner().invoke(root, ["build", "net"]).exit_code == 0


def test_another_output_is_shown_and_taken_and_one_that_was_left_out_stays_out(project: Path) -> None:
    folder = project / "model_repos/net"
    graph(project / "more.onnx", "Relu", more="z")
    done = run("update", "net", "more.onnx")
    assert done.return_value == 0, done.output
    assert [each["name"] for each in answer(folder)] == ["y", "z"]
    assert "z: new" in done.stdout
    config = folder / "net/config.pbtxt"
    text = config.read_text()
    config.write_text(text[: text.index('output {\n  name: "z"')] + SET_BY_HAND)
    assert run("update", "net", "more.onnx").return_value == 0
    assert [each["name"] for each in answer(folder)] == ["y"]


def test_a_model_that_fails_or_an_interruption_leaves_the_folder_as_it_was(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project / "model_repos/net"
    before = content(folder)
    tensors = [{"name": name, "dtype": "INT64" if name == "i" else "FP32", "shape": ["N", 2]} for name in ("x", "y")]
    write_graph(
        project / "fails.onnx",
        {"inputs": tensors[:1], "outputs": tensors[1:], "nodes": [node("MatMul", ["x", "x"], ["y"])]},
    )
    failed = run("update", "net", "fails.onnx")
    assert isinstance(failed.exception, WorkFailedError)
    assert "model_repos/net/net/1/model.onnx" in str(failed.exception)
    assert ".partial" not in str(failed.exception)
    assert content(folder) == before

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    graph(project / "net-v2.onnx", "Sigmoid")
    monkeypatch.setattr(under_test, "record_sample", interrupted)
    with pytest.raises(Abort):
        CliRunner().invoke(root, ["update", "net", "net-v2.onnx"], standalone_mode=False, catch_exceptions=False)
    assert content(folder) == before
    assert [path.name for path in (project / "model_repos").iterdir()] == ["net"]


def test_without_a_file_the_folder_is_taken_as_it_is_now(project: Path) -> None:
    folder = project / "model_repos/net"
    graph(folder / "net/1/model.onnx", "Sigmoid")
    failed = run("build", "net")
    assert "tritonstack update net" in str(failed.exception)
    done = run("update", "net")
    assert done.return_value == 0, done.output
    assert "largest difference 0.0568" in done.stdout
    assert CliRunner().invoke(root, ["build", "net"]).exit_code == 0
    graph(folder / "net/1/model.onnx", "Relu", width=3)
    assert "input x: FP32 [-1, 2] → FP32 [-1, 3]" in str(run("update", "net").exception)


def test_a_python_model_takes_a_program_or_a_folder_and_keeps_its_configuration(project: Path) -> None:
    folder = write_double(project)
    config = folder / "double/config.pbtxt"
    config.write_text(config.read_text() + SET_BY_HAND)
    write(project, {"model.py": MODEL.replace("2 * item", "3 * item")})
    done = run("update", "double", "model.py")
    assert done.return_value == 0, done.output
    assert "y[0, 0]: 5 → 7.5; largest difference 2.5; 1 of 1 values differ" in done.stdout
    assert (folder / "double/1/model.py").read_bytes() == (project / "model.py").read_bytes()
    given = config.read_text().replace(SET_BY_HAND, "dynamic_batching { }\n")
    write(project / "new", {"config.pbtxt": given, "1/model.py": MODEL, "1/helper.py": "", "labels.txt": "a"})
    done = run("update", "double", "new")
    assert done.return_value == 0, done.output
    assert SET_BY_HAND in config.read_text()
    assert "double/config.pbtxt keeps dynamic_batching" in done.stdout.replace("instance_group, ", "")
    assert (folder / "double/1/helper.py").is_file()
    assert (folder / "double/labels.txt").is_file()
    assert run("update", "double", "new", "--take-config").return_value == 0
    assert "instance_group" not in config.read_text()


def test_a_step_of_an_ensemble_is_named_with_its_folder(project: Path) -> None:
    config = (project / "model_repos/net/net/config.pbtxt").read_text().replace('name: "net"', 'name: "first"')
    write(project / "repository", {"pipeline/config.pbtxt": PIPELINE, "first/config.pbtxt": config, "first/1/": ""})
    shutil.copy(project / "net.onnx", project / "repository/first/1/model.onnx")
    assert run("add", "repository").return_value == 0
    graph(project / "net-v2.onnx", "Sigmoid")
    refused = run("update", "pipeline", "net-v2.onnx")
    assert "tritonstack update pipeline/first net-v2.onnx" in str(refused.exception)
    done = run("update", "pipeline/first", "net-v2.onnx")
    assert done.return_value == 0, done.output
    folder = project / "model_repos/pipeline"
    assert (folder / "first/1/model.onnx").read_bytes() == (project / "net-v2.onnx").read_bytes()
    assert "2 of 2 values differ" in done.stdout
    graph(project / "repository/first/1/model.onnx", "Relu", more="z")
    done = run("update", "pipeline", "repository")
    assert done.return_value == 0, done.output
    new = (project / "repository/first/1/model.onnx").read_bytes()
    assert (folder / "first/1/model.onnx").read_bytes() == new


def exported(place: Path, second: bool) -> Path:
    """A folder as optimum exports it: a text encoder with its tokenizer and names of its classes."""
    about = {
        "architectures": ["BertForSequenceClassification"],
        "id2label": {"0": "bad", "1": "fine" if second else "good"},
        "max_position_embeddings": 128 if second else 64,
    }
    operator = "ReduceMin" if second else "ReduceMax"
    return write_encoder(place / "mood", about=about, inputs=("input_ids", "attention_mask"), operator=operator)


def xgboost_file(place: Path, second: bool) -> Path:
    text = (FIXTURES / "forest.json").read_text()
    leaf = re.search(r'"base_weights":\[(-?[0-9.E-]+)', text)
    assert leaf is not None
    return write_file(place / "loan.json", text.replace(leaf[1], "0.125") if second else text)


def lightgbm_file(place: Path, second: bool) -> Path:
    text = (FIXTURES / "forest.txt").read_text()
    return write_file(place / "rate.txt", text.replace("leaf_value=2.00", "leaf_value=2.01") if second else text)


def write_file(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def repository(place: Path, second: bool) -> Path:
    """An ensemble of one step, with the configurations of its models."""
    operator = "Sigmoid" if second else "Relu"
    write(place / "pair", {"pair/config.pbtxt": PIPELINE, "first/config.pbtxt": FIRST, "first/1/": ""})
    graph(place / "pair/first/1/model.onnx", operator)
    return place / "pair"


def archive(place: Path, second: bool) -> Path:
    """SageMaker's model.tar.gz with that ensemble."""
    content = repository(place, second)
    with tarfile.open(place / "model.tar.gz", "w:gz") as tar:
        tar.add(content, ".")
    return place / "model.tar.gz"


PIPELINE = """
    platform: "ensemble" max_batch_size: 16
    input [ { name: "x" data_type: TYPE_FP32 dims: [ 2 ] } ]
    output [ { name: "y" data_type: TYPE_FP32 dims: [ 2 ] } ]
    ensemble_scheduling { step [ { model_name: "first" model_version: -1
      input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } } ] }
"""
FIRST = """
    platform: "onnxruntime_onnx" max_batch_size: 16
    input [ { name: "x" data_type: TYPE_FP32 dims: [ 2 ] } ]
    output [ { name: "y" data_type: TYPE_FP32 dims: [ 2 ] } ]
"""
SKIPPED = "response not recorded, for no server here runs it: the local Triton has no backend fil"


@pytest.mark.parametrize(
    ("write_version", "changed", "said"),
    [
        (
            exported,
            {"mood/1/model.onnx", "labels.txt"},
            ("labels.txt is the new version's", "adapters.text.longest 64; the new version's files say 128", "logits["),
        ),
        (xgboost_file, {"loan/1/xgboost.json"}, (SKIPPED,)),
        (lightgbm_file, {"rate/1/model.txt"}, (SKIPPED,)),
        (archive, {"first/1/model.onnx"}, ("2 of 2 values differ",)),
        (repository, {"first/1/model.onnx"}, ("2 of 2 values differ",)),
    ],
)
def test_every_kind_of_file_has_a_next_version_that_changes_its_files_alone(
    project: Path, write_version: Callable[[Path, bool], Path], changed: set[str], said: tuple[str, ...]
) -> None:
    given = write_version(project / "one", False)
    name = "pair" if given.name == "model.tar.gz" else given.stem
    added = run("add", str(given), "--name", name)
    folder = project / "model_repos" / name
    assert (folder / "recipe.yaml").is_file(), added.output
    for config in folder.glob("*/config.pbtxt"):
        config.write_text(config.read_text() + "# mine\n")
    before = content(folder)
    done = run("update", name, str(write_version(project / "two", True)))
    assert done.return_value == (1 if SKIPPED in said else 0), done.output
    after = content(folder)
    differ = {each for each in before.keys() | after.keys() if before.get(each) != after.get(each)}
    assert differ - {"sample/answer.json"} == changed
    assert f"{name}: inputs, outputs, types, shapes and batch are as before" in done.stdout
    assert [each for each in said if each not in done.output] == [], done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("update", "nothing", "net.onnx"), "no such folder"),
        (("update", "net/other", "net.onnx"), "no Triton model other"),
        (("update", "net", "none.onnx"), "no such file or folder"),
        (("update", "double", "net.onnx"), "tritonstack add net.onnx --name double"),
    ],
)
def test_what_cannot_be_put_there_is_refused_with_what_can(
    project: Path, arguments: tuple[str, ...], said: str
) -> None:
    write_double(project)
    before = content(project / "model_repos")
    done = run(*arguments)
    assert isinstance(done.exception, InputError)
    assert said in str(done.exception)
    assert content(project / "model_repos") == before


def test_a_file_that_an_export_makes_is_changed_in_its_script(project: Path) -> None:
    with (project / "model_repos/net/recipe.yaml").open("a") as recipe:
        recipe.write("exports: [{produces: [net/1/model.onnx]}]\n")
    done = run("update", "net", "net.onnx")
    assert "change model_repos/net/export.py, then tritonstack build net" in str(done.exception)


def test_a_file_in_s3_gets_its_new_hash_and_a_key_of_its_own(project: Path) -> None:
    recipe = project / "model_repos/net/recipe.yaml"
    old = hashlib.sha256((project / "net.onnx").read_bytes()).hexdigest()
    stored = f'files: {{net/1/model.onnx: {{s3: "s3://models/net/{old[:16]}/model.onnx", sha256: "{old}"}}}}  # in S3\n'
    recipe.write_text(recipe.read_text() + stored)
    graph(project / "net-v2.onnx", "Sigmoid")
    new = hashlib.sha256((project / "net-v2.onnx").read_bytes()).hexdigest()
    done = run("update", "net", "net-v2.onnx")
    assert done.return_value == 0, done.output
    assert recipe.read_text().endswith(stored.replace(old, new).replace(old[:16], new[:16]))
    upload = f"aws s3 cp model_repos/net/net/1/model.onnx s3://models/net/{new[:16]}/model.onnx"
    assert upload in done.stdout
