"""Which endpoint and which row the advice is written for, and what is refused."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from tests.tritonstack_capacity.sizing.rows import measurement, table_of
from tests.tritonstack_capacity.sizing.test_environment_diff import HEAD, endpoint_text, written
from tritonstack.config import Environment, load_environment
from tritonstack.errors import InputError, Problem
from tritonstack_capacity.sizing.capacity import CapacityTable, Demand, capacity_table
from tritonstack_capacity.sizing.scaling_advice import scaling_target

SMALL, LARGE, OTHER = "ml.g4dn.xlarge", "ml.g5.xlarge", "ml.g5.4xlarge"
ROWS = (
    measurement(name="plain", type_=SMALL, rate="100", latency="90", usd="1"),
    measurement(name="batched", type_=SMALL, rate="200", latency="95", usd="1"),
    measurement(name="plain", type_=LARGE, rate="900", latency="60", usd="2"),
    measurement(name="slow", type_=OTHER, rate="9000", latency="500", usd="1"),
)


def environment(folder: Path, *types: str) -> Environment:
    listed = [endpoint_text(name=f"served{number}").replace(SMALL, type_) for number, type_ in enumerate(types)]
    return load_environment(written(folder, f"{HEAD}endpoints:\n{''.join(listed)}"))


def target(
    table: CapacityTable, environment: Environment, *, endpoint: str | None = None, configuration: str | None = None
) -> tuple[str, str]:
    found, row = scaling_target(
        table, environment=environment, file="dev.yaml", endpoint=endpoint, configuration=configuration
    )
    return found.name, row.measurement.name


def refusal(
    table: CapacityTable, environment: Environment, *, endpoint: str | None = None, configuration: str | None = None
) -> Problem:
    with pytest.raises(InputError) as refused:
        target(table, environment, endpoint=endpoint, configuration=configuration)
    [problem] = refused.value.problems
    return problem


def test_the_one_endpoint_on_the_recommended_type_is_taken(tmp_path: Path) -> None:
    assert target(table_of(*ROWS), environment(tmp_path, SMALL, LARGE)) == ("served1", f"plain on {LARGE}")


def test_a_named_endpoint_gets_the_best_row_of_its_own_type(tmp_path: Path) -> None:
    assert target(table_of(*ROWS), environment(tmp_path, SMALL, LARGE), endpoint="served0") == (
        "served0",
        f"batched on {SMALL}",
    )


def test_a_configuration_narrows_the_rows(tmp_path: Path) -> None:
    served = environment(tmp_path, SMALL)
    assert target(table_of(*ROWS), served, configuration="batched") == ("served0", f"batched on {SMALL}")
    assert target(table_of(*ROWS), served, endpoint="served0", configuration="plain") == (
        "served0",
        f"plain on {SMALL}",
    )


def test_without_prices_none_is_the_cheapest_but_a_named_endpoint_needs_none(tmp_path: Path) -> None:
    rows = (measurement(name="plain", type_=SMALL), measurement(name="batched", type_=SMALL, rate="700"))
    table = capacity_table(
        rows, demand=Demand(invocations_per_minute=Decimal(6000), latency_ms=Decimal(100)), price_of=lambda _: None
    )
    served = environment(tmp_path, SMALL)
    problem = refusal(table, served)
    assert problem.field == "--diff"
    assert problem.found == "no row within 100 ms whose price is known, so that none is the cheapest"
    assert "prices: {<instance type>: <USD an hour>}" in problem.allowed
    assert target(table, served, endpoint="served0") == ("served0", f"batched on {SMALL}")


@pytest.mark.parametrize(
    ("types", "chosen", "found", "advice"),
    [
        ((LARGE, SMALL, LARGE), {}, f"2 endpoints on {LARGE}: served0, served2", "--endpoint NAME"),
        (
            (SMALL,),
            {},
            f"no endpoint on {LARGE}, the recommended type; there are: served0 on {SMALL}",
            f"change instance_type to {LARGE} first",
        ),
        (
            ("ml.g5.2xlarge",),
            {"endpoint": "served0"},
            "nothing measured on ml.g5.2xlarge",
            f"change instance_type to {LARGE}",
        ),
        ((OTHER,), {"endpoint": "served0"}, f"nothing within 100 ms on {OTHER}; the fastest is slow, 500 ms", ""),
        ((OTHER,), {"configuration": "slow"}, "slow, which nowhere keeps 100 ms", ""),
    ],
    ids=[
        "several on the type",
        "none on it",
        "not measured",
        "its type misses the limit",
        "all of it misses the limit",
    ],
)
def test_what_no_advice_can_be_written_for_is_refused(
    types: tuple[str, ...], chosen: dict[str, str], found: str, advice: str, tmp_path: Path
) -> None:
    problem = refusal(table_of(*ROWS), environment(tmp_path, *types), **chosen)
    assert problem.found == found
    assert advice in problem.advice


def test_names_that_are_not_there_are_told_with_those_that_are(tmp_path: Path) -> None:
    served = environment(tmp_path, SMALL, LARGE)
    problem = refusal(table_of(*ROWS), served, endpoint="served3")
    assert (problem.field, problem.allowed, problem.advice) == (
        "--endpoint",
        "served0, served1",
        "did you mean served1?",
    )
    problem = refusal(table_of(*ROWS), served, configuration="plan")
    assert (problem.field, problem.allowed) == ("--configuration", "batched, plain, slow")
