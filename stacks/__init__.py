"""The deployed stacks: a stage for each environment. A wheel has this package as ``tritonstack_stacks``.

Its modules name one another relatively, so that they work under either name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .stage import EnvironmentStage as EnvironmentStage

__all__ = ["EnvironmentStage"]


def __getattr__(name: str) -> object:
    """A public name, imported when it is first used: importing the CDK's types of every stack takes a while."""
    if name != "EnvironmentStage":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .stage import EnvironmentStage  # noqa: PLC0415 - on demand

    return EnvironmentStage
