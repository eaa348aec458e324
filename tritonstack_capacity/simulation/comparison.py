"""The estimate of the long run against the simulation: whether Che's approximation holds for a scenario."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tritonstack_capacity.simulation.figures import call_figures
from tritonstack_capacity.simulation.happening import Happening
from tritonstack_capacity.simulation.trace import Trace

NEAR = 0.01
"""The approximation's error where what it assumes is given (tests/tritonstack_capacity/simulation/test_che.py)."""
ENOUGH = 10_000
"""Calls from which on a simulated hit ratio is nearer than that, but for one time in twenty (two standard errors)."""
MANY = 0.001
"""Share of the calls above which it is worth telling that they waited."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Calls with warm caches, and the estimate.

    Attributes:
        calls: how many: those after the warm-up; in a scenario without one, those of the second half of the time.
        simulated, estimated: hit ratios.
        waited: share of the calls that came during a load or an unload of their model, and so are no hits.
    """

    calls: int
    simulated: float
    estimated: float
    waited: float

    @property
    def agrees(self) -> bool:
        """Whether the two are as near as the approximation is at best."""
        return abs(self.simulated - self.estimated) <= NEAR


def comparison(happening: Happening, trace: Trace, *, warm_up: float, estimated: float) -> Comparison | None:
    """None where too few calls came for one. ``warm_up``: seconds; 0: none was said."""
    warm = call_figures(happening, trace, after=warm_up or trace.seconds / 2)
    if warm.calls < ENOUGH:
        return None
    return Comparison(
        calls=warm.calls, simulated=warm.hits / warm.calls, estimated=estimated, waited=warm.waited / warm.calls
    )


def difference_sentence(found: Comparison, *, copies: bool, changing: bool) -> str:
    """What the two say, and what may make the difference.

    ``copies``: whether a model may be loaded on several instances though the estimate counts it once. ``changing``:
    whether instances came or went.
    """
    return (
        f"Che's approximation is off here: of {found.calls:,} simulated calls {100 * found.simulated:.2f} % meet a "
        f"loaded model, where it says {100 * found.estimated:.2f} %. It takes "
        f"{', '.join(_taken_for(found, copies=copies, changing=changing))}"
    )


def _taken_for(found: Comparison, *, copies: bool, changing: bool) -> Iterator[str]:
    if found.waited > MANY:
        yield f"loads for done at once ({100 * found.waited:.2f} % of the calls came during a load or unload)"
    if copies:
        yield "each model for loaded once, on any instance that has room"
    if changing:
        yield "the number of instances for fixed"
    yield "caches for full and calls for independent of each other"
