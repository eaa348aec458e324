"""What the committed environments cost, in docs/prices.md and docs/review.md: from snapshots and the catalogue."""

from __future__ import annotations

from collections.abc import Mapping

from scripts.documentation.markdown import code, filled, table
from tritonstack.paths import repository_path
from tritonstack.review.costs.cost_table import table_of
from tritonstack.review.costs.price_book import prices_of
from tritonstack.review.document import CostTableEntry
from tritonstack.review.stored import read_snapshots
from tritonstack.review.views.wording import COST_COLUMNS, cost_cells

LOCAL = "local"
"""The environment of the local AWS, which bills nobody."""
SHOWN = "prod"
"""The environment whose whole table docs/review.md shows."""


def prices_page() -> str:
    """docs/prices.md as it is, with a row for each environment made anew."""
    return filled("docs/prices.md", {"costs": _environments})


def review_page() -> str:
    """docs/review.md as it is, with the table of one environment made anew."""
    return filled("docs/review.md", {"costs": _whole})


def _tables() -> Mapping[str, CostTableEntry]:
    project = repository_path(".")
    environments = read_snapshots(repository_path("snapshots")).environments
    return {
        name: table_of(each, book=prices_of(name, base=None, project=project).after)
        for name, each in environments.items()
        if name != LOCAL
    }


def _environments() -> str:
    rows = [[code(name), each.idle_after.text, each.most_after.text] for name, each in _tables().items()]
    return table(["environment", "idle", "at most"], rows)


def _whole() -> str:
    return table(COST_COLUMNS, cost_cells(_tables()[SHOWN], whole=True))
