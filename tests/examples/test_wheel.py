"""The wheel carries what the checkout has, and works without it."""

from __future__ import annotations

import json
import os
import re
import shutil
import zipfile
from pathlib import Path

from tests.docs.pages import code_blocks
from tests.examples.installing import REPOSITORY, Installed, run
from tests.stacks.app_process import files_under

PAGE = "docs/getting-started.md"
PACKAGES = ("constructs_lib", "tritonstack", "tritonstack_capacity", "tritonstack_local")
CARRIED = ("cdk.json", "package-lock.json", "package.json", "pyproject.toml")
CARRIED_TREES = {"docs": "*.md", "lambda": "*.py", "requirements": "*", "schemas": "*.json", "scripts": "setup.py"}
SOURCE_FILES = """
import hashlib, json, sys
from pathlib import Path
import tritonstack
from constructs_lib.codebuild_project import source_files
files = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in source_files(Path(sys.argv[1]))}
print(json.dumps([tritonstack.__file__, files]))
"""


def expected(source: Path) -> dict[str, Path]:
    """Name in the wheel → file of the tree."""
    found = {path: path for package in PACKAGES for path in (source / package).rglob("*") if path.is_file()}
    named = {str(path.relative_to(source)): path for path in found}
    carried = [source / name for name in CARRIED]
    carried += [path for tree, pattern in CARRIED_TREES.items() for path in (source / tree).rglob(pattern)]
    named |= {f"tritonstack/_repository/{path.relative_to(source)}": path for path in carried if path.is_file()}
    return named | {f"tritonstack_stacks/{path.name}": path for path in (source / "stacks").glob("*.*")}


def test_the_wheel_holds_the_tree_and_nothing_else(installed: Installed) -> None:
    tree = expected(installed.source)
    with zipfile.ZipFile(installed.wheel) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
        assert sorted(held ^ set(tree)) == []
        assert [name for name in sorted(held) if wheel.read(name) != tree[name].read_bytes()] == []
    for part in ("tritonstack/_repository/lambda/activation/handler.py", "tritonstack/lint/rules/config.md"):
        assert part in held
    assert {name.partition("/")[0] for name in held} == {*PACKAGES, "tritonstack_stacks"}
    assert {name.partition("/")[0] for name in held if name.endswith("/py.typed")} == {*PACKAGES, "tritonstack_stacks"}
    assert not [name for name in held if name.startswith(("tests/", "stacks/")) or "/tests/" in name]


def test_the_documented_lines_make_the_wheel_and_leave_nothing_else_in_the_clone(
    installed: Installed, tmp_path: Path
) -> None:
    """docs/getting-started.md. What the lock files pin is in the cache of the package indexes."""
    make, install = next(block.commands for block in code_blocks(PAGE) if block.heading == "The wheel").splitlines()
    clone = tmp_path / "clone"
    shutil.copytree(installed.source, clone)
    shutil.copy(REPOSITORY / "Makefile", clone)
    [uv] = sorted((REPOSITORY / ".envs").glob("uv-*"))[-1:]
    (clone / ".envs").mkdir()
    (clone / ".envs" / uv.name).symlink_to(uv)
    (clone / "dist").mkdir()
    (clone / "dist" / "tritonstack-0.0.1-py3-none-any.whl").touch()
    before = files_under(clone)
    said = run(make.split(), folder=clone, variables={**os.environ, "UV_OFFLINE": "1"})
    made = clone / "dist" / installed.wheel.name
    assert f"pip install '{made}[cdk,local]'" in said
    assert set(files_under(clone)) ^ set(before) == {
        f"dist/{made.name}", "dist/tritonstack-0.0.1-py3-none-any.whl",
    }  # fmt: skip
    with zipfile.ZipFile(made) as wheel, zipfile.ZipFile(installed.wheel) as other:
        assert sorted(wheel.namelist()) == sorted(other.namelist())
    words = install.partition("  #")[0].removeprefix("pip install ")
    assert run(["bash", "-c", f"echo {words}"], folder=clone) == f"dist/{made.name}[cdk,local]\n"


def test_stacks_name_one_another_relatively() -> None:
    """A wheel has them under another name."""
    for file in (REPOSITORY / "stacks").glob("*.py"):
        wrong = [line for line in file.read_text().splitlines() if "from stacks" in line or "import stacks" in line]
        assert wrong == [], f"{file.name}: write `from .…`, as the other stacks do"


def test_no_module_looks_beside_the_packages_by_itself() -> None:
    """A wheel has nothing there: ``tritonstack.paths`` knows the place in both."""
    found, looked = set(), 0
    for package in (*PACKAGES, "stacks"):
        for file in (REPOSITORY / package).rglob("*.py"):
            name = file.relative_to(REPOSITORY)
            levels = re.findall(r"__file__\)\.resolve\(\)\.parents\[(\d)\]", file.read_text())
            above = re.findall(r"__file__\)\.resolve\(\)((?:\.parent\b)+)", file.read_text())
            highest = max([int(level) + 1 for level in levels] + [len(each) // len(".parent") for each in above] + [0])
            if highest >= len(name.parts):
                found.add(name.as_posix())
            looked += len(levels) + len(above)
    assert found == set()
    assert looked


def test_the_command_line_is_installed_and_reads_its_data(installed: Installed, tmp_path: Path) -> None:
    where = installed.run("python3", "-c", "import tritonstack; print(tritonstack.__file__)", folder=tmp_path).strip()
    assert Path(where).is_relative_to(installed.packages)
    assert "`max_batch_size` is 0 or more" in installed.run("tritonstack", "explain", "max-batch-size", folder=tmp_path)


def test_what_a_build_starts_from_is_the_same_from_a_wheel_and_from_a_checkout(
    installed: Installed, tmp_path: Path
) -> None:
    models = tmp_path / "model_repos"
    models.mkdir()
    (models / "file").write_text("a model")
    own = json.loads(installed.run("python3", "-c", SOURCE_FILES, str(models), folder=tmp_path).splitlines()[-1])
    main = str(REPOSITORY / ".envs" / "main" / "bin" / "python")
    variables = {"PYTHONPATH": str(installed.source), "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20"}
    command = [main, "-c", SOURCE_FILES, str(models)]
    checkout = json.loads(run(command, folder=tmp_path, variables={**_path(), **variables}).splitlines()[-1])
    assert Path(checkout[0]).is_relative_to(installed.source)
    assert own[1] == checkout[1]
    assert {"scripts/setup.py", "requirements/main.txt", "tritonstack/cli/root.py", "model_repos/file"} <= own[1].keys()


OTHER = """
import json, numpy, tritonstack, tritonstack.paths as paths, tritonstack_local.library as library
print(json.dumps([numpy.__file__, tritonstack.__file__, str(paths.REPOSITORY), str(library.library_path())]))
"""


def test_another_environment_imports_our_packages_and_nothing_else_that_lies_beside_them(
    installed: Installed, tmp_path: Path
) -> None:
    """As builds and the local AWS start it, in another working folder."""
    code = (
        "from tritonstack.paths import PROJECT_VARIABLE; from tritonstack_local.library import *; "
        "print(library_path(), child_variables()[PROJECT_VARIABLE])"
    )
    library, project = installed.run("python3", "-c", code, folder=tmp_path).split()
    assert sorted(each.name for each in Path(library).iterdir()) == [
        "tritonstack", "tritonstack_capacity", "tritonstack_local", "tritonstack_stacks",
    ]  # fmt: skip
    exporters = REPOSITORY / ".envs" / "exporters"
    variables = {"PYTHONPATH": library, "TRITONSTACK_PROJECT": project, "PYTHONDONTWRITEBYTECODE": "1"}
    said = run([str(exporters / "bin" / "python"), "-c", OTHER], folder=Path("/"), variables=variables)
    numpy, package, root, again = json.loads(said)
    assert Path(numpy).is_relative_to(exporters)
    assert Path(package).resolve().is_relative_to(installed.packages)
    assert (root, again) == (str(tmp_path), library)


def test_every_public_name_is_there(installed: Installed, tmp_path: Path) -> None:
    program = "import constructs_lib as c; print({name: getattr(c, name) for name in c.__all__})"
    found = installed.run("python3", "-c", program, folder=tmp_path)
    assert "'MultiModelEndpoint': <class 'constructs_lib.multi_model_endpoint.MultiModelEndpoint'>" in found


def _path() -> dict[str, str]:
    return {"PATH": os.environ["PATH"]}
