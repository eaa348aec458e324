"""In a checkout: ``stacks`` under the name that a wheel gives it, so that apps over it read the same in both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import stacks

if TYPE_CHECKING:
    from stacks import EnvironmentStage

__all__ = ["EnvironmentStage"]
__path__ = stacks.__path__
__getattr__ = stacks.__getattr__  # on demand, as there
