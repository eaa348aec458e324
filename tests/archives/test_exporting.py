"""Exports: what scripts are told, one after the other, kept for what they depend on, nothing half-made."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.models.folders import EXPORT_HEAD, places_in, tensor, write, write_double
from tritonstack.archives import programs
from tritonstack.archives.build import build_models
from tritonstack.disk import partial_folder
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.models.manifest import Places, read_manifest
from tritonstack.models.source import BuildChoice
from tritonstack.paths import REPOSITORY

SCRIPT = f"""\
{EXPORT_HEAD}
import sys
name = options["name"]
print("running", name)
told["sample"] = given.sample is not None
told["found"] = sorted(str(path.relative_to(target)) for path in target.rglob("*") if path.is_file())
if options.get("needs") and not (target / options["needs"]).is_file():
    sys.exit("the export before this one left nothing")
for file, content in options["files"].items():
    write(file, content if isinstance(content, str) else json.dumps(content))
if "told" in options:
    write(options["told"], json.dumps(told))
report({{name: 1.0}}, {{name: "2"}}, {{"weights of " + name: "0" * 64}})
"""


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """A project with the folder ``double`` and the script."""
    write(write_double(tmp_path), {"export.py": SCRIPT})
    return places_in(tmp_path)


def step(name: str, files: dict[str, Any], **options: Any) -> dict[str, Any]:
    """An export of the recipe; options that name files produce them too."""
    made = [*files, *([options["told"]] if "told" in options else [])]
    return {"script": "export.py", "produces": made, "options": {"name": name, "files": files, **options}}


def recipe(places: Places, **fields: Any) -> None:
    with (places.folder("double") / "recipe.yaml").open("a") as file:
        file.writelines(f"{name}: {json.dumps(value)}\n" for name, value in fields.items())


def test_a_script_is_told_what_the_recipe_and_the_build_say(places: Places) -> None:
    shapes = {"min": [1, 1], "opt": [4, 1], "max": [8, 1]}
    recipe(
        places,
        exports=[
            step("one", {}, told="double/1/told.json")
            | {"graph": {"opset": 18, "inputs": [GRAPH_X], "outputs": [GRAPH_X]}}
        ],
        seed=7,
        sizes={"tiny": {"layers": 1}},
        source={"hub": "a/b", "revision": "a" * 40},
        engine={"shapes": {"x": shapes}},
        proof={"tolerance": 0.5},
    )
    build_models(["double"], choice=BuildChoice(size="tiny", weights="random"), places=places)
    (kept,) = places.exports.iterdir()
    told = json.loads((kept / "files/double/1/told.json").read_text())
    assert told.pop("options")["name"] == "one"
    engine = {"precision": "fp16", "workspace_mib": 14000, "shapes": {"x": shapes}}
    assert told.pop("engine").items() >= engine.items()
    assert told == {
        "size": {"layers": 1},
        "weights": "random",
        "seed": 7,
        "source": {"hub": "a/b", "revision": "a" * 40},
        "graph": {"opset": 18, "inputs": [GRAPH_X], "outputs": [GRAPH_X]},
        "max_batch_size": 8,
        "largest_batch": None,
        "tolerance": 0.5,
        "archive": "double",
        "sample": True,
        "found": [],
    }


GRAPH_X = {"name": "x", "dtype": "FP32", "shape": ["batch", 1]}


def test_exports_run_in_order_into_one_folder_and_their_reports_add_up(places: Places) -> None:
    recipe(
        places,
        exports=[
            step("one", {"double/1/a.txt": "a"}),
            step("two", {"double/1/b.txt": "b"}, needs="double/1/a.txt"),
        ],
    )
    (built,) = build_models(["double"], places=places).built
    assert built.manifest.figures == {"one": 1.0, "two": 1.0, "sample_difference": 0.0}
    assert {"one": "2", "two": "2"}.items() <= built.manifest.tools.items()
    assert built.manifest.inputs["weights of one"] == "0" * 64
    assert "double/export.py" in built.manifest.inputs


def test_overlays_and_copies_share_an_export(places: Places) -> None:
    recipe(places, exports=[step("one", {"double/1/a.txt": "a"})], copies=3)
    ran: list[str] = []
    summary = build_models(["double"], places=places, report=ran.append)
    assert [item.name.model for item in summary.built] == ["double-0", "double-1", "double-2"]
    assert sum("running" in line for line in ran) == 1
    assert {item.manifest.model.name for item in summary.built} == {"double-0", "double-1", "double-2"}
    assert len({item.manifest.archive.tar_sha256 for item in summary.built}) == 3
    # They differ in their name alone.
    assert sum(line.startswith("proof of") and "at most" in line for line in ran) == 1


def test_the_sample_and_the_client_files_may_be_made_by_an_export(places: Places) -> None:
    folder = places.folder("double")
    for name in ("request", "answer"):
        (folder / f"sample/{name}.json").unlink()
    files = {
        "sample/request.json": {"inputs": [tensor("x", 4)]},
        "sample/answer.json": {"outputs": [tensor("y", 8)]},
        "text/labels.txt": "cat\ndog\n",
    }
    recipe(places, exports=[step("one", files, told="double/1/told.json")], client_files=["text/labels.txt"])
    (built,) = build_models(["double"], places=places).built
    (kept,) = places.exports.iterdir()
    assert json.loads((kept / "files/double/1/told.json").read_text())["sample"] is False
    manifest = read_manifest(places.manifest(built.name))
    assert manifest.sample.body == files["sample/request.json"]
    assert manifest.client_files["text/labels.txt"].bytes == 8
    assert (places.client_files(built.name) / "text/labels.txt").read_text() == "cat\ndog\n"
    assert not build_models(["double"], places=places).built[0].fresh
    (places.client_files(built.name) / "text/labels.txt").unlink()
    assert build_models(["double"], places=places).built[0].fresh


def test_a_made_sample_that_is_wrong_stops_the_build_and_leaves_nothing(places: Places) -> None:
    (places.folder("double") / "sample/answer.json").unlink()
    recipe(places, exports=[step("one", {"sample/answer.json": "no json"})])
    with pytest.raises(InputError, match=r"sample/answer\.json"):
        build_models(["double"], places=places)
    assert not list(places.archives.glob("double*"))


SECRETS = (
    "AWS_SECRET_ACCESS_KEY",
    "AWS_PROFILE",
    "GITHUB_TOKEN",
    "NVIDIA_API_KEY",
    "KAGGLE_KEY",
    "SERVICE_OF_TOMORROW",
)
HUB = ("HF_TOKEN", "HF_ENDPOINT", "HUGGING_FACE_HUB_TOKEN", "HTTPS_PROXY")


@pytest.mark.parametrize(
    ("downloads", "named", "seen"),
    [
        (False, "", []),
        (False, "KAGGLE_KEY", []),
        (True, "", sorted(HUB)),
        (True, "KAGGLE_KEY, WANDB_API_KEY", sorted([*HUB, "KAGGLE_KEY"])),
    ],
)
def test_other_people_s_code_sees_no_token_and_exports_that_of_the_hub_alone(
    *, downloads: bool, named: str, seen: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in (*SECRETS, *HUB):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("TRITONSTACK_EXPORT_VARIABLES", named)
    code = "import os; print(sorted(k for k, v in os.environ.items() if v == 'secret'), os.environ['HOME'])"
    said: list[str] = []
    programs.run_script(
        environment="exporters",
        arguments=["-c", code],
        folder=tmp_path,
        what="it",
        report=said.append,
        downloads=downloads,
    )
    assert said[0] == f"it: {seen} {os.environ['HOME'] if downloads else tmp_path}"


def test_a_recipe_s_export_may_download_and_its_proof_may_not(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts of the recipe alone are run in an environment; the proof's server has a network of its own."""
    asked: dict[str, bool] = {}
    run = programs.run_script

    def noted(**given: Any) -> Any:
        asked[given["what"]] = given.get("downloads", False)
        return run(**given)

    monkeypatch.setattr("tritonstack.archives.exporting.run_script", noted)
    monkeypatch.setattr("tritonstack.archives.proof.run_script", noted)
    recipe(places, exports=[step("one", {"double/notes.txt": "x"})])
    build_models(["double"], places=places)
    assert asked == {"export of double": True}


def test_scripts_do_not_get_the_caller_s_python(
    places: Places, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    write(
        tmp_path, {"show.py": "import os; print(os.environ.get('PYTHONPATH'), 'AWS_SECRET_ACCESS_KEY' in os.environ)"}
    )
    said: list[str] = []
    for python_path in (None, tmp_path):
        programs.run_script(
            environment="exporters",
            arguments=[str(tmp_path / "show.py")],
            folder=tmp_path,
            what="it",
            report=said.append,
            python_path=python_path,
        )
    assert [line for line in said if "memory at most" not in line] == [
        "it: None False",
        f"it: {tmp_path} False",
    ]


def run_code(code: str, folder: Path, *, said: list[str]) -> programs.Spent:
    return programs.run_script(
        environment="exporters", arguments=["-c", code], folder=folder, what="it", report=said.append
    )


def test_what_a_script_held_at_most_is_its_own_peak_and_said_when_it_ends(tmp_path: Path) -> None:
    said: list[str] = []
    small = run_code("pass", tmp_path, said=said)
    held = small.peak_bytes + (200 << 20)  # what forks off a large test process begins as large as that
    large = run_code(f"held = b'x' * {held}; del held", tmp_path, said=said)
    after = run_code("pass", tmp_path, said=said)
    assert large.peak_bytes > held
    assert after.peak_bytes < large.peak_bytes
    assert said == [str(small), str(large), str(after)]
    assert said[1].startswith("it (exporters): ") and said[1].endswith(" GiB of memory at most")


def test_a_script_that_is_killed_is_said_to_be_out_of_memory_with_what_to_change(tmp_path: Path) -> None:
    code = "import os, signal; print('proving', flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    with pytest.raises(
        WorkFailedError, match=r"it failed with exit code -9:\n  proving\n.*where memory runs out"
    ) as caught:
        run_code(code, tmp_path, said=[])
    assert "builds.compute_type" in str(caught.value) and "proof.largest_batch" in str(caught.value)


HOLDER = """\
import pathlib, sys
from tritonstack.disk import partial_folder
with partial_folder(pathlib.Path(sys.argv[1]), name=".model") as made:
    print(made, flush=True)
    sys.stdin.read()
"""
SLEEPER = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n"
RUNNER = """\
import pathlib, sys
from tritonstack.archives.programs import run_script
folder = pathlib.Path(sys.argv[1])
say = lambda line: print(line.split(": ")[1], flush=True)
run_script(environment="exporters", arguments=["export.py"], folder=folder, what="export", report=say)
"""


def _start(code: str, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, str(folder)]
    return subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_folder_of_a_killed_build_is_removed_by_the_next_and_one_in_use_is_not(tmp_path: Path) -> None:
    with _start(HOLDER, tmp_path) as holder:
        left = Path(_first_line(holder))
        (left / "file").touch()
        with partial_folder(tmp_path, name="other"):
            assert left.is_dir()
        holder.kill()
    assert left.is_dir()
    with partial_folder(tmp_path, name="other") as made:
        assert [path.name for path in tmp_path.iterdir()] == [made.name]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's signal at a parent's death is Linux's")
def test_an_export_dies_with_the_build_that_was_killed(tmp_path: Path) -> None:
    (tmp_path / "export.py").write_text(SLEEPER)
    with _start(RUNNER, tmp_path) as runner:
        export = psutil.Process(int(_first_line(runner)))
        os.kill(runner.pid, signal.SIGKILL)
    try:
        export.wait(timeout=20)
    finally:
        if export.is_running():
            export.kill()
