"""A price is the environment's own, else that of prices.json, else the catalogue's; else it is reported as unknown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.catalogue.test_prices import own_prices
from tests.config.environment_file import write_environment
from tests.tritonstack_capacity.bench.test_cloud_gate import LADDER, fast, measured
from tritonstack.config import Environment, load_environment
from tritonstack.monitoring.graphs import variants_of
from tritonstack.review.costs.price_book import prices_of
from tritonstack_capacity.commands import bench, size
from tritonstack_capacity.simulation.scenario import Instance
from tritonstack_capacity.simulation.scenario_defaults import instance_price

CARRIED, UNKNOWN = "ml.g4dn.xlarge", "ml.g5.16xlarge"
"""Types with a price in the catalogue's us-east-1, and without one."""
Found = tuple[float | None, str | None]
"""USD an hour of an instance, and its source in words; None of a reader that shows none."""


def environment_of(project: Path) -> Environment:
    return load_environment(project / "environments/local.yaml")


def by_size(project: Path, name: str) -> Found:
    """One instance is enough."""
    measured = project / "measured.csv"
    columns = "configuration_name,instance_type,invocations_per_min_per_instance,model_latency_as_printed"
    measured.write_text(f"{columns}\nplain,{name},600,100\n")
    arguments = ["--measurements", str(measured), "--load", "600", "--latency-ms", "200", "--environment", "local"]
    [row] = json.loads(CliRunner().invoke(size.command, [*arguments, "--json"]).stdout)["rows"]
    shown = CliRunner().invoke(size.command, arguments).stdout
    assert (" 0.00 " in shown, "unknown" in shown) == (False, row["cost_per_hour"] is None)
    return row["cost_per_hour"], str(row["price_source"])


def by_simulate(project: Path, name: str) -> Found:
    """What an environment's own price does to a scenario is tested there."""
    own = environment_of(project).prices.get(name)
    instance = Instance(type=name, usd_per_hour=own)
    return instance_price(instance)


def by_review(project: Path, name: str) -> Found:
    found = prices_of("local", base=None, project=project).after.price(name, "us-east-1")
    return (None, found) if isinstance(found, str) else (float(found), None)


def by_dashboard(project: Path, name: str) -> Found:
    environment = environment_of(project)
    assert environment.endpoints[0].instance_type == name
    price = variants_of(environment, environment.endpoints[0])[0].price
    return (None, "") if price is None else (price.usd_per_hour, price.short)


def by_gate(project: Path, name: str) -> Found:
    (project / "results.json").write_text(measured(fast(*LADDER, instance_type=name)).model_dump_json())
    lines = CliRunner().invoke(bench.command, ["--gate", str(project)], standalone_mode=False).stderr.splitlines()
    at = [line for line in lines if " USD an hour: " in line]
    if not at:
        assert [line for line in lines if line.startswith("unknown: ") and "its cost is unknown" in line]
        return None, ""
    return float(at[0].split()[2]), at[0].partition(": ")[2]


READERS = [by_size, by_simulate, by_review, by_dashboard, by_gate]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """A project with an environment ``local`` whose endpoint has a given type, perhaps with a price of its own."""
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(tmp_path))
    (tmp_path / "environments").mkdir()

    def make(name: str, *, own: float | None = None) -> Path:
        header = "load_test: {gate: {usd_per_million: 1}}"
        if own is not None:
            header += f"\nprices: {{{name}: {own}}}"
        write_environment(tmp_path / "environments", header=header, endpoint=f"instance_type: {name}")
        return tmp_path

    return make


@pytest.mark.parametrize("read", READERS)
def test_the_environment_s_own_price_goes_before_the_file_s_and_that_before_the_catalogue_s(
    read: Callable[[Path, str], Found], project: Callable[..., Path]
) -> None:
    usd, source = read(project(CARRIED), CARRIED)
    assert usd == pytest.approx(0.7364, abs=1e-4)
    assert source is None or ("2025-02-03" in source and "component not stated" in source)
    own_prices(project(CARRIED), 9.25)
    usd, source = read(project(CARRIED), CARRIED)
    assert usd == 9.25
    assert source is None or ("2026-11-20" in source and "not stated" not in source)
    usd, source = read(project(CARRIED, own=8.5), CARRIED)
    assert usd == 8.5
    assert source is None or "environment" in source


@pytest.mark.parametrize("read", READERS)
def test_an_unknown_price_is_unknown_until_the_file_has_it(
    read: Callable[[Path, str], Found], project: Callable[..., Path]
) -> None:
    folder = project(UNKNOWN)
    assert read(folder, UNKNOWN)[0] is None
    own_prices(folder, 5.12, name=UNKNOWN)
    usd, source = read(folder, UNKNOWN)
    assert usd == 5.12
    assert source is None or "2026-11-20" in source
