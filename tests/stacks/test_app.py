"""The app as the CDK command line starts it: what it chooses, what it refuses, and that its bytes do not change."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from stacks import app
from stacks.stage import EnvironmentStage
from tests.constructs_lib.templates import new_app, properties, template_of
from tests.stacks.app_process import (
    NO_NETWORK_IN_NODE,
    NO_NETWORK_IN_PYTHON,
    ROOT,
    committed_assembly,
    files_under,
    run_app,
)
from tests.stacks.pipeline_templates import Synthesised
from tritonstack.errors import InputError

COMMITTED = sorted(path.stem for path in (ROOT / "environments").glob("*.yaml"))


def stages_in(assembly: Path) -> list[str]:
    manifest = json.loads((assembly / "manifest.json").read_text())
    return sorted(name for name, each in manifest["artifacts"].items() if each["type"] == "cdk:cloud-assembly")


def edited(folder: Path, *, name: str, **replaced: str) -> Path:
    """A folder with ``environments/local.yaml`` under a name, some of its values replaced."""
    folder.mkdir(exist_ok=True)
    text = (ROOT / "environments" / "local.yaml").read_text()
    for found, instead in {"environment: local": f"environment: {name}", **replaced}.items():
        assert found in text
        text = text.replace(found, instead)
    (folder / f"{name}.yaml").write_text(text)
    return folder


def test_the_bytes_depend_on_neither_process_nor_place_nor_hash_seed_nor_clock(
    tmp_path_factory: pytest.TempPathFactory, committed: Synthesised
) -> None:
    """The pipeline's synthesis is another process, with another seed and time zone, and has the same environments."""
    first, second = committed_assembly(tmp_path_factory), committed.folder
    assert stages_in(first) == [f"assembly-{name}" for name in COMMITTED]
    made, again = ({k: v for k, v in files_under(each).items() if is_deployed(k)} for each in (first, second))
    both = {name for name in again if "pipeline" not in name and name.startswith(("assembly-", "asset."))}
    assert {name: made.get(name) for name in both} == {name: again[name] for name in both}
    assert [name for name in both if "prodbuilds" in name], "engines are built in prod"
    assert [name for name in both if name.startswith("asset.")]


def is_deployed(name: str) -> bool:
    """Templates and assets; manifests differ, for the pipeline's role is deployed between the stacks."""
    return name.endswith(".template.json") or "asset." in name


def test_the_guard_against_the_network_does_refuse(tmp_path: Path) -> None:
    (tmp_path / "guard.js").write_text(NO_NETWORK_IN_NODE)
    node = [
        "node", "--require", str(tmp_path / "guard.js"), "-e", "require('net').connect(9, '127.0.0.1')",
    ]  # fmt: skip
    python = [sys.executable, "-c", NO_NETWORK_IN_PYTHON + "socket.create_connection(('127.0.0.1', 9))"]
    for command in (node, python):
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "synthesis reached for the network" in ran.stderr


def test_wrong_settings_are_reported_all_at_once(tmp_path: Path) -> None:
    folder = edited(
        tmp_path / "environments",
        name="bad",
        **{"ml.g4dn.xlarge": "ml.g4dn.12xlarge"},
    )
    edited(folder, name="worse", **{'"25.09"': '"24.02"'})
    edited(folder, name="unchosen", **{"production: false": "production: perhaps"})
    with pytest.raises(InputError) as refused:
        app.chosen_environments(folder=folder, names="bad,worse")
    for expected in ("bad.yaml", "worse.yaml", "ml.g4dn.12xlarge", "24.02", "found:", "allowed:"):
        assert expected in str(refused.value)
    assert "unchosen.yaml" not in str(refused.value)


@pytest.mark.parametrize("names", ["prdo", "local,prdo", ","])
def test_an_environment_without_a_file_is_refused_with_those_there_are(names: str) -> None:
    with pytest.raises(InputError) as refused:
        app.chosen_environments(folder=ROOT / "environments", names=names)
    assert {problem.field for problem in refused.value.problems} == {"-c environments"}
    assert ", ".join(COMMITTED) in str(refused.value)


def test_a_model_without_a_folder_ends_the_app_and_nothing_is_synthesised(tmp_path: Path) -> None:
    folder = edited(tmp_path / "environments", name="bad", **{"digits-ensemble]": "digits-ensembel]"})
    ran = run_app(tmp_path / "out", context={"environments-folder": str(folder)})
    assert ran.returncode == 2
    assert "bad.yaml:27: endpoints[0].models[1]\n  found:   digits-ensembel" in ran.stderr
    assert "Did you mean digits-ensemble?" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert files_under(tmp_path / "out") == {}


def test_a_single_model_endpoint_names_the_only_ensemble_of_its_archive(tmp_path: Path) -> None:
    folder = edited(
        tmp_path / "environments",
        name="good",
        **{"[digits-onnx, digits-ensemble]": "[digits-ensemble]", "multi-model": "single-model"},
    )
    lines = (folder / "good.yaml").read_text().splitlines(keepends=True)
    multi_model_only = ("    model_cache:", "    local:")
    (folder / "good.yaml").write_text("".join(line for line in lines if not line.startswith(multi_model_only)))
    made = EnvironmentStage.from_file(new_app(), file=folder / "good.yaml", models=ROOT / "model_repos")
    [serving] = made.serving.values()
    container = properties(template_of(serving), "AWS::SageMaker::Model")["PrimaryContainer"]
    assert container["Environment"]["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"] == "digits-ensemble"
