"""Updates a project's price file from the Price List, and reports which environments' prices that changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tritonstack.catalogue.price_file import ListedPrice, PriceFile, RegionPrices, hosting_price_of
from tritonstack.catalogue.prices import HostingPrice, carried_prices
from tritonstack.config import Environment
from tritonstack.errors import WorkFailedError
from tritonstack_capacity.price_list.query import HostingProduct, UnclearProductError, read_product


@dataclass(frozen=True, kw_only=True)
class Use:
    """One endpoint's instance type.

    Attributes:
        environment: its name.
        endpoint: its name in the environment.
        region: the environment's.
        instance_type: ``ml.g4dn.xlarge``.
        price: of the environment's file, else of ``prices.json``, else of the catalogue; None: nobody gives it.
    """

    environment: str
    endpoint: str
    region: str
    instance_type: str
    price: HostingPrice | None


def uses_of(environments: Iterable[Environment]) -> tuple[Use, ...]:
    """Every endpoint of the environments. Raises InputError where the project's price file is wrong."""
    return tuple(
        Use(
            environment=environment.environment,
            endpoint=endpoint.name,
            region=environment.region,
            instance_type=endpoint.instance_type,
            price=environment.price(endpoint.instance_type),
        )
        for environment in environments
        for endpoint in environment.endpoints
    )


SHOWN = 500
"""Characters of reasons, where every product has one."""

Kind = Literal["new", "changed", "unchanged", "not listed", "refused"]


@dataclass(frozen=True, kw_only=True)
class Change:
    """What an update means for one instance type in one region.

    Attributes:
        kind: ``not listed``: the Price List has no such product; what was known stays. ``refused``: it has one that is
            not clear; what was known stays.
        before: what readers of prices took until now, of the file or of the catalogue; None: nothing.
        after: what they take from now on.
        why: of ``refused``.
    """

    region: str
    instance_type: str
    kind: Kind
    before: HostingPrice | None
    after: HostingPrice | None
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Update:
    """The file's new prices.

    Attributes:
        prices: all of them.
        changes: by region and type; none of types that neither the list nor anybody else knows a price of.
        unreadable: documents that do not even tell what they are of, each with its region and the reason.
    """

    prices: PriceFile
    changes: tuple[Change, ...]
    unreadable: tuple[str, ...] = ()


def updated(old: PriceFile | None, answers: Mapping[str, Sequence[str]], *, types: Sequence[str]) -> Update:
    """The file after the Price List was asked.

    Regions that were not asked stay as they are. So does a type that the list has no longer, or not clearly: with the
    date of the list that it is from, and marked where it is gone.

    Args:
        old: the file's prices; None where there is no file.
        answers: region → documents.
        types: instance types that are looked for, beside those that the file has.

    Raises:
        WorkFailedError: no product of a region is one that its endpoints' instances are clearly billed by.
    """
    regions = dict(old.regions) if old is not None else {}
    changes: list[Change] = []
    unreadable: list[str] = []
    for region, documents in sorted(answers.items()):
        known = regions.get(region)
        read = _Read.of(documents, region=region)
        unreadable += [f"{region}: {why}" for why in read.nameless]
        # What the local AWS made up is nothing that a real list could lack.
        kept = known if known is not None and known.constructed == read.newest.constructed else None
        wanted = sorted({*types, *(kept.types if kept else ())})
        new = _region(kept, read, wanted=wanted)
        told = [_change(region, name, known=known, new=new, read=read) for name in wanted]
        changes += [change for change in told if change.kind != "not listed" or change.before is not None]
        regions[region] = new
    return Update(prices=PriceFile(regions=regions), changes=tuple(changes), unreadable=tuple(unreadable))


@dataclass(frozen=True, kw_only=True)
class _Read:
    """A region's documents, read: clear products and reasons by type, and reasons without one."""

    products: Mapping[str, Sequence[HostingProduct]]
    unclear: Mapping[str, Sequence[str]]
    nameless: Sequence[str]

    @classmethod
    def of(cls, documents: Sequence[str], *, region: str) -> _Read:
        products: dict[str, list[HostingProduct]] = {}
        unclear: dict[str, list[str]] = {}
        nameless: list[str] = []
        for text in documents:
            try:
                product = read_product(text, region=region)
            except UnclearProductError as error:
                name = error.instance_type
                (nameless if name is None else unclear.setdefault(name, [])).append(error.why)
                continue
            if product is not None:
                products.setdefault(product.instance_type, []).append(product)
        if not products:
            reasons = "; ".join((*nameless, *(why for whys in unclear.values() for why in whys)))
            raise WorkFailedError(
                f"none of the Price List's {len(documents)} products of {region} is clearly what an hour of an "
                f"endpoint's instance costs: nothing is written\n  {reasons[:SHOWN] or 'they are of other things'}"
            )
        return cls(products=products, unclear=unclear, nameless=nameless)

    @property
    def newest(self) -> HostingProduct:
        """Of the Price List that was published last."""
        every = (product for products in self.products.values() for product in products)
        return max(every, key=lambda product: (product.published, product.version))

    def refusal(self, name: str) -> str:
        """Why the price of a type is not clear; empty where it is, or where there is none."""
        found, reasons = self.products.get(name, ()), [*self.unclear.get(name, ())]
        if len(found) > 1:
            listed = ", ".join(f"SKU {each.sku} at {each.usd_per_hour.normalize():f} USD" for each in found)
            reasons.append(f"{len(found)} products: {listed}")
        return "; ".join(reasons)


def _region(known: RegionPrices | None, read: _Read, *, wanted: Iterable[str]) -> RegionPrices:
    newest = read.newest
    rows: dict[str, ListedPrice] = {}
    for name in wanted:
        found, refused = read.products.get(name, ()), read.refusal(name)
        if found and not refused:
            rows[name] = _row(found[0])
        elif known is not None and name in known.types:
            row = known.types[name]
            rows[name] = row.model_copy(
                update={"published": row.published or known.published, "listed": row.listed if refused else False}
            )
    return RegionPrices(published=newest.published, version=newest.version, types=rows)


def _row(product: HostingProduct) -> ListedPrice:
    return ListedPrice(
        usd_per_hour=float(product.usd_per_hour),
        sku=product.sku,
        usage_type=product.usage_type,
        effective=product.effective,
    )


def _change(region: str, name: str, *, known: RegionPrices | None, new: RegionPrices, read: _Read) -> Change:
    before, after = _price(region, name, known), _price(region, name, new)
    refused = read.refusal(name)
    kind: Kind
    if refused:
        kind = "refused"
    elif name not in read.products:
        kind = "not listed"
    elif before is None:
        kind = "new"
    else:
        kind = "unchanged" if after is not None and after.usd_per_hour == before.usd_per_hour else "changed"
    return Change(region=region, instance_type=name, kind=kind, before=before, after=after, why=refused)


def _price(region: str, name: str, prices: RegionPrices | None) -> HostingPrice | None:
    """What readers take: the file's, else the catalogue's."""
    if prices is not None and name in prices.types:
        return hosting_price_of(prices, prices.types[name])
    return carried_prices().get((region, name))
