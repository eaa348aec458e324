"""Known vulnerabilities of Triton: which release fixes each, and where that was read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tritonstack.catalogue.data_file import read_data
from tritonstack.catalogue.releases import release_order


@dataclass(frozen=True, kw_only=True)
class Vulnerability:
    """One vulnerability of the server, a backend or SageMaker's front end.

    Attributes:
        id: the CVE, or a name of this catalogue for a fix of the front end that has none.
        fixed_in: the first release without it.
        since: the first release with it, or None (every earlier one).
        score: CVSS 3.1 by NVIDIA, or None where there is none.
        about: what it is, in a few words.
        source: where it was read.
    """

    id: str
    fixed_in: str
    since: str | None
    score: float | None
    about: str
    source: str

    def in_release(self, release: str) -> bool:
        """Whether ``release`` (``YY.MM``) has it."""
        order = release_order(release)
        return order < release_order(self.fixed_in) and not (self.since and order < release_order(self.since))


def read_vulnerabilities() -> tuple[Vulnerability, ...]:
    """Those of ``data/vulnerabilities.json``, the most severe first; those without a score last."""
    document = read_data("vulnerabilities.json")
    bulletins = document["bulletins"]
    found = [
        *(_cve(name, row, bulletins[row["bulletin"]]) for name, row in document["cves"].items()),
        *(
            Vulnerability(
                id=name, fixed_in=row["fixed_in"], since=None, score=None, about=row["about"], source=row["evidence"]
            )
            for name, row in document["front_end"].items()
        ),
    ]
    return tuple(sorted(found, key=lambda each: (-(each.score or 0), each.id)))


def _cve(name: str, row: dict[str, Any], bulletin: dict[str, str]) -> Vulnerability:
    number = row["bulletin"]
    return Vulnerability(
        id=name,
        fixed_in=row["fixed_in"],
        since=row.get("since"),
        score=row["score"],
        about=row["about"],
        source=f"NVIDIA security bulletin {number} of {bulletin['date']}: "
        f"https://github.com/NVIDIA/product-security/blob/main/{bulletin['folder']}/{number}.md",
    )
