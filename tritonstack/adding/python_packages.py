"""Packages that a Python model needs: stated in its folder or imported by its programs, and locked with hashes."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from tritonstack.archives.installer import last_lines, run_installer
from tritonstack.catalogue.package_names import package_names
from tritonstack.errors import InputError, Problem, WorkFailedError, refuse
from tritonstack.untrusted.folder_files import is_fit_file, read_inside, text_inside
from tritonstack.untrusted.foreign_text import parse_program

STATED = (REQUIREMENTS := "requirements.txt", "pyproject.toml")
"""Files that state packages, in the model's directory or in the folder above it; the first one counts."""
OLDEST_LOCAL_PYTHON = (3, 11)
"""The oldest Python of the local Triton (``scripts/setup.py``, SERVER_MINORS): a lock file holds for it, too."""
NUMPY = "numpy<2"
"""The Python backend imports NumPy. Version 1: the local server reads arrays by its layout, and all releases do."""

_IN_THE_IMAGE = frozenset({"numpy", "triton_python_backend_utils", "c_python_backend_utils", "triton_bls"})
"""Modules that every container of Triton has for Python models."""
_HASH = "--hash="


@dataclass(frozen=True, kw_only=True)
class NeededPackages:
    """What a model needs to be installed."""

    file: Path | None = None  # that states it; None where imports and --package do
    lines: tuple[str, ...] = ()  # of a requirements file, in addition to those of ``file``
    taken: Mapping[str, str] = field(default_factory=dict)  # imported module → package
    unknown: tuple[str, ...] = ()  # imported modules that packages of --package have to have

    @property
    def is_stated(self) -> bool:
        """Whether the model itself lists packages, and not the user's option alone."""
        return self.file is not None or bool(self.taken or self.unknown)

    @property
    def origin(self) -> str:
        """For the user: where the names come from."""
        if self.file is not None:
            return self.file.name
        pairs = [name if name == module else f"{name} (import {module})" for module, name in self.taken.items()]
        return f"imports: {', '.join(pairs)}" if pairs else "--package"


def needed_packages(
    directory: Path, *, within: Path, programs: Iterable[Path], packages: Sequence[str]
) -> NeededPackages | None:
    """What a Python model's folder states, else what its programs import. None where the image has all of it.

    Args:
        directory: the model's directory.
        within: the folder that was given: a file above it is not read.
        programs: Python files of the model.
        packages: names, with or without a version, that the user states (``--package``).

    Raises InputError: a module is imported that is in no standard library, and nothing states its package.
    """
    folders = [directory, *([directory.parent] if directory.parent.is_relative_to(within) else [])]
    for folder in folders:
        for name in STATED:
            file = folder / name
            if is_fit_file(file, within) and _states_packages(text_inside(file, within), name):
                return NeededPackages(file=file, lines=tuple(packages))
    modules = sorted(set(_imported_modules(programs)) - _IN_THE_IMAGE - sys.stdlib_module_names)
    known = package_names()
    taken = {module: known[module] for module in modules if module in known}
    unknown = [module for module in modules if module not in known]
    if unknown and not packages:  # which of those that are given has which module, the proof shows
        options = " ".join(f"--package {canonicalize_name(module)}" for module in unknown)
        raise InputError(
            [
                Problem(
                    file=str(directory),
                    found=f"imports {', '.join(unknown)}, and nothing states which packages have them",
                    allowed=f"packages in {' or '.join(STATED)} beside the model, or by --package",
                    advice=f"if the packages are called so, add {options}; a package's name is what pip installs, and "
                    "anybody may have published another one under the module's name",
                )
            ]
        )
    if not taken and not packages:
        return None
    return NeededPackages(lines=(*dict.fromkeys(taken.values()), *packages), taken=taken, unknown=tuple(unknown))


def lock_packages(needed: NeededPackages, *, python: str, target: Path) -> str:
    """Lock what a model needs into ``target``, for ``python`` (``3.10``) and newer ones. Returns what was done.

    A file that is locked already, with NumPy in it, is taken as it is. Raises InputError: a file asks for what is no
    package of the index; WorkFailedError: a package or a version does not exist, or has no wheel; with uv's output.
    """
    stated = [] if needed.file is None else list(_stated_lines(needed.file))
    found = _packages(stated, file=str(needed.file)) + _packages(
        [("--package", line) for line in needed.lines], file=""
    )
    if needed.file is not None and not needed.lines and needed.file.name == REQUIREMENTS:
        text = needed.file.read_text(encoding="utf-8")
        if _HASH in text and re.search(r"(?m)^numpy\s*==", text):
            target.write_text(text, encoding="utf-8")
            return f"{REQUIREMENTS} is a lock file with hashes, and taken as it is"
    lines = [str(each) for each in found]
    if not any(canonicalize_name(each.name) == "numpy" for each in found):
        lines.append(NUMPY)
    oldest = min(OLDEST_LOCAL_PYTHON, tuple(map(int, python.split("."))))
    ended = run_installer(
        *("pip", "compile", "--quiet", "--no-config", "--no-header", "--no-annotate"),
        *("--universal", "--python-version", ".".join(map(str, oldest)), "--python", sys.executable),
        *("--no-build", "--generate-hashes", "--no-emit-index-url", "--no-emit-find-links"),
        *("--output-file", str(target.resolve()), "-"),
        text="\n".join(lines) + "\n",
    )
    if ended.returncode:
        raise WorkFailedError(f"the packages ({needed.origin}) could not be locked; {last_lines(ended)}")
    count = len(re.findall(r"(?m)^[A-Za-z0-9]", target.read_text(encoding="utf-8")))
    return f"{needed.origin}: {count} packages locked for Python {'.'.join(map(str, oldest))} and newer"


def _stated_lines(file: Path) -> Iterator[tuple[str, str]]:
    """Where a file states a package, and what: of a pyproject.toml its dependencies alone, no sources and indices."""
    text = file.read_text(encoding="utf-8", errors="replace")
    if file.name != REQUIREMENTS:
        yield from (("project.dependencies", str(each)) for each in tomllib.loads(text)["project"]["dependencies"])
        return
    for number, line in enumerate(text.splitlines(), 1):
        stated = re.sub(r"(^|\s)(#.*|--hash=\S+)", "", line).strip().removesuffix("\\").strip()
        if stated:
            yield f"line {number}", stated


def _packages(stated: Iterable[tuple[str, str]], *, file: str) -> list[Requirement]:
    """Packages of the index.

    Raises InputError with everything else: options name other indices and files, URLs and paths would be built.
    """
    found, problems = [], []
    for field_name, text in stated:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            requirement = None
        if requirement is not None and requirement.url is None:
            found.append(requirement)
            continue
        allowed = "packages of the index, with or without versions"
        advice = "put modules of your own beside model.py"
        problems.append(Problem(file=file, field=field_name, found=text, allowed=allowed, advice=advice))
    refuse(problems)
    return found


def _states_packages(text: str, name: str) -> bool:
    """Whether a file states any: a pyproject.toml may be for tools alone."""
    if name == REQUIREMENTS:
        return any(line.strip() and not line.strip().startswith("#") for line in text.splitlines())
    try:
        return bool(tomllib.loads(text).get("project", {}).get("dependencies"))
    except (tomllib.TOMLDecodeError, AttributeError):
        return False


def _imported_modules(programs: Iterable[Path]) -> Iterator[str]:
    """Modules that programs cannot do without: not their folder's own, and none whose absence a program handles."""
    for program in programs:
        beside = {path.stem for path in program.parent.glob("*.py")}
        beside |= {path.name for path in program.parent.iterdir() if path.is_dir()}
        try:
            tree = parse_program(read_inside(program, program.parent))
        except (OSError, SyntaxError, InputError):
            continue  # the linter reports it
        for node in _without_optional(tree.body):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            yield from (name.split(".")[0] for name in names if name and name.split(".")[0] not in beside)


def _without_optional(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Every node but those in ``try: … except ImportError`` and ``if TYPE_CHECKING:``."""
    for node in body:
        if isinstance(node, ast.Try) and any(_handles_absence(handler.type) for handler in node.handlers):
            yield from _without_optional((*node.orelse, *node.finalbody))
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _without_optional(node.orelse)
        else:
            yield node
            yield from _without_optional(ast.iter_child_nodes(node))


def _handles_absence(caught: ast.expr | None) -> bool:
    return caught is None or bool(re.search(r"\b(ImportError|ModuleNotFoundError|Exception)\b", ast.unparse(caught)))
