"""``requirements.txt`` at the root: what people install with pip, without ``make``."""

from __future__ import annotations

import re

import pytest

from tritonstack.paths import REPOSITORY

ROOT_FILE = REPOSITORY / "requirements.txt"
PINNED = re.compile(r"^([a-z0-9-]+)(?:\[[a-z,-]+\])?==(\S+)((?:.*\\\n)*.*)", re.MULTILINE)


def pins() -> dict[str, set[tuple[str, str]]]:
    """Package → versions and hashes, of all lock files that the root's file includes."""
    found: dict[str, set[tuple[str, str]]] = {}
    for name in re.findall(r"^-r (\S+)$", ROOT_FILE.read_text(), re.MULTILINE):
        for package, version, rest in PINNED.findall((REPOSITORY / name).read_text()):
            found.setdefault(package, set()).add((version, " ".join(sorted(re.findall(r"sha256:\w+", rest)))))
    return found


@pytest.mark.parametrize(
    "package", ["aws-cdk-lib", "constructs", "boto3", "tritonclient", "numpy", "pytest", "cdk-nag", "hypothesis"]
)
def test_the_roots_requirements_install_the_app_and_its_tests_by_hash(package: str) -> None:
    [(version, hashes)] = pins()[package]
    assert version
    assert hashes


def test_a_package_of_both_lock_files_has_one_version_and_the_same_hashes() -> None:
    """pip refuses two versions, and accepts only hashes that both lines have. By Python's version, two may be right."""
    assert {name for name, each in pins().items() if len(each) > 1} <= {"networkx", "soupsieve"}
