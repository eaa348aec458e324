"""One named edit: of an environment's file, of a model's folder, or of the constructs that are made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Edit:
    """What is different from a base.

    Attributes:
        set: dotted path in the environment's file → value. An item of a list of maps is named by its ``name``:
            ``endpoints.digits.scaling.maximum``; ``endpoints.+`` adds one.
        unset: dotted paths to leave out.
        models: model's name → a line that its ``model.py`` gets at its end.
        patches: names in ``patches.py``, for what no setting reaches.
    """

    set: Mapping[str, Any] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    models: Mapping[str, str] = field(default_factory=dict)
    patches: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Edit:
        """Read one from a case file; unknown members are a mistake."""
        unknown = given.keys() - cls.__dataclass_fields__.keys()
        assert not unknown, f"an edit has no {sorted(unknown)}"
        return cls(
            set=dict(given.get("set", {})),
            unset=tuple(given.get("unset", ())),
            models=dict(given.get("models", {})),
            patches=tuple(given.get("patches", ())),
        )

    def applied(self, settings: dict[str, Any]) -> dict[str, Any]:
        """The settings with it; ``settings`` itself is changed."""
        for path, value in self.set.items():
            holder, last = _holder(settings, path)
            if last == "+":
                holder.append(value)
            else:
                holder[last] = value
        for path in self.unset:
            holder, last = _holder(settings, path)
            if isinstance(holder, list):
                holder.remove(_named(holder, last))
            else:
                del holder[last]
        return settings

    @property
    def key(self) -> str:
        """What tells it from every other one."""
        return repr((sorted(self.set.items()), self.unset, sorted(self.models.items()), self.patches))


def _holder(settings: dict[str, Any], path: str) -> tuple[Any, str]:
    """What holds the last part of a path, and that part; maps on the way are made."""
    *way, last = path.split(".")
    holder: Any = settings
    for part in way:
        holder = _named(holder, part) if isinstance(holder, list) else holder.setdefault(part, {})
    return holder, last


def _named(items: list[Any], name: str) -> Any:
    [found] = [each for each in items if each["name"] == name]
    return found
