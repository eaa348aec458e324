"""Mutations of sound repositories, read from ``tables.yaml``, and the linter's verdict on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.differential.bases import BASES, MODEL, Base, python_config
from tests.models.folders import write
from tritonstack.catalogue import load_catalogue
from tritonstack.lint import ServingTarget, lint_folder
from tritonstack.lint.registry import rule
from tritonstack_local.container.repository import STAND_INS

RELEASE = load_catalogue().release("24.09")
"""The release of the catalogue that is next to the local server's, 24.10."""
OF_TRITON = ("triton-core", "ensemble", "python-backend")
"""The categories of rules that Triton's own verdict is compared with: not SageMaker's, nor those of house style."""

Files = dict[str, str]
"""Path below the repository → text. A path that ends with a slash is a folder."""


@dataclass(frozen=True)
class Mutation:
    """One mutated repository, the rule by which the linter refuses it, and the server's error for it."""

    name: str
    base: Base
    change: tuple[Mapping[str, Any], ...] = ()
    rule: str = ""
    server_says: str = ""

    @property
    def accepted(self) -> bool:
        """Whether the server loads it."""
        return not self.rule

    @property
    def files(self) -> Files:
        """The repository after every change."""
        files = dict(self.base.files)
        for change in self.change:
            _make(change, files, f"{self.base.model}/config.pbtxt")
        return files

    def write(self, folder: Path) -> None:
        """Lay the mutated repository out below an existing or new folder."""
        write(folder, self.files)


@dataclass(frozen=True)
class Mode:
    """A container's error for an archive that it does not serve in one mode, and the linter's rule that refuses it."""

    says: str = ""
    rule: str = ""
    asked: bool = True


def _make(change: Mapping[str, Any], files: Files, config: str) -> None:
    place = change.get("in", config)
    match change:
        case {"swap": [old, new]}:
            count = change.get("count", 1)
            assert files[place].count(old) >= count, f"{place} has no {old!r}"
            files[place] = files[place].replace(old, new, count)
        case {"more": line}:
            files[place] += f"{line}\n"
        case {"write": [path, text]}:
            files[path] = text.replace("$MODEL", MODEL)
        case {"folder": path}:
            files[f"{path}/"] = ""
        case {"drop": paths}:
            for name in [name for path in paths for name in _below(files, path)]:
                del files[name]
        case {"move": [old, new]} | {"copy": [old, new]}:
            for name in _below(files, old):
                files[f"{new}{name.removeprefix(old)}"] = files[name] if "copy" in change else files.pop(name)
        case {"model": name}:
            files |= {f"{name}/config.pbtxt": python_config(name), f"{name}/1/model.py": MODEL}
        case {"complete": lines}:
            body = "".join(f"        {line}\n" for line in lines)
            head = "class TritonPythonModel:\n"
            function = f"    @staticmethod\n    def auto_complete_config(config):\n{body}\n"
            files["double/1/model.py"] = MODEL.replace(head, head + function)
        case _:
            raise AssertionError(f"no such change: {change}")


def _below(files: Files, path: str) -> list[str]:
    found = [name for name in files if f"{name}/".startswith(f"{path.removesuffix('/')}/")]
    assert found, f"there is no {path}"
    return found


def _mutation(name: str, row: Mapping[str, Any]) -> Mutation:
    changes = row.get("change", [])
    given = tuple(changes if isinstance(changes, list) else [changes])
    return Mutation(name, BASES[row["base"]], given, row.get("rule", ""), row.get("says", ""))


_ROWS: Mapping[str, Any] = yaml.safe_load(Path(__file__).with_name("tables.yaml").read_text())
_TABLES = {table: [_mutation(*row) for row in rows.items()] for table, rows in _ROWS.items()}
STUCK, SINGLE, RUNNING = _TABLES["stuck"], _TABLES["single"], _TABLES["running"]
APART = ("stuck", "single", "running", "layouts")
WITH_RESPONSE = [one for table, rows in _TABLES.items() if table not in APART for one in rows]
"""Those that the server loads or refuses."""
LAYOUTS = [
    (packed, {True: Mode(**row.get("multi_model", {})), False: Mode(**row.get("single_model", {}))})
    for packed, row in zip(_TABLES["layouts"], _ROWS["layouts"].values(), strict=True)
]
"""Archives by their layout: what is packed, and by whether it is the multi-model mode, what the mode makes of it."""

ENDED = ("Signal (11) received", "terminate called after throwing an instance of")
"""What the log says where the server ended of a stuck one: refused at one time, an end of server 2.51.0 at the next."""


def lint_errors(folder: Path, *, multi_model: bool = True) -> frozenset[str]:
    """The rules by which the linter refuses a repository."""
    target = ServingTarget(release=RELEASE, backends=frozenset({"python", *STAND_INS}), multi_model=multi_model)
    return frozenset(finding.rule for finding in lint_folder(folder, target=target) if finding.level == "error")


def refusals(mutation: Mutation, folder: Path, *, multi_model: bool = True) -> frozenset[str]:
    """The rules by which Triton would refuse the repository, according to the linter."""
    mutation.write(folder)
    errors = lint_errors(folder, multi_model=multi_model)
    return frozenset(name for name in errors if rule(name).category in OF_TRITON)
