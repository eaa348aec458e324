"""Files and modules that comments, docstrings and pages name are there."""

from __future__ import annotations

import ast
import re
import subprocess
import tokenize
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from tritonstack.paths import REPOSITORY

FILE = re.compile(r"(?<![\w/.:…>$*{-])((?:[\w.-]+/)+[\w.-]+\.(?:py|md|yaml|json|svg))\b(?![*<{/])")
MODULE = re.compile(r"\b(?:tritonstack(?:_local|_capacity)?|constructs_lib|stacks)(?:\.\w+)+\b")
IMPORT = re.compile(
    r"^ *from ((?:tritonstack(?:_local|_capacity)?|constructs_lib|stacks)(?:\.\w+)*) import (\w[\w, ]*)", re.MULTILINE
)
ELSEWHERE = {
    "docs/ExternalData.md",  # onnx
    "docs/field_presence.md",  # protobuf
    "docs/model_support.md",  # fil_backend
    "docs/user_guide/model_repository.md",  # Triton's server
    "docs/user_guide/response_cache.md",
    "job/step.py",  # of a processing job's container
    "botocore/eventstream.py",
    "retries/standard.py",  # botocore
    "src/resources/triton_python_backend_utils.py",  # python_backend
    "transforms/functional.py",  # torchvision
    "Lib/pickletools.py",  # CPython
    "joblib/numpy_pickle.py",  # joblib
    "keras/src/saving/saving_lib.py",  # Keras
    "skops/io/_general.py",
    "sklearn/base.py",  # scikit-learn
    "torch/_utils.py",  # PyTorch
    "torch/export/pt2_archive/constants.py",  # PyTorch
    "torch/serialization.py",  # PyTorch
    "ultralytics/engine/exporter.py",
}
"""Files of other projects, each named beside its project."""
ENTRY_POINTS = "tritonstack.commands"
"""The group of entry points that outbuildings register commands under: no module."""


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The comments and docstrings of a program, each with its line."""
    with path.open("rb") as stream:
        for token in tokenize.tokenize(stream.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def is_there(module: str) -> bool:
    """Whether a dotted name is a module, or something that one has."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        path = REPOSITORY.joinpath(*parts[:length])
        if path.is_dir() or path.with_suffix(".py").is_file():
            rest = parts[length : length + 1]
            place = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            return not rest or (place.is_file() and re.search(rf"\b{rest[0]}\b", place.read_text()) is not None)
    return find_spec(parts[0]) is not None


def listed(pattern: str = "*") -> list[str]:
    """Files under version control, and new ones that nothing ignores."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", pattern]
    found = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    return [name for name in found.split("\0") if name and (REPOSITORY / name).is_file()]


def test_files_and_modules_named_in_comments_and_docstrings_exist() -> None:
    ends = {"/".join(parts[first:]) for parts in (name.split("/") for name in listed()) for first in range(len(parts))}
    lost = []
    for name in listed("*.py"):
        for line, text in texts(REPOSITORY / name):
            files = set(FILE.findall(text)) - ends - ELSEWHERE
            modules = {each for each in MODULE.findall(text) if each != ENTRY_POINTS and not is_there(each)}
            lost += [f"{name}:{line}: {each}" for each in sorted(files | modules)]
    assert not lost, "\n".join(lost)


def test_names_that_programs_inside_tests_import_exist() -> None:
    """Programs in texts, which tests start in other environments: no linter and no import of the test reads them."""
    lost, found = [], 0
    for name in listed("tests/*.py"):
        for node in ast.walk(ast.parse((REPOSITORY / name).read_text())):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
                continue
            for module, names in IMPORT.findall(node.value):
                for each in names.split(","):
                    found += 1
                    dotted = f"{module}.{each.partition(' as ')[0].strip()}"
                    lost += [] if is_there(dotted) else [f"{name}:{node.lineno}: {dotted}"]
    assert found > 20
    assert not lost, "\n".join(lost)
