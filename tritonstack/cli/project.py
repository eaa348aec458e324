"""``tritonstack init``, ``setup`` and ``snapshots``: a project of one's own, its environments, its templates."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from tritonstack.cli.conventions import echo
from tritonstack.cli.root import GROUPS
from tritonstack.cli.schema import schema_text
from tritonstack.disk import temporary_folder
from tritonstack.errors import Problem, refuse
from tritonstack.extensions import extensions, install_command, installed_from, installed_wheel
from tritonstack.paths import CHECKOUT, link_to, project_folder, repository_path

TEMPLATES = Path(__file__).with_name("new_project")
FILES = {
    ".github/workflows/pull-request.yml": "pull-request.yml",
    ".gitignore": "gitignore",
    "README.md": "README.md",
    "app.py": "app.txt",
    "environments/local.yaml": "local.yaml",
    "model_repos/.gitkeep": "gitkeep",
    "tests/test_synthesis.py": "test_synthesis.txt",
}
"""File of a new project → its template, copied as it is but for ``PROJECT``, the folder's name."""
PINNED = ("aws-cdk-lib", "constructs", "cdk-nag")
"""What templates depend on: a project pins the versions that it was made with."""
EDITED = ("environment", "recipe", "pipeline")
"""Schemas of the files that people write: their first lines name them for editors."""
EXTRAS = "cdk,local"
WHEELS = "wheels"
"""Folder of the wheel in a project over one that no index has."""


@click.command("init", epilog="example: tritonstack init my-serving --no-setup")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--no-setup", is_flag=True, help="Write the files alone; `tritonstack setup` does the rest.")
def init_command(*, folder: Path, no_setup: bool) -> int:
    """Make a project in FOLDER: an app over the installed stacks, for models of your own, then its environments.

    FOLDER is new or empty; hidden files in it (.git, .venv) stay.
    """
    written = write_project(folder)
    echo(f"{folder}: {len(written)} files")
    # In a clone the commands use the clone's environments, in whatever project.
    code = 0 if no_setup or CHECKOUT is not None else make_environments((), root=folder)
    missing = [] if _can_be_fetched() or _wheel_to_copy() else [_wheel_command(folder)]
    lines = [*missing, *([] if folder.resolve() == Path.cwd() else [f"cd {shlex.quote(str(folder))}"])]
    lines += ["tritonstack setup"] if no_setup or code else []
    lines += ["tritonstack add MODEL.onnx    # or TorchScript, a Triton repository, a model.tar.gz"]
    lines += ["tritonstack local deploy      # starts a local AWS, and deploys environments/local.yaml to it"]
    echo("\n  ".join(["Next, as README.md says:", *lines]))
    return code


def write_project(folder: Path) -> list[str]:
    """Write the files of a new project. Returns their names.

    Raises InputError: the folder is not empty, or what the app needs is not installed; nothing is written then.
    """
    texts = dict(sorted(_texts(folder.resolve().name).items()))
    refuse([*_in_the_way(folder, texts), *_not_installed()])
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    if wheel := _wheel_to_copy():
        (folder / WHEELS).mkdir()
        shutil.copy(wheel, folder / WHEELS)
        return [*texts, f"{WHEELS}/{wheel.name}"]
    return list(texts)


def _texts(name: str) -> dict[str, str]:
    """File → content. What the repository has too is derived from it."""
    texts = {
        file: (TEMPLATES / template).read_text(encoding="utf-8").replace("PROJECT", name)
        for file, template in FILES.items()
    }
    for file in ("cdk.json", "package.json", "package-lock.json"):
        document = json.loads(repository_path(file).read_text(encoding="utf-8"))
        if file == "cdk.json":
            document["app"] = "python3 app.py"
        else:
            for part in (document, *document.get("packages", {}).values()):
                part.pop("name", None)
        texts[file] = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    texts |= {f"schemas/{each}.schema.json": schema_text(each) for each in EDITED}
    texts["requirements.txt"] = "".join(f"{each}\n" for each in _requirements())
    return texts


def _requirements() -> Iterator[str]:
    if _can_be_fetched():
        url = installed_from()
        yield f"tritonstack[{EXTRAS}] @ {url}" if url else f"tritonstack[{EXTRAS}]=={_installed('tritonstack')}"
    else:
        # A path, and no folder for pip to search beside an index: there the name may be anybody's.
        wheel = _wheel_to_copy()
        name = wheel.name if wheel else f"tritonstack-{_installed('tritonstack')}-py3-none-any.whl"
        yield f"./{WHEELS}/{name}[{EXTRAS}]"
    yield from (f"{name}=={_installed(name)}" for name in PINNED)
    locked = repository_path("requirements/development.txt").read_text(encoding="utf-8")
    yield from re.findall(r"^pytest==[\w.]+", locked, re.MULTILINE)


def _can_be_fetched() -> bool:
    """Whether this package came from a package index or a URL, so that a project needs no file of it."""
    url = installed_from()
    return CHECKOUT is None and (url is None or not url.startswith("file:"))


def _wheel_to_copy() -> Path | None:
    """The wheel that this package was installed from, or of a clone the one that `make wheel` made; None: neither."""
    if CHECKOUT is None:
        return installed_wheel()
    return next((CHECKOUT / "dist").glob(f"tritonstack-{_installed('tritonstack')}-*.whl"), None)


def _wheel_command(folder: Path) -> str:
    """Command that puts the wheel to where a project's requirements name it."""
    place = shlex.quote(str(folder / WHEELS))
    dist = shlex.quote(str((CHECKOUT or Path("<clone of tritonstack>")) / "dist"))
    made = f"make -C {shlex.quote(str(CHECKOUT))} wheel && " if CHECKOUT else ""
    return f"{made}mkdir -p {place} && cp {dist}/tritonstack-*.whl {place}    # requirements.txt names it"


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _in_the_way(folder: Path, texts: Mapping[str, str]) -> Iterator[Problem]:
    """Files in a folder that a new project would mix with or overwrite; hidden files of other names may be there."""
    allowed = "a new or empty folder; hidden files that no project has may be in it (.git, .venv)"
    there = next(each for each in (folder.resolve(), *folder.resolve().parents) if each.exists())
    if not there.is_dir():
        yield Problem(file=str(there), found="a file", allowed=allowed)
    elif folder.is_dir():
        ours = {name.partition("/")[0] for name in texts}
        names = sorted(each.name for each in folder.iterdir() if not each.name.startswith(".") or each.name in ours)
        if names:
            yield Problem(file=str(folder), found=f"in it already: {', '.join(names)}", allowed=allowed)


def _not_installed() -> Iterator[Problem]:
    if missing := [name for name in PINNED if _installed(name) is None]:
        found = f"not installed: {', '.join(missing)}"
        advice = install_command(*EXTRAS.split(","))
        yield Problem(found=found, allowed="tritonstack with its extra `cdk`", advice=advice)


LOCAL_NAMES = ("emulator", "triton", "backends", "exporters", "node")
"""What builds and proves archives and serves them on this machine; ``node``: the CDK command line."""
OTHER_NAMES = ("torch", "dali", "tensorflow", "perf-analyzer", "nodejs")


@click.command("setup", epilog="example: tritonstack setup torch node")
@click.argument("names", nargs=-1, metavar="[NAME]...")
def setup_command(*, names: tuple[str, ...]) -> int:
    """Make the environments that builds and the local AWS run in: .envs/ and node_modules/ of the project's folder.

    They are pinned, and one that is ready stays as it is. Without NAME: emulator, triton, backends, exporters, node
    (node alone where tritonstack is installed without its extra `local`). By name only: torch, dali, tensorflow,
    perf-analyzer; nodejs, which is Node itself where the system has none or an older one.
    """
    return make_environments(names, root=CHECKOUT or project_folder())


def make_environments(names: Sequence[str], *, root: Path) -> int:
    """Run ``scripts/setup.py``, which shows what it is at. Returns its exit code.

    Raises InputError: an unknown name, or an installation for the whole machine.
    """
    script = [sys.executable, str(repository_path("scripts/setup.py"))]
    if CHECKOUT is not None:
        of_clone = ("main", *LOCAL_NAMES, "development")
        return subprocess.run([*script, *(names or of_clone)], check=False).returncode
    problems = [
        Problem(field="NAME", found=name, allowed=", ".join((*LOCAL_NAMES, *OTHER_NAMES)))
        for name in names
        if name not in (*LOCAL_NAMES, *OTHER_NAMES)
    ]
    if not Path(sys.prefix, "bin", "python").exists():
        install = install_command(*EXTRAS.split(","))
        advice = f"python3 -m venv .venv && . .venv/bin/activate && {install}"
        problems.append(Problem(found=f"installed in {sys.prefix}", allowed="a virtual environment", advice=advice))
    refuse(problems)
    usual = LOCAL_NAMES if "local" in extensions(GROUPS) else ("node",)
    code = subprocess.run([*script, "--root", str(root), *(names or usual)], check=False).returncode
    if code == 0:
        # What runs in the environment `main` of a checkout runs in the one that the wheel is installed in.
        (root / ".envs").mkdir(exist_ok=True)
        link_to(Path(sys.prefix), root / ".envs" / "main")
    return code


@click.command("snapshots", epilog="example: tritonstack snapshots")
def snapshots_command() -> None:
    """Write snapshots/: the synthesised templates of every environment, which `tritonstack review` compares.

    Commit them with the change. A project with a pipeline.yaml gets snapshots-pipeline/, too.
    """
    from tritonstack.config.pipeline import PIPELINE_FILE  # noqa: PLC0415
    from tritonstack.review.assembly import read_assembly, synthesise  # noqa: PLC0415 - `init` needs none of these
    from tritonstack.review.snapshot import (  # noqa: PLC0415
        PIPELINE_CONTEXT,
        PIPELINE_FOLDER,
        added_by_pipeline,
    )
    from tritonstack.review.stored import FOLDER, write_snapshots  # noqa: PLC0415

    root = project_folder()
    made = {}
    with temporary_folder("snapshots") as temporary:
        synthesise(root, temporary / FOLDER)
        made[FOLDER] = read_assembly(temporary / FOLDER)
        if (root / PIPELINE_FILE).is_file():
            synthesise(root, temporary / PIPELINE_FOLDER, context=PIPELINE_CONTEXT)
            made[PIPELINE_FOLDER] = added_by_pipeline(read_assembly(temporary / PIPELINE_FOLDER))
    for folder, snapshots in made.items():
        touched = write_snapshots(snapshots, root / folder)
        for path in touched:
            echo(f"{folder}/{path}{'' if (root / folder / path).is_file() else ' (removed)'}")
        stacks = sum(len(each.stacks) for each in snapshots.environments.values())
        echo(f"{folder}/: {stacks} stacks, {len(touched)} files written or removed")
