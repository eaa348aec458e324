"""The commands ``tritonstack capacity …``, found by the entry point ``tritonstack.commands``."""

from __future__ import annotations

from tritonstack.cli.root import LazyGroup
from tritonstack.extensions import require_modules

require_modules("aiohttp", "psutil")

COMMANDS = {
    "bench": ("tritonstack_capacity.commands.bench", "Put load on models, and measure latency, rate and cold starts."),
    "size": (
        "tritonstack_capacity.commands.size",
        "Compute from measurements what a load needs and costs, and recommend a configuration.",
    ),
    "simulate": (
        "tritonstack_capacity.commands.simulate",
        "Predict what a fleet would do: hits, cold starts, latency, instances, cost.",
    ),
    "prices": (
        "tritonstack_capacity.commands.prices",
        "Show what instances cost an hour, and update prices from AWS's Price List.",
    ),
}

group = LazyGroup(
    name="capacity",
    commands=COMMANDS,
    help="Plan capacity: load tests, sizing, simulation, prices.",
    epilog="example: tritonstack capacity prices list --region us-east-1",
)
