"""The project's ``prices.json``: its fields, reading and writing.

Apart from the prices, which the local AWS reads where pydantic is not installed.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from tritonstack.catalogue.prices import HostingPrice, Prices
from tritonstack.errors import InputError, Problem

PRICES_FILE = "prices.json"
"""The file in a project's folder that ``tritonstack capacity prices update`` writes."""
LIST = "AWS Price List"
SOURCE = f"{LIST}, AmazonSageMaker, component Hosting, on-demand terms, USD an hour"
HOSTING = "hosting"
TYPE_PATTERN = r"^ml\.[a-z0-9-]+\.[a-z0-9-]+$"
REGION_PATTERN = r"^[a-z]{2}(-[a-z]+)+-[0-9]+$"
DATE_PATTERN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
TIME_PATTERN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z$"
SHOWN = 80
"""Characters of what is in a field, in a message."""
DATE_LENGTH = len("2026-11-21")

TypeName = Annotated[str, StringConstraints(pattern=TYPE_PATTERN)]
RegionName = Annotated[str, StringConstraints(pattern=REGION_PATTERN)]
Time = Annotated[str, StringConstraints(pattern=TIME_PATTERN)]
Text = Annotated[str, StringConstraints(min_length=1)]


class _PriceFileModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ListedPrice(_PriceFileModel):
    """One instance type's price in one region."""

    usd_per_hour: float = Field(gt=0, allow_inf_nan=False, description="Of one instance.")
    sku: Text = Field(description="The product's stock keeping unit in the Price List.")
    usage_type: Text = Field(description="What a bill calls it (USE1-Host:ml.g4dn.xlarge).")
    effective: str = Field(pattern=DATE_PATTERN, description="Since when the Price List has this price.")
    published: Time | None = Field(
        default=None,
        description="Of an older Price List than the region's, where the newest did not give this price; else null.",
    )
    listed: bool = Field(default=True, description="False: the region's Price List has this type no longer.")


class RegionPrices(_PriceFileModel):
    """One region's prices, all of one Price List unless they state another."""

    published: Time = Field(description="When AWS published the Price List that was read.")
    version: Text = Field(description="The version of that Price List.")
    types: dict[TypeName, ListedPrice] = Field(description="Instance type → price.")


class PriceFile(_PriceFileModel):
    """The whole file."""

    schema_version: Literal[1] = Field(default=1, description="Of this format.")
    source: Text = Field(default=SOURCE, description="What was read.")
    currency: Literal["USD"] = Field(default="USD", description="Of every price.")
    regions: dict[RegionName, RegionPrices] = Field(description="Region → prices.")

    def prices(self) -> Prices:
        """Every price with its source and date."""
        return {
            (region, name): hosting_price_of(found, row)
            for region, found in self.regions.items()
            for name, row in found.types.items()
        }


def hosting_price_of(region: RegionPrices, row: ListedPrice) -> HostingPrice:
    """A row as readers of prices take it."""
    price = HostingPrice(
        usd_per_hour=row.usd_per_hour,
        component=HOSTING,
        source=LIST,
        date=(row.published or region.published)[:DATE_LENGTH],
    )
    if row.listed:
        return price
    return replace(
        price, source=f"{price.source}, listed no longer", kind="last on-demand list price, listed no longer,"
    )


def read_price_file(file: Path) -> PriceFile:
    """The file's prices. Raises InputError where it cannot be read or is no such file, with every problem."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        found = error.strerror if isinstance(error, OSError) and error.strerror else "no UTF-8 text"
        raise InputError([_problem(str(file), "", found)]) from error
    return parse_price_file(text, file=str(file))


def parse_price_file(text: str, *, file: str) -> PriceFile:
    """The prices in a text. ``file``: its name in messages. Raises InputError with every problem."""
    try:
        return PriceFile.model_validate_json(text)
    except ValidationError as error:
        problems = [_problem(file, ".".join(map(str, one["loc"])), _found(one)) for one in error.errors()]
        raise InputError(problems) from error


def project_prices(project: Path | None) -> Prices:
    """The prices of a project's own file; empty where there is no project or it has no such file.

    Raises InputError where the file is wrong, with every problem.
    """
    if project is None:
        return {}
    file = project / PRICES_FILE
    try:
        stat = file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return _read(file, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=8)
def _read(file: Path, _changed: int, _size: int) -> Prices:
    return read_price_file(file).prices()


def _found(one: Any) -> str:
    shown = one.get("input")
    message: str = one["msg"]
    brief = isinstance(shown, str | int | float | bool) and len(repr(shown)) <= SHOWN
    return f"{message}: {shown!r}" if brief else message


def _problem(file: str, field: str, found: str) -> Problem:
    return Problem(
        file=file,
        field=field,
        found=found,
        allowed="prices as `tritonstack capacity prices update` writes them (schemas/prices.schema.json)",
        advice="Take the file back from git, or delete it and run `tritonstack capacity prices update`.",
    )
