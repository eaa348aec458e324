"""Amounts of money an hour, and the prices of an environment: its own, the project's, the catalogue's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from tritonstack.catalogue.price_file import PRICES_FILE, parse_price_file
from tritonstack.catalogue.prices import Prices as ListedPrices
from tritonstack.catalogue.prices import hosting_price, service_price, service_prices
from tritonstack.errors import InputError, Problem
from tritonstack.review.snapshot import settings_file
from tritonstack.review.stored import contents_of

HOURS_A_MONTH = 730
"""365 days in twelve parts, as AWS's own estimates have it."""
_DIGITS = Decimal("0.0001")
_CENTS = 2
UNIT = " USD/hour"


@dataclass(frozen=True, kw_only=True)
class Amount:
    """USD an hour."""

    known: Decimal = Decimal(0)  # the sum of the parts with a known price
    # name of an unknown price → how many times it is in the sum, never 0
    unknown: Mapping[str, int] = field(default_factory=dict)

    @property
    def usd_per_hour(self) -> Decimal | None:
        """The whole sum; None where a part is unknown."""
        return None if self.unknown else self.known

    @property
    def text(self) -> str:
        """``1.472 USD/hour``, or ``at least 0.736 USD/hour, plus 2 unknown``."""
        if not self.unknown:
            return f"{number(self.known)}{UNIT}"
        count = len(self.unknown)
        return f"at least {number(self.known)} USD/hour, plus {count} unknown" if self.known else "unknown"

    def __add__(self, other: Amount) -> Amount:
        names = sorted(self.unknown.keys() | other.unknown.keys())
        unknown = {name: self.unknown.get(name, 0) + other.unknown.get(name, 0) for name in names}
        return Amount(known=self.known + other.known, unknown=unknown)


def total(amounts: Iterable[Amount]) -> Amount:
    """The sum; zero of none."""
    return sum(amounts, Amount())


def number(usd: Decimal) -> str:
    """An amount to a hundredth of a cent, with cents always: ``0.7364``, ``1.50``."""
    whole, _, digits = str(usd.quantize(_DIGITS, rounding=ROUND_HALF_UP)).partition(".")
    return f"{whole}.{digits.rstrip('0').ljust(_CENTS, '0')}"


def moved_text(before: Amount, after: Amount) -> str:
    """An amount before and after, with the change in per cent where it is known."""
    if before == after:
        return f"{after.text} (no change)"
    old, new = before.usd_per_hour, after.usd_per_hour
    part = "" if not old or new is None else f" ({percent_text((new - old) / old)})"
    text = before.text.removesuffix(UNIT) if after.text.endswith(UNIT) else before.text
    return f"{text} → {after.text}{part}"


def percent_text(part: Decimal) -> str:
    """A part that is not 0 as a signed percentage, to a tenth: 0.1 is ``+10 %``."""
    percent = (part * 100).quantize(Decimal("0.1"), rounding=ROUND_HALF_UP)
    return f"{percent:+} %".replace(".0 %", " %") if percent else f"{'-' if part < 0 else '+'}0.1 % or less"


# Prices: the environment's own, then the project's price file, then the catalogue's.
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
