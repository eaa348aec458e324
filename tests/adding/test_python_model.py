"""A Python model with packages of its own, from program to archive: in the real local Triton, without network."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.archives.wheels import make_wheel, wheel_of_installed
from tests.models.folders import places_in, write
from tritonstack.adding.additions import AddOptions
from tritonstack.adding.new_folder import write_folder
from tritonstack.adding.sources import read_source
from tritonstack.archives.build import build_models
from tritonstack.archives.programs import LOCAL_ENVIRONMENT, environment_version
from tritonstack.models.digest import sha256_of
from tritonstack.paths import environment_python

PAGE = Path(__file__).parents[2] / "docs" / "python-models.md"
SLUGIFY = "def slugify(text, separator):\n    return separator.join(text.lower().split())\n"


def test_the_documented_model_is_added_with_its_packages_and_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python, wheels = environment_version(LOCAL_ENVIRONMENT), tmp_path / "wheels"
    installed = environment_python(LOCAL_ENVIRONMENT).parents[1] / "lib" / f"python{python}" / "site-packages"
    wheel_of_installed(wheels, "numpy", installed)
    make_wheel(wheels, "python-slugify", "8.0.4", module="slugify", code=SLUGIFY)
    for name, value in (("UV_OFFLINE", "1"), ("UV_CACHE_DIR", str(tmp_path / "cache")), ("UV_FIND_LINKS", str(wheels))):
        monkeypatch.setenv(name, value)
    (program,) = re.findall(r"(?ms)^```python\n(.*?)^```$", PAGE.read_text())
    (command,) = re.findall(r"(?m)^\$ tritonstack add (\S+)$", PAGE.read_text())
    given = tmp_path / command
    write(given, {"config.pbtxt": 'backend: "python"\n', "1/model.py": program})
    places = places_in(tmp_path)
    options = AddOptions()
    with read_source(given, options, places=places, report=lambda _: None) as (addition,):
        added = write_folder(addition, places=places, target=None, report=lambda _: None)
    assert added.failure is None, str(added.failure)
    assert added.locked == "imports: python-slugify (import slugify): 2 packages locked for Python 3.10 and newer"
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
