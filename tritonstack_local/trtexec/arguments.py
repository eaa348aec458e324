"""trtexec's arguments, as its parser takes them: ``--option`` or ``--option=value``."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

Shape = tuple[int, ...]
COMPATIBILITY = ("none", "ampere+", "sameComputeCapability")
_MEMORY = re.compile(r"(workspace|dlaSRAM|dlaLocalDRAM|dlaGlobalDRAM|tacticSharedMem):\d+(\.\d+)?[BKMG]?")


class Refused(Exception):  # noqa: N818  # a refusal, as trtexec's own
    """trtexec's last messages before it fails; a line for each problem."""


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Options with their values (empty where there is none); the last of a name counts, but of shapes of profiles."""

    values: Mapping[str, str]
    given: tuple[tuple[str, str], ...] = ()  # all of them

    @classmethod
    def parse(cls, arguments: list[str], *, known: frozenset[str], later_values: Collection[str] = ()) -> Arguments:
        """Raises Refused with every argument that this TensorRT's trtexec does not have."""
        given = tuple((name, value) for name, _, value in (one.partition("=") for one in arguments))
        values = dict(given)
        unknown = [f"Unknown option: {name} {value}".rstrip() for name, value in values.items() if name not in known]
        if unknown:
            raise Refused("\n".join(unknown))
        parsed = cls(values=values, given=given)
        parsed.check_values(later_values)
        return parsed

    def text(self, name: str) -> str | None:
        """An option's value; None where it is not given."""
        return self.values.get(name)

    def shapes(self, name: str) -> dict[str, Shape]:
        """``x:1x3,'y:0':2`` → input → shape. Raises Refused where it is spelled otherwise."""
        return self._shapes(name, self.values.get(name, ""))

    def profiles(self) -> list[dict[str, dict[str, Shape]]]:
        """The optimisation profiles to build, each as ``min``, ``opt``, ``max`` → input → shape.

        ``--profile=N`` takes at most three options of shapes that follow it at once; a number without shapes, a number
        twice and shapes that no ``--profile`` takes are refused (samples/common/sampleOptions.cpp of NVIDIA/TensorRT,
        getOptimizationProfiles). Raises Refused.
        """
        ends = {"--minShapes": "min", "--optShapes": "opt", "--maxShapes": "max"}
        found: dict[int, dict[str, dict[str, Shape]]] = {}
        taken: set[int] = set()
        for place, (name, number) in enumerate(self.given):
            if name != "--profile":
                continue
            if not number.isdecimal() or int(number) in found:
                raise Refused(f"--profile={number}: Optimization profile index cannot be the same.")
            profile = found.setdefault(int(number), {})
            for later, (option, text) in enumerate(self.given[place + 1 : place + 4], start=place + 1):
                if option not in ends or ends[option] in profile:
                    break
                profile[ends[option]] = self._shapes(option, text)
                taken.add(later)
        left = [name for place, (name, _) in enumerate(self.given) if name in ends and place not in taken]
        if not found and len(left) == len(set(left)):
            return [{end: self.shapes(option) for option, end in ends.items()}]
        if left:
            raise Refused("Multiple --minShapes/--optShapes/--maxShapes without --profile are not allowed. ")
        missing = [number for number in range(max(found) + 1) if not found.get(number)]
        if missing:
            raise Refused(f"Found invalid or missing shape spec at profile index {missing[0]}. ")
        return [found[number] for number in sorted(found)]

    def _shapes(self, name: str, given: str) -> dict[str, Shape]:
        shapes = {}
        for tensor, text in self._pairs(name, given).items():
            if not re.fullmatch(r"\d+(x\d+)*", text):
                raise Refused(f"{name}: {tensor}:{text} is no shape; trtexec writes input:1x3x224x224")
            shapes[tensor] = tuple(map(int, text.split("x")))
        return shapes

    def pairs(self, name: str) -> dict[str, str]:
        """``x:a,'y:0':b`` → x → a, y:0 → b. Raises Refused where it is spelled otherwise."""
        return self._pairs(name, self.values.get(name, ""))

    def _pairs(self, name: str, given: str) -> dict[str, str]:
        pairs = {}
        for one in filter(None, re.split(r",(?=(?:[^']*'[^']*')*[^']*$)", given)):
            match = re.fullmatch(r"'([^']+)':(.+)|([^:']+):(.+)", one)
            if not match:
                raise Refused(f"{name}: {one} is not input:value")
            pairs[match[1] or match[3]] = match[2] or match[4]
        return pairs

    def check_values(self, later: Collection[str]) -> None:
        """Raises Refused where a value is not one that trtexec's help names; ``later``: those of newer versions."""
        level = self.values.get("--hardwareCompatibilityLevel")
        allowed = [each for each in COMPATIBILITY if f"--hardwareCompatibilityLevel={each}" not in later]
        if level is not None and level not in allowed:
            raise Refused(f"Unknown hardwareCompatibilityLevel: {level}. Valid options: {', '.join(allowed)}.")
        pools = self.values.get("--memPoolSize")
        if pools is not None and not all(_MEMORY.fullmatch(one) for one in pools.split(",")):
            raise Refused(f"--memPoolSize={pools}: pool:size, such as workspace:4096")
        level = self.values.get("--builderOptimizationLevel")
        if level is not None and level not in set("012345"):
            raise Refused(f"--builderOptimizationLevel={level}: a number from 0 to 5")
