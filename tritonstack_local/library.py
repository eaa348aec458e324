"""This project's packages for processes of the local AWS, which run in other environments and folders."""

from __future__ import annotations

from pathlib import Path

from tritonstack.paths import CHECKOUT, LIBRARY, PROJECT_VARIABLE, REPOSITORY, find_project, link_to


def library_path() -> Path:
    """Entry of ``sys.path`` with these packages alone, for the interpreter of another environment.

    Of a wheel it is a folder of links: its ``site-packages`` has NumPy and others, too, which would be imported in
    place of the versions that the other environment pins.
    """
    if CHECKOUT is not None:
        return CHECKOUT
    folder = REPOSITORY / ".envs" / "library"
    folder.mkdir(parents=True, exist_ok=True)
    for package in (each for each in LIBRARY.glob("tritonstack*") if (each / "__init__.py").is_file()):
        link_to(package, folder / package.name)
    return folder


def child_variables() -> dict[str, str]:
    """Variables of a process with another working folder, so that it finds the same project there."""
    return {PROJECT_VARIABLE: str(find_project() or REPOSITORY)}
