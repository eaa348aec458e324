"""Prices, amounts, and the cost of an environment's endpoints before and after a change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from tritonstack.catalogue.prices import PRICES_FILE, hosting_price, service_price, service_prices
from tritonstack.catalogue.prices import Prices as ListedPrices
from tritonstack.errors import InputError
from tritonstack.review.change import EnvironmentChange, TrafficChange, Update
from tritonstack.review.settings import settings_file
from tritonstack.review.snapshot import EnvironmentSnapshot
from tritonstack.review.stored import contents_of
from tritonstack.review.traffic import Count, Fleet, Variant, fleets_of

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


def relative(before: Amount, after: Amount) -> Decimal | None:
    """The change as a part of what it was: 0.1 for a tenth more. None from zero, or with an unknown part."""
    if before == after:
        return Decimal(0)
    old, new = before.usd_per_hour, after.usd_per_hour
    return None if not old or new is None else (new - old) / old


def grows_by_more(before: Amount, after: Amount, *, percent: Decimal) -> bool | None:
    """Whether the amount grows by more than ``percent`` of what it was; from zero, anything is more.

    True or False where it is so whatever the unknown prices are (all above 0); None where it depends on them.
    """
    factor = 1 + percent / 100
    parts = [after.known - factor * before.known]
    for name in before.unknown.keys() | after.unknown.keys():
        parts.append(after.unknown.get(name, 0) - factor * before.unknown.get(name, 0))
    if all(each <= 0 for each in parts):
        return False
    return True if all(each >= 0 for each in parts) else None


def number(usd: Decimal) -> str:
    """An amount to a hundredth of a cent, with cents always: ``0.7364``, ``1.50``."""
    whole, _, digits = str(usd.quantize(_DIGITS, rounding=ROUND_HALF_UP)).partition(".")
    return f"{whole}.{digits.rstrip('0').ljust(_CENTS, '0')}"


def moved_text(before: Amount, after: Amount) -> str:
    """An amount before and after, with the change in per cent where it is known."""
    if before == after:
        return f"{after.text} (no change)"
    part = relative(before, after)
    old = before.text.removesuffix(UNIT) if after.text.endswith(UNIT) else before.text
    return f"{old} → {after.text}{'' if part is None else f' ({percent_text(part)})'}"


def percent_text(part: Decimal) -> str:
    """A part as a signed percentage, to a tenth: 0.1 is ``+10 %``."""
    tenths = (abs(part) * 1000).quantize(Decimal(1), rounding=ROUND_HALF_UP)
    text = f"{tenths // 10}" + (f".{tenths % 10}" if tenths % 10 else "")
    sign = "" if not part else "-" if part < 0 else "+"
    return f"{sign}{text} %" if tenths or not part else f"{sign}0.1 % or less"


# Prices: the environment's own, then the project's price file, then the catalogue's.
_HOURS = {"hour": Decimal(1), "month": Decimal(HOURS_A_MONTH)}
"""The folder of the environment files, which may have ``prices:``."""


@dataclass(frozen=True, kw_only=True)
class Price:
    """USD an hour of one instance, above 0, and its source in words."""

    usd_per_hour: Decimal
    source: str


@dataclass(frozen=True, kw_only=True)
class Rate:
    """USD, above 0, for a unit (``hour``, ``month``, ``GB``, …) of anything but instances.

    ``note``: what a reader must know about the source; may be empty.
    """

    usd: Decimal
    unit: str
    note: str = ""

    @property
    def usd_per_hour(self) -> Decimal:
        """Of a unit of time."""
        return self.usd / _HOURS[self.unit]

    @property
    def text(self) -> str:
        """``0.045 USD/GB``, with the note."""
        return f"{number(self.usd)} USD/{self.unit}" + (f" ({self.note})" if self.note else "")


@dataclass(frozen=True, kw_only=True)
class PriceBook:
    """The prices of one environment at one commit."""

    # instance type, or name of another price → USD, of the environment file
    overrides: Mapping[str, Decimal] = field(default_factory=dict)
    listed: ListedPrices = field(default_factory=dict)  # of the project's price file
    # why the project's own prices cannot be read; None where they can. Every price is then unknown, for the project
    # might have its own
    unreadable: str | None = None

    def price(self, instance_type: str, region: str | None) -> Price | str:
        """The price of an instance type (``ml.g4dn.xlarge``) in a region, or the reason why it is unknown."""
        if self.unreadable is not None:
            return self.unreadable
        if instance_type in self.overrides:
            return Price(usd_per_hour=self.overrides[instance_type], source="the environment's file")
        if region is None:
            return f"the region of {instance_type} is decided when it is deployed"
        listed = hosting_price(instance_type=instance_type, region=region, own=self.listed)
        if listed is None:
            return (
                f"no price of {instance_type} in {region}: `tritonstack capacity prices update`, or "
                f"`prices: {{{instance_type}: …}}` in the environment's file"
            )
        return Price(usd_per_hour=Decimal(str(listed.usd_per_hour)), source=listed.short)

    def rate(self, name: str, region: str | None) -> Rate | None:
        """The price of anything but instances (``nat-gateway``) in a region; None where it is unknown."""
        if self.unreadable is not None or region is None:
            return None
        if name in self.overrides and name in service_prices():
            return Rate(usd=self.overrides[name], unit=next(iter(service_prices()[name].values())).unit)
        listed = service_price(name=name, region=region)
        return None if listed is None else Rate(usd=Decimal(str(listed.usd)), unit=listed.unit, note=listed.note)


@dataclass(frozen=True, kw_only=True)
class Prices:
    """The prices at the base and in the working tree."""

    before: PriceBook = field(default_factory=PriceBook)
    after: PriceBook = field(default_factory=PriceBook)


def prices_of(environment: str, *, base: str | None, project: Path) -> Prices:
    """The prices of an environment at the base and in the working tree.

    Args:
        environment: its name, which is its file's.
        base: the commit; None where there is nothing to compare with.
        project: the project's folder, in a git repository that has ``base``.
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
    from tritonstack.catalogue.price_file import parse_price_file  # noqa: PLC0415 - most projects have no such file

    try:
        return replace(book, listed=parse_price_file(listed, file=files[1]).prices())
    except InputError as error:
        found = "; ".join(" ".join(f"{problem.field}: {problem.found}".split()) for problem in error.problems)
        return replace(book, unreadable=book.unreadable or f"the prices in {files[1]} cannot be read: {found}")


def price_book(text: str, *, file: str) -> PriceBook:
    """The prices that an environment file sets. ``file``: its name, for the reason where it cannot be read."""
    import yaml  # noqa: PLC0415 - only here

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


# Endpoints.
_BOTH_FLEETS = {Update.ALL_AT_ONCE, Update.CANARY, Update.LINEAR, Update.UNKNOWN}


@dataclass(frozen=True, kw_only=True)
class EndpointCost:
    """One endpoint on one side."""

    variants: tuple[Variant, ...]  # in the template's order
    minimum: Amount  # at its fewest instances
    maximum: Amount  # at its most, schedules included
    reasons: tuple[str, ...]  # why parts are unknown, each once


@dataclass(frozen=True, kw_only=True)
class CostChange:
    """One endpoint, the unchanged ones included: totals need them."""

    stack: str  # its stack's name in the environment
    endpoint: str  # its SageMaker name, after the change or before it for a removed one
    before: EndpointCost | None  # None for a new endpoint
    after: EndpointCost | None  # None for a removed one
    sentences: tuple[str, ...]  # why a part is unknown, and what both fleets cost in an update

    @property
    def changed(self) -> bool:
        """Whether an amount changes, or what is unknown of it."""
        sides = [None if each is None else (each.minimum, each.maximum) for each in (self.before, self.after)]
        return sides[0] != sides[1]


@dataclass(frozen=True, kw_only=True)
class CostTotals:
    """All endpoints of an environment, at the fewest and at the most instances."""

    minimum_before: Amount
    minimum_after: Amount
    maximum_before: Amount
    maximum_after: Amount

    def grow_by_more(self, percent: Decimal) -> bool | None:
        """Whether the cost grows by more than ``percent`` at either end; None where that depends on unknown prices."""
        ends = (
            grows_by_more(self.minimum_before, self.minimum_after, percent=percent),
            grows_by_more(self.maximum_before, self.maximum_after, percent=percent),
        )
        return True if True in ends else None if None in ends else False

    @property
    def sentence(self) -> str:
        """Both ends, before and after, on one line; once where they are the same."""
        minimum = moved_text(self.minimum_before, self.minimum_after)
        if (self.minimum_before, self.minimum_after) == (self.maximum_before, self.maximum_after):
            return minimum
        return f"at minimum {minimum}; at maximum {moved_text(self.maximum_before, self.maximum_after)}"

    @property
    def moved(self) -> str:
        """The ends that change, before and after."""
        minimum = "", self.minimum_before, self.minimum_after
        maximum = "at maximum ", self.maximum_before, self.maximum_after
        ends = [minimum] if minimum[1:] == maximum[1:] else [("at minimum ", *minimum[1:]), maximum]
        return "; ".join(f"{end}{moved_text(old, new)}" for end, old, new in ends if old != new)


def cost_changes(
    before: EnvironmentSnapshot | None,
    after: EnvironmentSnapshot | None,
    *,
    prices: Prices,
    change: EnvironmentChange | None = None,
) -> tuple[CostChange, ...]:
    """Every endpoint of either side, by stack and logical id.

    Args:
        before: the environment at the base; None for a new one.
        after: the environment now; None for a removed one.
        prices: of both sides.
        change: what ``compare`` returns of it; with None, the time during an update is left out.
    """
    old = {(each.stack, each.logical_id): each for each in fleets_of(before)}
    new = {(each.stack, each.logical_id): each for each in fleets_of(after)}
    traffic = {
        (stack.name, each.logical_id): each for stack in (change.stacks if change else ()) for each in stack.traffic
    }
    found = []
    for key, present in sorted({**old, **new}.items()):
        was = _cost(old[key], prices.before) if key in old else None
        now = _cost(new[key], prices.after) if key in new else None
        moves = traffic.get(key)
        # A rolling update adds one batch at a time: no figure.
        both = was is not None and now is not None and moves is not None and moves.update in _BOTH_FLEETS
        during = was.maximum + now.maximum if both and was and now else None
        found.append(
            CostChange(
                stack=present.stack,
                endpoint=present.endpoint,
                before=was,
                after=now,
                sentences=tuple(_sentences(present.endpoint, was, now, during, moves)),
            )
        )
    return tuple(found)


def cost_totals(changes: Iterable[CostChange]) -> CostTotals:
    """The sums of both sides."""
    sides = [(each.before, each.after) for each in changes]
    old = [each for each, _ in sides if each is not None]
    new = [each for _, each in sides if each is not None]
    return CostTotals(
        minimum_before=total(each.minimum for each in old),
        minimum_after=total(each.minimum for each in new),
        maximum_before=total(each.maximum for each in old),
        maximum_after=total(each.maximum for each in new),
    )


def _cost(fleet: Fleet, book: PriceBook) -> EndpointCost:
    if not fleet.variants:
        reason = f"the configuration of {fleet.endpoint} lies outside its template"
        unknown = Amount(unknown={reason: 1})
        return EndpointCost(variants=(), minimum=unknown, maximum=unknown, reasons=(reason,))
    minimum, maximum, reasons = Amount(), Amount(), []
    for variant in fleet.variants:
        key = f"{variant.instance_type or f'{fleet.endpoint}: {variant.reason}'} in {fleet.region}"
        price: Price | str = variant.reason
        if variant.instance_type is not None:
            price = book.price(variant.instance_type, fleet.region)
        counts = [each for each in (variant.minimum, variant.maximum) if isinstance(each, str)]
        uncounted = f"how many instances {variant.name} of {fleet.endpoint} has: {counts[0]}" if counts else ""
        reasons += [reason for reason in (price if isinstance(price, str) else uncounted,) if reason]
        minimum += _amount(variant.minimum, price, key=key, uncounted=uncounted)
        maximum += _amount(variant.maximum, price, key=key, uncounted=uncounted)
    return EndpointCost(
        variants=fleet.variants, minimum=minimum, maximum=maximum, reasons=tuple(dict.fromkeys(reasons))
    )


def _amount(count: Count, price: Price | str, *, key: str, uncounted: str) -> Amount:
    if isinstance(count, str):
        return Amount(unknown={f"{uncounted} of {key}": 1})
    if count == 0:
        return Amount()
    return Amount(known=count * price.usd_per_hour) if isinstance(price, Price) else Amount(unknown={key: count})


def _sentences(
    name: str, old: EndpointCost | None, new: EndpointCost | None, during: Amount | None, traffic: TrafficChange | None
) -> Iterator[str]:
    for reason in dict.fromkeys(reason for side in (old, new) if side is not None for reason in side.reasons):
        yield f"Unknown of {name}: {reason}."
    if during is not None:
        run = "may run" if traffic is not None and traffic.touched is None else "run"
        yield f"While {name} is updated both fleets {run}: at most {during.text}."
    elif traffic is not None and traffic.update is Update.ROLLING:
        yield f"While {name} is updated one more batch of instances runs beside the fleet."
