"""What an instance costs an hour on either side of a change: the environment's own prices, then the catalogue's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from tritonstack.catalogue.prices import hosting_price
from tritonstack.review.git import files_at

SETTINGS = "environments"
"""The folder of the environments' settings, which hold ``prices:``."""


@dataclass(frozen=True, kw_only=True)
class Price:
    """USD an hour of one instance.

    Attributes:
        usd_per_hour: above 0.
        source: who says so, in words.
    """

    usd_per_hour: Decimal
    source: str


@dataclass(frozen=True, kw_only=True)
class PriceBook:
    """The prices of one environment at one commit.

    Attributes:
        overrides: instance type → USD an hour, which go before the catalogue's.
        unreadable: why the environment's own prices are not known; None where they are. No price is told then, for the
            environment might have had another.
    """

    overrides: Mapping[str, Decimal] = field(default_factory=dict)
    unreadable: str | None = None

    def price(self, instance_type: str, region: str | None) -> Price | str:
        """The price of an instance type (``ml.g4dn.xlarge``) in a region, or the reason why it is not known."""
        if self.unreadable is not None:
            return self.unreadable
        own = self.overrides.get(instance_type)
        if own is not None:
            return Price(usd_per_hour=own, source="the environment's file")
        if region is None:
            return f"the region of {instance_type} is decided when it is deployed"
        listed = hosting_price(instance_type=instance_type, region=region)
        if listed is None:
            return (
                f"no price of {instance_type} in {region}: `prices: {{{instance_type}: …}}` in the environment's file"
            )
        part = "" if listed.component == "hosting" else f", component {listed.component}"
        dated = f" of {listed.date}" if listed.date else ""
        return Price(usd_per_hour=Decimal(str(listed.usd_per_hour)), source=f"on-demand list price{dated}{part}")


@dataclass(frozen=True, kw_only=True)
class Prices:
    """The prices on both sides of a change.

    Attributes:
        before: at the base.
        after: of the working tree.
    """

    before: PriceBook = field(default_factory=PriceBook)
    after: PriceBook = field(default_factory=PriceBook)


def prices_of(environment: str, *, base: str | None, project: Path, folder: str = SETTINGS) -> Prices:
    """The prices of an environment at the base and in the working tree. Nothing is checked out.

    Args:
        environment: its name, which is its file's.
        base: the commit; None where there is nothing to compare with.
        project: the project's folder, which lies in a git repository where ``base`` is one of its commits.
        folder: of the environments' settings.
    """
    name = f"{environment}.yaml"
    path = project / folder / name
    after = price_book(path.read_text(encoding="utf-8"), file=f"{folder}/{name}") if path.is_file() else PriceBook()
    if base is None:
        return Prices(after=after)
    old = files_at(base, folder, repository=project, ending=f"/{name}").get(name)
    before = PriceBook() if old is None else price_book(old, file=f"{base[:12]}:{folder}/{name}")
    return Prices(before=before, after=after)


def price_book(text: str, *, file: str) -> PriceBook:
    """The prices that an environment's file sets. ``file``: its name, for the reason where it cannot be read."""
    import yaml  # noqa: PLC0415 - whoever gives prices of their own needs no parser

    try:
        document: Any = yaml.safe_load(text)
        given = (document or {}).get("prices") or {}
        overrides = {str(name): Decimal(str(each)) for name, each in given.items()}
    except (yaml.YAMLError, AttributeError, InvalidOperation) as error:
        return PriceBook(unreadable=f"the prices in {file} cannot be read: {' '.join(str(error).split())}")
    wrong = sorted(name for name, each in overrides.items() if not each.is_finite() or each <= 0)
    if wrong:
        return PriceBook(unreadable=f"{file} has no price above 0 USD an hour for {', '.join(wrong)}")
    return PriceBook(overrides=overrides)
