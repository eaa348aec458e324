"""What an environment's endpoints cost an hour before and after a change, at their fewest and their most instances.

Everything is read from the templates: the variants' instance types and counts, the scalable targets and their scheduled
actions. Prices are the environment's own, then the catalogue's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from tritonstack.review.amounts import Amount, grows_by_more, relative, total
from tritonstack.review.change import EnvironmentChange, TrafficChange, Update
from tritonstack.review.fleets import Count, Fleet, Variant, fleets_of
from tritonstack.review.prices import Price, PriceBook, Prices
from tritonstack.review.snapshot import EnvironmentSnapshot

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
