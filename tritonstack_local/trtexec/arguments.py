"""trtexec's arguments, as its parser takes them: ``--option`` or ``--option=value``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

Shape = tuple[int, ...]
_MEMORY = re.compile(r"(workspace|dlaSRAM|dlaLocalDRAM|dlaGlobalDRAM|tacticSharedMem):\d+(\.\d+)?[BKMG]?")


class Refused(Exception):  # noqa: N818  # a refusal, as trtexec's own
    """trtexec's last messages before it fails; a line for each problem."""


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Options with their values (empty where there is none), in order; the last of a name counts."""

    values: Mapping[str, str]

    @classmethod
    def parse(cls, arguments: list[str], *, known: frozenset[str]) -> Arguments:
        """Raises Refused with every argument that this TensorRT's trtexec does not have."""
        values = {}
        for one in arguments:
            name, _, value = one.partition("=")
            values[name] = value
        unknown = [f"Unknown option: {name} {value}".rstrip() for name, value in values.items() if name not in known]
        if unknown:
            raise Refused("\n".join(unknown))
        parsed = cls(values=values)
        parsed.check_values()
        return parsed

    def text(self, name: str) -> str | None:
        """An option's value; None where it is not given."""
        return self.values.get(name)

    def shapes(self, name: str) -> dict[str, Shape]:
        """``x:1x3,'y:0':2`` → input → shape. Raises Refused where it is spelled otherwise."""
        shapes = {}
        for tensor, text in self.pairs(name).items():
            if not re.fullmatch(r"\d+(x\d+)*", text):
                raise Refused(f"{name}: {tensor}:{text} is no shape; trtexec writes input:1x3x224x224")
            shapes[tensor] = tuple(map(int, text.split("x")))
        return shapes

    def pairs(self, name: str) -> dict[str, str]:
        """``x:a,'y:0':b`` → x → a, y:0 → b. Raises Refused where it is spelled otherwise."""
        text = self.values.get(name, "")
        pairs = {}
        for one in filter(None, re.split(r",(?=(?:[^']*'[^']*')*[^']*$)", text)):
            match = re.fullmatch(r"'([^']+)':(.+)|([^:']+):(.+)", one)
            if not match:
                raise Refused(f"{name}: {one} is not input:value")
            pairs[match[1] or match[3]] = match[2] or match[4]
        return pairs

    def check_values(self) -> None:
        """Raises Refused where a value is not one that trtexec's help names."""
        pools = self.values.get("--memPoolSize")
        if pools is not None and not all(_MEMORY.fullmatch(one) for one in pools.split(",")):
            raise Refused(f"--memPoolSize={pools}: pool:size, such as workspace:4096")
        level = self.values.get("--builderOptimizationLevel")
        if level is not None and level not in set("012345"):
            raise Refused(f"--builderOptimizationLevel={level}: a number from 0 to 5")
