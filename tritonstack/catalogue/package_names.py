"""Packages of the index by the module that programs import, for widely used ones: ``slugify``, ``python-slugify``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from tritonstack.catalogue.data_file import read_data


@cache
def package_names() -> Mapping[str, str]:
    """Imported module → package that has it. What is not listed may be anybody's."""
    packages: Mapping[str, str] = read_data("package_names.json")["packages"]
    return packages
