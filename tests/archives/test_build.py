"""Building: proven before it is packed, nothing half-made, nothing built twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.models.folders import EXPORT_HEAD, make_endpoint, make_environment, places_in, tensor, write, write_double
from tritonstack.archives import staging
from tritonstack.archives.build import build_environment, build_models
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.models.manifest import Places, read_manifest
from tritonstack.models.recipe import Size
from tritonstack.models.source import BuildChoice
from tritonstack.untrusted.unpacking import unpack

EXPORT = f"""\
{EXPORT_HEAD}
print("exporting")
if options.get("fail"):
    raise SystemExit("the source is gone")
if not options.get("forget"):
    write("double/1/factor.txt", "2")
report({{"accuracy": options.get("accuracy", 1.0)}}, {{"exporter": "1"}})
"""


SIDE_BY_SIDE = f"""\
{EXPORT_HEAD}
import time
began = pathlib.Path(options["began"])
(began / options["name"]).touch()
deadline = time.monotonic() + options["seconds"]
while len(list(began.iterdir())) < 2 and time.monotonic() < deadline:
    time.sleep(0.05)
write(options["name"] + "/1/factor.txt", "2")
report({{"began": len(list(began.iterdir()))}})
"""
"""An export that reports how many have begun before it ends; it waits so many seconds for the second."""


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """A project with the folder ``double``."""
    write_double(tmp_path)
    return places_in(tmp_path)


def _with_export(places: Places, **options: object) -> None:
    folder = places.folder("double")
    write(folder, {"export.py": EXPORT})
    with (folder / "recipe.yaml").open("a") as recipe:
        recipe.write(f"exports: [{{produces: [double/1/factor.txt], options: {json.dumps(options)}}}]\n")
        recipe.write("proof: {figures: {accuracy: {at_least: 0.95}}}\n")


def _left(places: Places) -> list[str]:
    return sorted(path.name for path in places.archives.iterdir()) if places.archives.is_dir() else []


def test_a_build_gives_the_archive_its_manifest_and_what_its_steps_took(places: Places, tmp_path: Path) -> None:
    _with_export(places)
    (built,) = build_models(["double"], places=places).built
    assert _left(places) == [f"double.{built.name.digest}.json", f"double.{built.name.digest}.tar.gz"]
    unpack(places.archive(built.name), tmp_path / "unpacked")
    unpacked = {path.name for path in (tmp_path / "unpacked").rglob("*") if path.is_file()}
    assert unpacked == {"config.pbtxt", "model.py", "factor.txt"}

    manifest = read_manifest(places.manifest(built.name))
    assert manifest == built.manifest
    (x,) = manifest.model.inputs
    assert (x.name, x.datatype, x.shape, x.optional) == ("x", "FP32", (-1, 1), False)
    assert manifest.archive.bytes == places.archive(built.name).stat().st_size
    assert manifest.figures == {"accuracy": 1.0, "sample_difference": 0.0}
    assert manifest.tools["exporter"] == "1"
    assert manifest.backends == ("python",)
    assert "proof_skipped" not in manifest.to_json()
    assert [step.step for step in built.spent] == ["export of double (exporters)", "proof of double (local Triton)"]
    assert all(step.peak_bytes > 10 << 20 for step in built.spent)
    assert "spent" not in places.manifest(built.name).read_text()


def test_the_same_inputs_give_the_same_archive_and_manifest_anywhere(places: Places, tmp_path: Path) -> None:
    (here,) = build_models(["double"], places=places).built
    write_double(tmp_path / "elsewhere")
    other = places_in(tmp_path / "elsewhere")
    (there,) = build_models(["double"], places=other).built
    assert places.archive(here.name).read_bytes() == other.archive(there.name).read_bytes()
    assert places.manifest(here.name).read_bytes() == other.manifest(there.name).read_bytes()


@pytest.mark.parametrize(("size", "seconds", "begun"), [("tiny", 60.0, [2.0, 2.0]), ("full", 0.5, [1.0, 2.0])])
def test_tiny_models_are_built_side_by_side_and_models_of_real_size_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: Size, seconds: float, begun: list[float]
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    began = tmp_path / "began"
    began.mkdir()
    for name in ("one", "two"):
        folder = write_double(tmp_path, name)
        write(folder, {"export.py": SIDE_BY_SIDE})
        options = {"name": name, "began": str(began), "seconds": seconds}
        with (folder / "recipe.yaml").open("a") as recipe:
            recipe.write(f"exports: [{{produces: [{name}/1/factor.txt], options: {json.dumps(options)}}}]\n")
    made = build_models(["one", "two"], choice=BuildChoice(size=size), places=places_in(tmp_path))
    assert [item.manifest.figures["began"] for item in made.built] == begun


def test_unchanged_inputs_build_nothing(places: Places) -> None:
    _with_export(places)
    steps: list[str] = []
    assert str(build_models(["double"], places=places)).endswith("bytes")
    second = build_models(["double"], places=places, report=steps.append)
    assert str(second) == "1 there already"
    assert steps == []
    assert second.built[0].spent == ()
    archive = places.archive(second.built[0].name)
    whole = archive.read_bytes()
    archive.write_bytes(whole[:-1])  # it was cut off
    assert build_models(["double"], places=places).built[0].fresh
    assert archive.read_bytes() == whole


def test_an_interrupted_build_leaves_nothing_and_does_not_export_again(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_export(places)

    def interrupted(*_args: object, **_kwargs: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(staging, "pack_reporting", interrupted)
        with pytest.raises(KeyboardInterrupt):
            build_models(["double"], places=places)
    assert _left(places) == []
    steps: list[str] = []
    assert build_models(["double"], places=places, report=steps.append).built[0].fresh
    assert not any("exporting" in step for step in steps)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"accuracy": 0.9}, "accuracy is 0.9, at least 0.95"),
        ({"accuracy": float("nan")}, "accuracy is nan"),
        ({"fail": True}, "the source is gone"),
        ({"forget": True}, "did not write double/1/factor.txt"),
    ],
)
def test_a_failed_export_or_figure_stops_the_build_and_leaves_nothing(
    places: Places, options: dict[str, object], message: str
) -> None:
    _with_export(places, **options)
    with pytest.raises(WorkFailedError, match=message):
        build_models(["double"], places=places)
    assert _left(places) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "2 * item",
            "3 * item",
            r"tensor y\[0, 0\]: 5 expected, 7.5 found: differs by 2.5 .*\n  do: .* tritonstack update double",
        ),
        ("2 * item", "item * float('nan')", "tensor y: .*not numbers"),
        ("2 * item", "(2 * item)[0]", r"output y: FP32 \[1\], config.pbtxt says FP32 \(-1, 1\)"),
        ("2 * item", "(2 * item).astype('int32')", r"output y: INT32 \[1, 1\], config.pbtxt says FP32"),
        ("x]", "x][1:]", r"InferenceRequest\(s\) size is:1, and InferenceResponse\(s\) size is:0"),
        ("import triton", "import gone_module, triton", "No module named 'gone_module'"),
    ],
)
def test_a_model_that_answers_otherwise_is_not_packed_and_the_tensor_is_named(
    places: Places, old: str, new: str, message: str
) -> None:
    model = places.folder("double") / "double/1/model.py"
    assert old in model.read_text()
    model.write_text(model.read_text().replace(old, new))
    with pytest.raises(WorkFailedError, match=message):
        build_models(["double"], places=places)
    assert _left(places) == []


def test_a_model_s_own_error_names_its_file_and_line_and_nothing_else(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = places.folder("double") / "double/1/model.py"
    model.write_text(model.read_text().replace("2 * item", "int('two')"))
    monkeypatch.chdir(places.repositories.parent)
    with pytest.raises(WorkFailedError) as caught:
        build_models(["double"], places=places)
    first, *calls, last = str(caught.value).splitlines()
    assert first == "proof of double failed: Triton responded 500, in execute:"
    assert last == "  ValueError: invalid literal for int() with base 10: 'two'"
    file = "model_repos/double/double/1/model.py"
    assert calls[:2] == ["  Traceback (most recent call last):", f'    File "{file}", line 6, in execute']
    assert "int('two')" in calls[2]
    assert all(f'    File "{file}", line 6' in call for call in calls[3::2])  # a comprehension is a call of its own


def test_a_folder_that_the_linter_refuses_is_not_built(places: Places) -> None:
    config = places.folder("double") / "double/config.pbtxt"
    config.write_text(config.read_text().replace('name: "double"', 'name: "other"'))
    with pytest.raises(InputError, match="name-differs"):
        build_models(["double"], places=places)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "Expecting"),
        ("[]", "no list of tensors"),
        (json.dumps({"inputs": [tensor("x", 1) | {"shape": [2, 2]}]}), "1 values for shape"),
    ],
)
def test_a_sample_that_is_no_request_is_refused(places: Places, content: str, message: str) -> None:
    (places.folder("double") / "sample/request.json").write_text(content)
    with pytest.raises(InputError, match=message):
        build_models(["double"], places=places)


def test_models_of_a_folder_are_named_by_the_folder_or_one_by_one(places: Places) -> None:
    with (places.folder("double") / "recipe.yaml").open("a") as recipe:
        recipe.write("overlays: {a: {}, b: {config: [b.pbtxt], description: B.}}\n")
    write(places.folder("double"), {"b.pbtxt": "max_batch_size: 2"})
    environment = make_environment(make_endpoint("one", ("double-a", "double-b")), make_endpoint("two", ("double-b",)))
    (one,) = build_environment(environment, models=("double-b",), places=places).built
    assert (one.manifest.name, one.manifest.overlay, one.manifest.description) == ("double-b", "b", "B.")
    assert one.manifest.model.max_batch_size == 2
    assert "max_batch_size: 2" in one.manifest.configs["double"]
    both = build_environment(environment, models=("double",), places=places).built
    assert [(item.manifest.name, item.fresh) for item in both] == [("double-a", True), ("double-b", False)]
    only_a = make_environment(make_endpoint("one", ("double-a",)))
    with pytest.raises(InputError, match="found:   double-b"):
        build_environment(only_a, models=("double-b",), places=places)


def test_environments_that_are_not_made_are_refused_before_anything_is_built(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_double(tmp_path, name="first")
    _with_export(places)
    monkeypatch.setattr("tritonstack.paths.REPOSITORY", tmp_path)
    steps: list[str] = []
    with pytest.raises(InputError) as caught:
        build_models(["first", "double"], places=places, report=steps.append)
    (problem,) = caught.value.problems
    assert problem.file == str(tmp_path / ".envs/exporters/bin/python")
    assert problem.advice == "python3 scripts/setup.py exporters"
    assert steps == _left(places) == []
