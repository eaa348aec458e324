"""Prints each declaration of this package that the installed MiniStack breaks; exit code 1 where there is one."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import pkgutil
import sys
from collections.abc import Iterator

import ministack

from tritonstack_local.emulator import ministack_adapter
from tritonstack_local.emulator.ministack_adapter.private_names import PrivateName


def problems() -> Iterator[str]:
    """Names that the installed MiniStack no longer has as declared, a line each."""
    _import_all_of_ministack()
    installed = importlib.metadata.version("ministack")
    if installed != ministack_adapter.SEEN_IN:
        yield (
            f"ministack_adapter/__init__.py: SEEN_IN is {ministack_adapter.SEEN_IN}, and MiniStack {installed} is"
            " installed: go through what follows and the tests of the emulator, then set SEEN_IN"
        )
    for file in pkgutil.iter_modules(ministack_adapter.__path__):
        try:
            declarations = vars(importlib.import_module(f"{ministack_adapter.__name__}.{file.name}"))
        except ImportError as error:
            yield f"ministack_adapter/{file.name}.py cannot be imported: {error}"
            continue
        for name, value in declarations.items():
            if isinstance(value, PrivateName):
                yield from (
                    f"ministack_adapter/{file.name}.py: {name} uses {value}, which {problem}"
                    for problem in value.problems()
                )


def _import_all_of_ministack() -> None:
    """Only modules that are imported show which functions of others they have taken over."""
    for module in pkgutil.walk_packages(ministack.__path__, "ministack."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # of what an optional service needs and is not installed
                importlib.import_module(module.name)


def main() -> int:
    """Print the problems."""
    found = list(problems())
    print("\n".join(found) or f"all that the emulator uses is in MiniStack {ministack_adapter.SEEN_IN}")  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
