"""What an instance costs an hour on either side of a change: the project's own prices, then the catalogue's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from tritonstack.catalogue.prices import PRICES_FILE, carried_prices, service_price, service_prices
from tritonstack.catalogue.prices import Prices as ListedPrices
from tritonstack.errors import InputError
from tritonstack.review.amounts import HOURS_A_MONTH, number
from tritonstack.review.git import contents_of

_HOURS = {"hour": Decimal(1), "month": Decimal(HOURS_A_MONTH)}
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
class Rate:
    """USD for a unit of something beside instances.

    Attributes:
        usd: above 0.
        unit: ``hour``, ``month``, ``GB``, …
        note: what a reader must know of the source; empty where nothing is.
    """

    usd: Decimal
    unit: str
    note: str = ""

    @property
    def usd_per_hour(self) -> Decimal:
        """Of one that is billed by time, used or not."""
        return self.usd / _HOURS[self.unit]

    @property
    def text(self) -> str:
        """``0.045 USD/GB``, with the note."""
        return f"{number(self.usd)} USD/{self.unit}" + (f" ({self.note})" if self.note else "")


@dataclass(frozen=True, kw_only=True)
class PriceBook:
    """The prices of one environment at one commit.

    Attributes:
        overrides: instance type → USD an hour, which go before all others.
        listed: of the project's price file, which go before the catalogue's.
        unreadable: why the project's own prices are not known; None where they are. No price is told then, for the
            project might have had another.
    """

    overrides: Mapping[str, Decimal] = field(default_factory=dict)
    listed: ListedPrices = field(default_factory=dict)
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
        key = (region, instance_type)
        listed = self.listed.get(key) or carried_prices().get(key)
        if listed is None:
            return (
                f"no price of {instance_type} in {region}: `tritonstack capacity prices update`, or "
                f"`prices: {{{instance_type}: …}}` in the environment's file"
            )
        return Price(usd_per_hour=Decimal(str(listed.usd_per_hour)), source=listed.short)

    def rate(self, name: str, region: str | None) -> Rate | None:
        """The price of something beside instances (``nat-gateway``) in a region; None where it is not known."""
        if self.unreadable is not None or region is None:
            return None
        listed = service_price(name=name, region=region)
        own = self.overrides.get(name)
        if own is not None and name in service_prices():
            return Rate(usd=own, unit=next(iter(service_prices()[name].values())).unit)
        return None if listed is None else Rate(usd=Decimal(str(listed.usd)), unit=listed.unit, note=listed.note)


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
    files = (f"{folder}/{environment}.yaml", PRICES_FILE)
    texts = [_text(project / name) for name in files]
    after = _book(texts[0], texts[1], files=files)
    if base is None:
        return Prices(after=after)
    old = contents_of([(base, name) for name in files], repository=project)
    before = _book(old[0], old[1], files=[f"{base[:12]}:{name}" for name in files])
    return Prices(before=before, after=after)


def _text(file: Path) -> str | None:
    return file.read_text(encoding="utf-8") if file.is_file() else None


def _book(settings: str | None, listed: str | None, *, files: Sequence[str]) -> PriceBook:
    """The prices of an environment's file and of the price file; ``files``: their names."""
    book = PriceBook() if settings is None else price_book(settings, file=files[0])
    if listed is None:
        return book
    from tritonstack.catalogue.price_file import parse_price_file  # noqa: PLC0415 - most projects have no such file

    try:
        return replace(book, listed=parse_price_file(listed, file=files[1]).prices())
    except InputError as error:
        found = "; ".join(" ".join(f"{problem.field}: {problem.found}".split()) for problem in error.problems)
        return replace(book, unreadable=book.unreadable or f"the prices in {files[1]} cannot be read: {found}")


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
