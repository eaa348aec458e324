"""Version folders and version policies."""

from __future__ import annotations

from tests.differential.bases import DOUBLE, VERSIONS
from tests.differential.repository import Mutation, drop, folder, move, swap, write

_POLICY = "specific { versions: [ 1, 3 ] }"

VERSION_FOLDERS = (
    Mutation(
        "version-folder-missing", DOUBLE, drop("double/1"), "no-version", "at least one version must be available"
    ),
    Mutation(
        "version-folder-of-letters",
        DOUBLE,
        move("double/1", "double/v1"),
        "no-version",
        "at least one version must be available",
    ),
    Mutation("version-folder-zero", DOUBLE, move("double/1", "double/0")),
    Mutation(
        "version-folder-with-leading-zero",
        DOUBLE,
        move("double/1", "double/01"),
        "no-version",
        "at least one version must be available",
    ),
    Mutation("version-folder-large", DOUBLE, move("double/1", "double/20240131")),
    Mutation(
        "version-folder-beside-others", DOUBLE, (write("double/notes/read.me", "x"), write("double/README.md", "x"))
    ),
    Mutation("version-folder-of-letters-beside-a-number", DOUBLE, write("double/old/model.py", "raise SystemExit")),
    Mutation("version-of-digits-and-letters-beside-its-number", DOUBLE, folder("double/1a")),
    Mutation(
        "version-of-digits-and-letters-below-the-newest", DOUBLE, (move("double/1", "double/2"), folder("double/1a"))
    ),
    Mutation("version-zero-beside-one", DOUBLE, write("double/0/model.py", "raise SystemExit")),
    Mutation(
        "version-a-file",
        DOUBLE,
        (drop("double/1"), write("double/1", "x")),
        "no-version",
        "at least one version must be available",
    ),
    Mutation("version-hidden-folder-beside", DOUBLE, folder("double/.cache")),
    Mutation("version-pycache-beside", DOUBLE, write("double/__pycache__/x.pyc", "")),
    Mutation("versions-all", VERSIONS, swap(_POLICY, "all { }")),
    Mutation(
        "versions-latest",
        VERSIONS,
        swap(_POLICY, "latest { }"),
        "version-policy",
        "at least one version must be available",
    ),
    Mutation("versions-latest-two", VERSIONS, swap(_POLICY, "latest { num_versions: 2 }")),
    Mutation("versions-latest-more-than-there-are", VERSIONS, swap(_POLICY, "latest { num_versions: 9 }")),
    Mutation(
        "versions-latest-none",
        VERSIONS,
        swap(_POLICY, "latest { num_versions: 0 }"),
        "version-policy",
        "at least one version must be available",
    ),
    Mutation(
        "versions-latest-negative", VERSIONS, swap(_POLICY, "latest { num_versions: -1 }"), "config", "Expected integer"
    ),
    Mutation(
        "versions-specific-none",
        VERSIONS,
        swap(_POLICY, "specific { }"),
        "version-policy",
        "at least one version must be available",
    ),
    Mutation("versions-specific-one-missing", VERSIONS, swap("[ 1, 3 ]", "[ 1, 4 ]")),
    Mutation(
        "versions-specific-all-missing",
        VERSIONS,
        swap("[ 1, 3 ]", "[ 4, 5 ]"),
        "version-policy",
        "at least one version must be available",
    ),
    Mutation("versions-specific-doubled", VERSIONS, swap("[ 1, 3 ]", "[ 1, 1 ]")),
    Mutation("versions-policy-of-two-kinds", VERSIONS, swap(_POLICY, f"{_POLICY} all {{ }}"), "config", "oneof"),
    Mutation("versions-policy-empty", VERSIONS, swap(_POLICY, "")),
    Mutation("versions-policy-left-out", VERSIONS, swap(f"version_policy {{ {_POLICY} }}\n", "")),
    Mutation("version-not-served-is-broken", VERSIONS, write("versions/2/model.py", "raise SystemExit")),
    Mutation(
        "version-served-is-broken", VERSIONS, write("versions/1/model.py", "def x(:"), "python-syntax", "SyntaxError"
    ),
    Mutation(
        "version-newest-only-served-old-is-empty",
        VERSIONS,
        (swap(f"version_policy {{ {_POLICY} }}\n", ""), drop("versions/1"), folder("versions/1")),
    ),
)
