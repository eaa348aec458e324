"""Cost of an environment's endpoints before and after a change, from the prices of either side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from tritonstack.catalogue.prices import PRICES_FILE, hosting_price, service_price, service_prices
from tritonstack.catalogue.prices import Prices as ListedPrices
from tritonstack.errors import InputError
from tritonstack.review.change import EnvironmentChange, TrafficChange, Update
from tritonstack.review.fleets import Count, Fleet, Variant, fleets_of
from tritonstack.review.snapshot import EnvironmentSnapshot
from tritonstack.review.stored import contents_of

HOURS_A_MONTH = 730
"""Of 365 days in twelve parts, as AWS's own estimates have it."""
_DIGITS = Decimal("0.0001")
_CENTS = 2


@dataclass(frozen=True, kw_only=True)
class Amount:
    """USD an hour.

    Attributes:
        known: the sum of the parts whose price is known.
        unknown: what is not known → how many times it is in the sum, never 0. Equal names are the same price.
    """

    known: Decimal = Decimal(0)
    unknown: Mapping[str, int] = field(default_factory=dict)

    @property
    def usd_per_hour(self) -> Decimal | None:
        """The whole sum; None where a part of it is unknown."""
        return None if self.unknown else self.known

    @property
    def text(self) -> str:
        """The sum in words: ``1.472 USD/hour``, or ``at least 0.736 USD/hour, plus 2 unknown``."""
        if not self.unknown:
            return f"{number(self.known)} USD/hour"
        count = len(self.unknown)
        return f"at least {number(self.known)} USD/hour, plus {count} unknown" if self.known else "unknown"

    def __add__(self, other: Amount) -> Amount:
        names = sorted(self.unknown.keys() | other.unknown.keys())
        unknown = {name: self.unknown.get(name, 0) + other.unknown.get(name, 0) for name in names}
        return Amount(known=self.known + other.known, unknown=unknown)


NOTHING = Amount()


def total(amounts: Iterable[Amount]) -> Amount:
    """The sum; nothing of none."""
    return sum(amounts, NOTHING)


def relative(before: Amount, after: Amount) -> Decimal | None:
    """The change as a part of what it was: 0.1 for a tenth more.

    None where a part is unknown, unless both sides are the same, and where it was nothing and no longer is.
    """
    if before == after:
        return Decimal(0)
    old, new = before.usd_per_hour, after.usd_per_hour
    return None if not old or new is None else (new - old) / old


def grows_by_more(before: Amount, after: Amount, *, percent: Decimal) -> bool | None:
    """Whether the amount grows by more than ``percent`` of what it was.

    Whatever the unknown prices are, all of them above 0: True, False; None where it depends on them. From nothing,
    anything is more.
    """
    factor = 1 + percent / 100
    known = after.known - factor * before.known
    parts = [
        after.unknown.get(name, 0) - factor * before.unknown.get(name, 0)
        for name in before.unknown.keys() | after.unknown.keys()
    ]
    if known <= 0 and all(each <= 0 for each in parts):
        return False
    return True if known >= 0 and all(each >= 0 for each in parts) else None


def number(usd: Decimal) -> str:
    """An amount as people read it: to a hundredth of a cent, and cents always."""
    whole, _, digits = str(usd.quantize(_DIGITS, rounding=ROUND_HALF_UP)).partition(".")
    return f"{whole}.{digits.rstrip('0').ljust(_CENTS, '0')}"


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
        listed = hosting_price(instance_type=instance_type, region=region, own=self.listed)
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


# Everything is read from the templates: the variants' instance types and counts, the scalable targets and their
# scheduled actions. Prices are the environment's own, then the catalogue's.
_BOTH_FLEETS = {Update.ALL_AT_ONCE, Update.CANARY, Update.LINEAR, Update.UNKNOWN}


@dataclass(frozen=True, kw_only=True)
class VariantCost:
    """One variant of an endpoint.

    Attributes:
        variant: type and counts.
        price: of one instance; None where it is not known.
        reason: why not; empty where it is.
        minimum: at its fewest instances.
        maximum: at its most.
    """

    variant: Variant
    price: Price | None
    reason: str
    minimum: Amount
    maximum: Amount


@dataclass(frozen=True, kw_only=True)
class EndpointCost:
    """One endpoint on one side.

    Attributes:
        variants: in the template's order.
        minimum: at its fewest instances.
        maximum: at its most, schedules included.
        reasons: why parts are unknown, each once.
    """

    variants: tuple[VariantCost, ...]
    minimum: Amount
    maximum: Amount
    reasons: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CostChange:
    """One endpoint, the unchanged ones included: totals need them.

    Attributes:
        stack: its stack's name in the environment.
        endpoint: its SageMaker name, of the side that has it last.
        before: None where it is new.
        after: None where it goes.
        during: at its most while the deployment runs both fleets; None where it runs no second one.
        sentences: what changes, and why what is unknown is; none where nothing does and all is known.
    """

    stack: str
    endpoint: str
    before: EndpointCost | None
    after: EndpointCost | None
    during: Amount | None
    sentences: tuple[str, ...]

    @property
    def changed(self) -> bool:
        """Whether an amount changes, as far as amounts are known, or what is unknown of it."""
        sides = [None if each is None else (each.minimum, each.maximum) for each in (self.before, self.after)]
        return sides[0] != sides[1]


@dataclass(frozen=True, kw_only=True)
class CostTotals:
    """All endpoints of an environment, or of several environments.

    Attributes:
        minimum_before: at the fewest instances, before the change.
        minimum_after: likewise after it.
        maximum_before: at the most instances.
        maximum_after: likewise after it.
    """

    minimum_before: Amount
    minimum_after: Amount
    maximum_before: Amount
    maximum_after: Amount

    @property
    def at_minimum(self) -> Decimal | None:
        """The change at the fewest instances as a part of what it was; None where that is not known."""
        return relative(self.minimum_before, self.minimum_after)

    @property
    def at_maximum(self) -> Decimal | None:
        """The change at the most instances as a part of what it was; None where that is not known."""
        return relative(self.maximum_before, self.maximum_after)

    def grow_by_more(self, percent: Decimal) -> bool | None:
        """Whether the cost grows by more than ``percent``, at the fewest or at the most instances.

        None where that depends on prices that are not known.
        """
        told = (
            grows_by_more(self.minimum_before, self.minimum_after, percent=percent),
            grows_by_more(self.maximum_before, self.maximum_after, percent=percent),
        )
        return True if True in told else None if None in told else False

    @property
    def sentence(self) -> str:
        """Both ends, before and after, on one line."""
        return _ends((self.minimum_before, self.maximum_before), (self.minimum_after, self.maximum_after))


def cost_changes(
    before: EnvironmentSnapshot | None,
    after: EnvironmentSnapshot | None,
    *,
    prices: Prices,
    change: EnvironmentChange | None = None,
) -> tuple[CostChange, ...]:
    """Every endpoint of either side, by stack and logical id.

    Args:
        before: the environment at the base; None where it is new.
        after: the environment now; None where it goes.
        prices: of both sides.
        change: what ``compare`` says of it, for the time when an update runs two fleets; None: nothing is told of that.
    """
    old = {(each.stack, each.logical_id): each for each in fleets_of(before)}
    new = {(each.stack, each.logical_id): each for each in fleets_of(after)}
    traffic = {
        (stack.name, each.logical_id): each for stack in (change.stacks if change else ()) for each in stack.traffic
    }
    return tuple(
        _change(old.get(key), new.get(key), prices, traffic.get(key)) for key in sorted(old.keys() | new.keys())
    )


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


def _change(before: Fleet | None, after: Fleet | None, prices: Prices, traffic: TrafficChange | None) -> CostChange:
    present = after or before
    assert present is not None  # noqa: S101 - the caller's keys are those of the two sides
    old = None if before is None else _cost(before, prices.before)
    new = None if after is None else _cost(after, prices.after)
    during = _during(old, new, traffic)
    return CostChange(
        stack=present.stack,
        endpoint=present.endpoint,
        before=old,
        after=new,
        during=during,
        sentences=tuple(_sentences(present.endpoint, old, new, during, traffic)),
    )


def _cost(fleet: Fleet, book: PriceBook) -> EndpointCost:
    variants = tuple(_variant(each, fleet, book) for each in fleet.variants)
    reasons = [each.reason for each in variants if each.reason]
    minimum, maximum = total(each.minimum for each in variants), total(each.maximum for each in variants)
    if not variants:
        elsewhere = f"the configuration of {fleet.endpoint} lies outside its template"
        minimum = maximum = Amount(unknown={elsewhere: 1})
        reasons = [elsewhere]
    return EndpointCost(variants=variants, minimum=minimum, maximum=maximum, reasons=tuple(dict.fromkeys(reasons)))


def _variant(variant: Variant, fleet: Fleet, book: PriceBook) -> VariantCost:
    price = variant.reason if variant.instance_type is None else book.price(variant.instance_type, fleet.region)
    key = f"{fleet.endpoint}: {variant.reason}" if variant.instance_type is None else variant.instance_type
    counts = [each for each in (variant.minimum, variant.maximum) if isinstance(each, str)]
    uncounted = f"how many instances {variant.name} of {fleet.endpoint} has: {counts[0]}" if counts else ""
    return VariantCost(
        variant=variant,
        price=price if isinstance(price, Price) else None,
        reason=price if isinstance(price, str) else uncounted,
        minimum=_amount(variant.minimum, price, key=f"{key} in {fleet.region}", uncounted=uncounted),
        maximum=_amount(variant.maximum, price, key=f"{key} in {fleet.region}", uncounted=uncounted),
    )


def _amount(count: Count, price: Price | str, *, key: str, uncounted: str) -> Amount:
    if isinstance(count, str):
        return Amount(unknown={f"{uncounted} of {key}": 1})
    if count == 0:
        return Amount()
    return Amount(known=count * price.usd_per_hour) if isinstance(price, Price) else Amount(unknown={key: count})


def _during(old: EndpointCost | None, new: EndpointCost | None, traffic: TrafficChange | None) -> Amount | None:
    """At most, while two fleets run; of a rolling update no figure is told, for it adds one batch at a time."""
    if old is None or new is None or traffic is None:
        return None
    return old.maximum + new.maximum if traffic.update in _BOTH_FLEETS else None


def _sentences(
    name: str,
    old: EndpointCost | None,
    new: EndpointCost | None,
    during: Amount | None,
    traffic: TrafficChange | None,
) -> Iterable[str]:
    if old is None and new is not None:
        yield f"{name} is new: {_range(new)}."
    elif new is None and old is not None:
        yield f"{name} goes: {_range(old)} less."
    elif old is not None and new is not None and (old.minimum, old.maximum) != (new.minimum, new.maximum):
        yield f"{name}: {_ends((old.minimum, old.maximum), (new.minimum, new.maximum))}."
    reasons = dict.fromkeys(reason for side in (old, new) if side is not None for reason in side.reasons)
    for reason in reasons:
        yield f"Unknown: {reason}."
    if during is not None:
        until = "may run" if traffic is not None and traffic.touched is None else "run"
        yield f"While it is updated both fleets {until}: at most {during.text}."
    elif traffic is not None and traffic.update is Update.ROLLING:
        yield "While it is updated one more batch of instances runs beside the fleet."


def _range(cost: EndpointCost) -> str:
    if cost.minimum == cost.maximum:
        return cost.minimum.text
    return f"{cost.minimum.text} at minimum, {cost.maximum.text} at maximum"


def _ends(before: tuple[Amount, Amount], after: tuple[Amount, Amount]) -> str:
    """Both ends, (minimum, maximum), before and after; once where they are the same."""
    minimum, maximum = (moved_text(old, new) for old, new in zip(before, after, strict=True))
    one = before[0] == before[1] and after[0] == after[1]
    return minimum if one else f"at minimum {minimum}; at maximum {maximum}"


def moved_text(before: Amount, after: Amount) -> str:
    """An amount before and after, with the change in per cent where it is known."""
    if before == after:
        return f"{after.text} (no change)"
    part = relative(before, after)
    told = "" if part is None else f" ({percent_text(part)})"
    return f"{before.text} → {after.text}{told}"


def percent_text(part: Decimal) -> str:
    """A part as a signed percentage, to a tenth: 0.1 is ``+10 %``."""
    tenths = (abs(part) * 1000).quantize(Decimal(1), rounding=ROUND_HALF_UP)
    text = f"{tenths // 10}" + (f".{tenths % 10}" if tenths % 10 else "")
    sign = "" if not part else "-" if part < 0 else "+"
    return f"{sign}{text} %" if tenths or not part else f"{sign}0.1 % or less"
