"""A scenario's defaults: what an environment file deploys, what was built, what was measured."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cases import cases
from tests.tritonstack_capacity.bench.documents import document, point, result
from tests.tritonstack_capacity.simulation.test_scenario_file import GOOD, problems, read, written
from tritonstack.config import load_environment
from tritonstack.models.digest import digests_of
from tritonstack.models.manifest import Manifest
from tritonstack.models.selection import choice_of, sources_of
from tritonstack.paths import REPOSITORY
from tritonstack_capacity.bench.document import ResultPart
from tritonstack_capacity.simulation.scenario import MIB

SERVICE = "gpu_memory_mib: 100, service: {fixed_ms: 5}"
MODELS = f"""\
models:
  - {{name: digits-onnx, disk_mib: 4, {SERVICE}}}
  - {{name: digits-ensemble, disk_mib: 4, {SERVICE}}}
arrivals: {{duration_minutes: 10, curve: [{{minute: 0, per_minute: 600}}]}}
"""
PROD = f"environment: prod\n{MODELS}"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with small models, and no archive built."""
    folder = tmp_path / "project"
    shutil.copytree(REPOSITORY / "tests" / "digits_environments", folder / "environments")
    shutil.copytree(REPOSITORY / "requirements", folder / "requirements")
    for model in ("digits-onnx", "digits-ensemble"):
        shutil.copytree(REPOSITORY / "model_repos" / model, folder / "model_repos" / model)
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(folder))
    monkeypatch.setenv("TRITONSTACK_HOME", str(folder / ".local"))
    return folder


def changed(project: Path, before: str, after: str) -> None:
    """One change of prod's environment file."""
    file = project / "environments" / "prod.yaml"
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after, 1))


def test_what_an_endpoint_deploys_is_taken_from_its_environment(tmp_path: Path, project: Path) -> None:
    changed(project, "dashboard: true", "dashboard: true\nprices: {ml.g4dn.xlarge: 0.5}")
    found = read(tmp_path, PROD)
    endpoint = load_environment(project / "environments" / "prod.yaml").endpoints[0]
    assert found.scenario.instance.type == "ml.g4dn.xlarge"
    assert (found.fleet.count, found.fleet.routing) == (2, "least_outstanding")
    assert found.fleet.scaling == endpoint.scaling
    assert found.price[0] == 0.5


def test_the_scenario_overrides_its_environment(tmp_path: Path, project: Path) -> None:
    own = "instance: {type: ml.g5.xlarge, count: 3}\nrouting: random\nmodel_cache: disabled\n"
    changed(project, "models: [digits-onnx", "model_cache: enabled\n    models: [digits-onnx")
    found = read(tmp_path, PROD + own)
    assert found.scenario.instance.type == "ml.g5.xlarge"
    assert (found.fleet.count, found.fleet.routing, found.fleet.machine.cached) == (3, "random", False)


def test_a_built_archive_gives_sizes_batches_and_instances(tmp_path: Path, project: Path) -> None:
    environment = load_environment(project / "environments" / "prod.yaml")
    digest = digests_of(sources_of("digits-onnx", project / "model_repos", choice_of(environment)))["digits-onnx"]
    config = "max_batch_size: 16\ninstance_group [{count: 2}]\ndynamic_batching {max_queue_delay_microseconds: 500}"
    parts = {
        "name": "digits-onnx",
        "digest": digest,
        "description": "digits",
        "dependency": "none",
        "archive": {"file": "f", "bytes": 2 * MIB, "sha256": "0", "tar_bytes": 3 * MIB, "tar_sha256": "0"},
        "model": {"name": "digits-onnx", "max_batch_size": 16, "inputs": [], "outputs": []},
        "backends": ["onnxruntime"],
        "configs": {"digits-onnx": config},
        "adapters": {},
        "sample": {"file": "s", "answer": {}, "tolerance": 0.0},
        "figures": {},
        "tools": {},
    }
    archives = project / ".local" / "archives"
    archives.mkdir(parents=True)
    (archives / f"digits-onnx.{digest}.json").write_text(Manifest.model_validate(parts).to_json())
    found = read(tmp_path, PROD.replace("disk_mib: 4, ", "", 1))
    kind = found.models.kinds[0]
    assert kind.disk == 3 * MIB
    assert kind.download_seconds == pytest.approx(0.02)
    assert (kind.max_batch, kind.delay, kind.copies) == (16, 0.0005, 2)
    own = read(tmp_path, PROD.replace("disk_mib: 4, ", "max_batch: 2, ", 1)).models.kinds[0]
    assert (own.max_batch, own.copies) == (2, 2)


@cases("edit, field, words")
def test_what_does_not_fit_the_environment_is_refused(
    tmp_path: Path, project: Path, edit: tuple[str, str], field: str, words: str
) -> None:
    assert project.is_dir()
    assert words in problems(tmp_path, PROD.replace(*edit, 1))[field]


def test_one_of_several_endpoints_must_be_named_and_be_multi_model(tmp_path: Path, project: Path) -> None:
    file = project / "environments" / "prod.yaml"
    text = file.read_text()
    alone = 'name: alone, mode: single-model, release: "24.09", instance_type: ml.g4dn.xlarge, models: [digits-onnx]'
    file.write_text(f"{text.rstrip()}\n  - {{{alone}}}\n")
    assert "prod has several" in problems(tmp_path, PROD)["endpoint"]
    named = problems(tmp_path, PROD.replace("prod\n", "prod\nendpoint: alone\n"))
    assert "in single-model mode" in named["endpoint"]


LARGE = "disk_mib: 2000"
"""Of the group ``large`` of the scenario: 20 s of download at the default 100 MiB/s."""


def cold_result(name: str, *milliseconds: float, warm: float = 100.0, **changes: Any) -> ResultPart:
    """A model whose calls take ``warm`` ms on average, and these when they were its first."""
    cold = {"milliseconds": list(milliseconds), "failures": []}
    quick, slow = (point(users=users, per_minute=600, p95=2 * warm * users) for users in (1, 4))
    return result("plain", slow, quick, name=name, cold=cold, **changes)


def results(folder: Path, *parts: ResultPart, name: str = "results.json") -> None:
    written(folder, document(*parts).model_dump_json(), name=name)


def test_cold_starts_are_the_median_of_all_results_beyond_a_warm_call(tmp_path: Path) -> None:
    results(tmp_path, cold_result("prod/large", 24_100.0, 25_100.0), cold_result("other", 9000.0), name="a.json")
    results(tmp_path, cold_result("large", 30_100.0), name="b.json")
    text = GOOD.replace(LARGE, f"{LARGE}, cold_results: [a.json, b.json]")
    kind = read(tmp_path, text).models.kinds[1]
    assert kind.download_seconds == 20.0
    assert kind.load_seconds == pytest.approx(5.0)


@cases("edit, field, words")
def test_results_without_anything_of_the_model_are_refused(tmp_path: Path, edit: str, field: str, words: str) -> None:
    results(tmp_path, cold_result("bert", 4100.0), result("plain", name="roberta"))
    written(tmp_path, "a,b\n", name="t.csv")
    assert words in problems(tmp_path, GOOD.replace(LARGE, f"{LARGE}, {edit}"))[field]


def test_a_manifest_gives_how_triton_batches_unless_the_scenario_does(tmp_path: Path) -> None:
    batching = "dynamic_batching {max_queue_delay_microseconds: 250}"
    config = f"max_batch_size: 8\n{batching}\ninstance_group [{{count: 2}}, {{count: 1}}]"
    parts = {"archive": {"bytes": MIB, "tar_bytes": MIB}, "model": {"name": "m"}, "configs": {"m": config}}
    written(tmp_path, json.dumps(parts), name="m.json")
    kind = read(tmp_path, GOOD.replace(LARGE, "manifest: m.json")).models.kinds[1]
    assert (kind.max_batch, kind.delay, kind.copies) == (8, 0.00025, 3)
    own = read(tmp_path, GOOD.replace(LARGE, "manifest: m.json, max_batch: 1, instances: 1")).models.kinds[1]
    assert (own.max_batch, own.delay, own.copies) == (1, 0.0, 1)
