"""What AWS's documentation says of properties, read by a person: ``settled_by_hand.yaml``."""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from tests.review.corpus.side import FOLDER

UPDATES = {"Replacement": True, "No interruption": False, "Some interruptions": False}


@dataclass(frozen=True, kw_only=True)
class Settled:
    """One property.

    Attributes:
        type: the resource type, which its page is called after.
        file: the page's source in AWS's repository.
        property: the property.
        replaces: whether the page says that an update requires replacement.
        case: the case of the corpus that changes it; None where none does.
        at: the resource there: stack and construct path.
    """

    type: str
    file: str
    property: str
    replaces: bool
    case: str | None = None
    at: str | None = None

    def __str__(self) -> str:
        """``AWS::SageMaker::Model.VpcConfig network on``."""
        return f"{self.type}.{self.property} {self.case or ''}".rstrip()


def settled_by_hand() -> tuple[Settled, ...]:
    """Every property, page by page."""
    return tuple(
        Settled(
            type=page["page"],
            file=page["file"],
            property=each["property"],
            replaces=UPDATES[each["update"]],
            case=each.get("case"),
            at=each.get("at"),
        )
        for page in yaml.safe_load((FOLDER / "settled_by_hand.yaml").read_text())
        for each in page["properties"]
    )
