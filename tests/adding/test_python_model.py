"""A Python model with packages of its own, from program to archive: in the real local Triton, without network."""

from __future__ import annotations

import json
import os
import re
import shutil
import tarfile
from pathlib import Path

import pytest

from tests.archives.wheels import make_wheel, wheel_of_installed
from tests.models.folders import CONFIG, places_in, write
from tritonstack.adding.additions import AddOptions
from tritonstack.adding.new_folder import Added, write_folder
from tritonstack.adding.repository import ENVIRONMENT_PARAMETER
from tritonstack.adding.sources import read_source
from tritonstack.archives.build import build_models
from tritonstack.archives.programs import LOCAL_ENVIRONMENT, environment_version
from tritonstack.catalogue import load_catalogue
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.lint import ServingTarget
from tritonstack.local_aws import LackingModuleError
from tritonstack.models.digest import sha256_of
from tritonstack.models.manifest import Places
from tritonstack.models.recipe import read_recipe
from tritonstack.paths import environment_python
from tritonstack.updating.model_copy import UpdateOptions
from tritonstack.updating.next_version import update_model

PAGE = Path(__file__).parents[2] / "docs" / "python-models.md"
SLUGIFY = "def slugify(text, separator):\n    return separator.join(text.lower().split())\n"


STEP = """\
import triton_python_backend_utils as pb_utils
import {module}

class TritonPythonModel:
    def execute(self, requests):
        x = [pb_utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", item + {module}.ADDED)]) for item in x]
"""
ENSEMBLE = (
    CONFIG.replace('name: "double"\nbackend: "python"', 'platform: "ensemble"')
    + """\
ensemble_scheduling { step [
  { model_name: "first" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "y" value: "t" } },
  { model_name: "second" model_version: -1 input_map { key: "x" value: "t" } output_map { key: "y" value: "y" } }
] }
"""
)


PACKAGES = {"yaml": "pyyaml", "attr": "attrs"}


@pytest.mark.parametrize("alike", [True, False])
def test_each_python_step_of_an_ensemble_has_its_own_packages_or_those_of_all(
    tmp_path: Path, wheels: Path, alike: bool
) -> None:
    modules = ["yaml", "yaml" if alike else "attr"]
    for number, module in enumerate(dict.fromkeys(modules)):
        make_wheel(wheels, PACKAGES[module], "6.0", module=module, code=f"ADDED = {10**number}\n")
    steps = dict(zip(("first", "second"), modules, strict=True))
    given = tmp_path / "given"
    write(given, {"sum/config.pbtxt": ENSEMBLE, "sum/1/": ""})
    for name, module in steps.items():
        config = CONFIG.replace('"double"', f'"{name}"')
        write(given, {f"{name}/config.pbtxt": config, f"{name}/1/model.py": STEP.format(module=module)})
    added, places = add(given, tmp_path)
    assert added.failure is None, str(added.failure)
    files = ["requirements.txt"] if alike else ["requirements-first.txt", "requirements-second.txt"]
    assert list(added.locked) == files
    (built,) = build_models(["sum"], places=places, report=lambda _: None).built
    assert built.manifest.figures["sample_difference"] < 1e-6
    kept = [built.manifest.environment, *built.manifest.more_environments]
    found = {each.file: sorted(each.packages) for each in kept if each is not None}
    assert found == {f"{name}/env.tar.gz": sorted(["numpy", PACKAGES[module]]) for name, module in steps.items()}
    (x,) = json.loads((added.folder / "sample/request.json").read_text())["inputs"][0]["data"]
    (y,) = json.loads((added.folder / "sample/answer.json").read_text())["outputs"][0]["data"]
    assert y == pytest.approx(x + (2 if alike else 11))


def add(given: Path, root: Path, *, target: ServingTarget | None = None) -> tuple[Added, Places]:
    """Add the one model of a folder to the project in ``root``."""
    places = places_in(root)
    with read_source(given, AddOptions(), places=places, report=lambda _: None) as (addition,):
        return write_folder(addition, places=places, target=target, report=lambda _: None), places


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place that packages are installed from; it has NumPy."""
    place, python = tmp_path / "wheels", environment_version(LOCAL_ENVIRONMENT)
    installed = environment_python(LOCAL_ENVIRONMENT).parents[1] / "lib" / f"python{python}" / "site-packages"
    wheel_of_installed(place, "numpy", installed)
    for name, value in (("UV_OFFLINE", "1"), ("UV_CACHE_DIR", str(tmp_path / "cache")), ("UV_FIND_LINKS", str(place))):
        monkeypatch.setenv(name, value)
    return place


def test_the_documented_model_is_added_with_its_packages_and_built(tmp_path: Path, wheels: Path) -> None:
    python = environment_version(LOCAL_ENVIRONMENT)
    make_wheel(wheels, "python-slugify", "8.0.4", module="slugify", code=SLUGIFY)
    (program,) = re.findall(r"(?ms)^```python\n(.*?)^```$", PAGE.read_text())
    (command,) = re.findall(r"(?m)^\$ tritonstack add (\S+)$", PAGE.read_text())
    given = tmp_path / command
    write(given, {"config.pbtxt": 'backend: "python"\n', "1/model.py": program})
    added, places = add(given, tmp_path)
    assert added.failure is None, str(added.failure)
    locked = "imports: python-slugify (import slugify): 2 packages locked for Python 3.10 and newer"
    assert added.locked == {"requirements.txt": locked}
    (title,) = json.loads((added.folder / "sample/request.json").read_text())["inputs"][0]["data"]
    (slug,) = json.loads((added.folder / "sample/answer.json").read_text())["outputs"][0]["data"]
    assert slug == "-".join(title.lower().split())

    (built,) = build_models(["slugs"], places=places, report=lambda _: None).built
    environment = built.manifest.environment
    assert environment is not None
    assert environment.python == python
    assert environment.packages["python-slugify"] == "8.0.4"
    assert built.manifest.figures["sample_difference"] == 0
    assert sha256_of(added.folder / "requirements.txt") in built.manifest.inputs.values()


BESIDE = ("site-packages", "test", "__pycache__", "idlelib", "ensurepip", "lib2to3", "tkinter", "config-*")


def conda_packed(file: Path, *, python: str, module: str) -> None:
    """An environment laid out as conda-pack 0.9 packs one: conda is none of the packages that a test can install.

    One for the local Triton's Python has that Python with its standard library, as conda's have; others have names.
    """
    made, base = file.with_suffix(".made"), Path(os.path.realpath(environment_python(LOCAL_ENVIRONMENT))).parents[1]
    site = f"lib/python{python}/site-packages"
    activate = 'CONDA_PREFIX="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"\nPATH="$CONDA_PREFIX/bin:$PATH"\n'
    files = {"bin/activate": activate, "bin/conda-unpack": "#!/usr/bin/env python\n", "conda-meta/history": ""}
    write(made, {**files, f"{site}/{module}.py": "ADDED = 5\n"})
    if python == environment_version(LOCAL_ENVIRONMENT):
        shutil.copytree(
            base / f"lib/python{python}", made / f"lib/python{python}", dirs_exist_ok=True,
            ignore=shutil.ignore_patterns(*BESIDE),
        )  # fmt: skip
        for library in (base / "lib").glob("libpython3*.so.1.0"):
            shutil.copy(library, made / "lib")
        shutil.copy(base / f"bin/python{python}", made / "bin")
        (made / "bin/python3").symlink_to(f"python{python}")
        numpy = environment_python(LOCAL_ENVIRONMENT).parents[1] / f"lib/python{python}/site-packages/numpy"
        shutil.copytree(numpy, made / site / "numpy", ignore=shutil.ignore_patterns("__pycache__", "tests"))
        shutil.copytree(numpy.with_name("numpy.libs"), made / site / "numpy.libs")
    with tarfile.open(file, "w:gz", compresslevel=1) as archive:
        for path in sorted(made.rglob("*")):  # conda-pack's names begin with no "./"
            if not path.is_dir():
                archive.add(path, str(path.relative_to(made)))
    shutil.rmtree(made)


def with_environment(root: Path, *, python: str, named: bool) -> Path:
    """A Python model folder ``plus`` with a packed environment, which ``named``: config.pbtxt names."""
    given = root / "plus"
    parameter = ENVIRONMENT_PARAMETER if named else ""
    write(given, {"config.pbtxt": CONFIG.replace('"double"', '"plus"') + parameter})
    write(given, {"1/model.py": STEP.format(module="five_is_added")})
    conda_packed(given / "env.tar.gz", python=python, module="five_is_added")
    return given


@pytest.mark.parametrize("named", [True, False])
def test_an_environment_of_conda_pack_for_the_local_python_is_taken_and_proved(tmp_path: Path, named: bool) -> None:
    local = environment_version(LOCAL_ENVIRONMENT)
    assert local is not None
    added, places = add(with_environment(tmp_path, python=local, named=named), tmp_path)
    assert added.failure is None, str(added.failure)
    assert added.locked == {}
    (x,) = json.loads((added.folder / "sample/request.json").read_text())["inputs"][0]["data"]
    (y,) = json.loads((added.folder / "sample/answer.json").read_text())["outputs"][0]["data"]
    assert y == pytest.approx(x + 5)
    (built,) = build_models(["plus"], places=places, report=lambda _: None).built
    assert built.manifest.dependency == "python"
    assert not [each for each in built.manifest.stand_ins if "environment" in each]


def test_the_t5_notebooks_folder_is_taken_under_its_own_names_of_model_and_environment(tmp_path: Path) -> None:
    """Names, batching and packed environment of docs/walkthroughs/python-backend.md, with a small program."""
    local, given = environment_version(LOCAL_ENVIRONMENT), tmp_path / "model_repository" / "t5_pytorch"
    assert local is not None
    parameter = ENVIRONMENT_PARAMETER.replace("env.tar.gz", "hf_env.tar.gz")
    config = CONFIG.replace('"double"', '"t5_pytorch"') + "dynamic_batching {\n}\n" + parameter
    write(given, {"config.pbtxt": config, "1/model.py": STEP.format(module="five_is_added")})
    conda_packed(given / "hf_env.tar.gz", python=local, module="five_is_added")
    added, _ = add(given, tmp_path)
    assert added.failure is None, str(added.failure)
    assert added.folder.name == "t5-pytorch"
    assert (added.folder / "t5_pytorch" / "config.pbtxt").read_text() == config
    assert (added.folder / "t5_pytorch" / "hf_env.tar.gz").is_file()
    assert read_recipe(added.folder).model == "t5_pytorch"


def test_one_for_another_python_than_the_releases_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    given = with_environment(tmp_path, python="3.8", named=True)
    target = ServingTarget(name="one", release=load_catalogue().release("24.09"))
    with pytest.raises(InputError, match=r"(?s)for Python 3\.8\n.*Python 3\.10, .*conda create -n env python=3\.10 "):
        add(given, tmp_path, target=target)
    assert not (tmp_path / "model_repos/plus").exists()


def test_one_for_another_python_than_the_local_one_skips_the_proof_and_says_so(tmp_path: Path) -> None:
    added, places = add(with_environment(tmp_path, python="3.8", named=True), tmp_path)
    assert isinstance(added.failure, LackingModuleError)
    assert "in place of its Python 3.8" in str(added.failure)
    assert added.remedy.startswith("write ")
    shutil.copy(added.folder / "sample/request.json", added.folder / "sample/answer.json")
    answer = json.loads((added.folder / "sample/answer.json").read_text())["inputs"]
    write(added.folder, {"sample/answer.json": json.dumps({"outputs": [{**answer[0], "name": "y"}]})})
    (built,) = build_models(["plus"], places=places, report=lambda _: None).built
    assert "in place of its Python 3.8" in (built.manifest.proof_skipped or "")


def test_a_module_that_lacks_is_named_with_the_command_that_adds_its_package(tmp_path: Path, wheels: Path) -> None:
    make_wheel(wheels, "pyyaml", "6.0", module="yaml", code="ADDED = 1\n")
    program = STEP.format(module="yaml").replace("import yaml", "yaml = __import__('yaml')")  # which nothing finds
    given = tmp_path / "plus"
    write(given, {"config.pbtxt": CONFIG.replace('"double"', '"plus"'), "1/model.py": program})
    added, places = add(given, tmp_path)
    assert isinstance(added.failure, WorkFailedError)
    first, *_, error, advice = str(added.failure).splitlines()
    assert first == "proof of plus failed: Triton does not load plus, while its program was imported:"
    assert error == "  ModuleNotFoundError: No module named 'yaml'"
    command, name, option, package = advice.removeprefix("  do:      tritonstack ").split()
    assert (command, name, option) == ("update", "plus", "--package")
    options = UpdateOptions(packages=(package,))
    updated = update_model(name, None, options, places=places, target=None, report=lambda _: None)
    assert [each.outputs for each in updated.recorded] == [("y",)]
    (built,) = build_models(["plus"], places=places, report=lambda _: None).built
    assert built.manifest.environment is not None
    assert sorted(built.manifest.environment.packages) == ["numpy", "pyyaml"]
