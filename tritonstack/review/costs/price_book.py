"""Prices of an environment: its own, then the project's price file, then the catalogue's; before and after a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from tritonstack.catalogue.price_file import PRICES_FILE, parse_price_file
from tritonstack.catalogue.prices import Prices as ListedPrices
from tritonstack.catalogue.prices import hosting_price, service_price, service_prices
from tritonstack.errors import InputError, Problem
from tritonstack.review.costs.amounts import HOURS_A_MONTH
from tritonstack.review.snapshot import settings_file
from tritonstack.review.stored import contents_of

_HOURS = {"hour": Decimal(1), "month": Decimal(HOURS_A_MONTH)}


@dataclass(frozen=True, kw_only=True)
class PriceBook:
    """The prices of one environment at one commit."""

    # instance type, or name of another price → USD, of the environment file
    overrides: Mapping[str, Decimal] = field(default_factory=dict)
    listed: ListedPrices = field(default_factory=dict)  # of the project's price file

    def price(self, instance_type: str, region: str | None) -> Decimal | str:
        """USD an hour of an instance type (``ml.g4dn.xlarge``) in a region, or the reason why that is unknown."""
        if instance_type in self.overrides:
            return self.overrides[instance_type]
        if region is None:
            return f"the region of {instance_type} is decided when it is deployed"
        listed = hosting_price(instance_type=instance_type, region=region, own=self.listed)
        if listed is None:
            return (
                f"no price of {instance_type} in {region}: `tritonstack capacity prices update`, or "
                f"`prices: {{{instance_type}: …}}` in the environment's file"
            )
        return Decimal(str(listed.usd_per_hour))

    def hourly(self, name: str, region: str | None) -> Decimal | None:
        """USD an hour of anything but instances (``nat-gateway``) in a region; None where it is unknown."""
        if region is None:
            return None
        listed = service_price(name=name, region=region)
        if name in self.overrides and name in service_prices():
            return self.overrides[name] / _HOURS[next(iter(service_prices()[name].values())).unit]
        return None if listed is None else Decimal(str(listed.usd)) / _HOURS[listed.unit]


@dataclass(frozen=True, kw_only=True)
class Prices:
    """The prices at the base and in the working tree."""

    before: PriceBook = field(default_factory=PriceBook)
    after: PriceBook = field(default_factory=PriceBook)


def prices_of(environment: str, *, base: str | None, project: Path) -> Prices:
    """The prices of an environment, whose file has its name, at the base and in the working tree.

    ``base``: the commit; None where there is nothing to compare with. Raises InputError: prices that cannot be read.
    """
    files = (settings_file(environment), PRICES_FILE)
    paths = [project / name for name in files]
    after = _book([each.read_text(encoding="utf-8") if each.is_file() else None for each in paths], files)
    if base is None:
        return Prices(after=after)
    old = contents_of([(base, name) for name in files], repository=project)
    return Prices(before=_book(old, [f"{base[:12]}:{name}" for name in files]), after=after)


def _book(texts: Sequence[str | None], files: Sequence[str]) -> PriceBook:
    """The prices of an environment file and of the price file."""
    settings, listed = texts
    book = PriceBook() if settings is None else price_book(settings, file=files[0])
    if listed is None:
        return book
    return replace(book, listed=parse_price_file(listed, file=files[1]).prices())


def price_book(text: str, *, file: str) -> PriceBook:
    """The prices that an environment file sets. Raises InputError: they are no amounts above 0."""
    import yaml  # noqa: PLC0415 - only here

    try:
        document: Any = yaml.safe_load(text)
        given = (document or {}).get("prices") or {}
        overrides = {str(name): Decimal(str(each)) for name, each in given.items()}
        wrong = ", ".join(sorted(name for name, each in overrides.items() if not each.is_finite() or each <= 0))
    except InvalidOperation:
        wrong = "a price that is no number"
    except (yaml.YAMLError, AttributeError) as error:
        wrong = " ".join(str(error).split())
    if wrong:
        allowed = "amounts above 0 in USD, by instance type or name of a price"
        raise InputError([Problem(file=file, field="prices", found=wrong, allowed=allowed)])
    return PriceBook(overrides=overrides)
