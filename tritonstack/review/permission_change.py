"""What a review says about a permission."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tritonstack.review.policies import SubjectKind


class Direction(StrEnum):
    """Where a permission goes."""

    WIDER = "wider"
    NARROWER = "narrower"
    OTHER = "other"
    """Changed, and neither holds the other; or without effect, because a Deny stands against it."""


@dataclass(frozen=True, kw_only=True)
class PermissionChange:
    """One statement about a permission.

    Attributes:
        kind: where it goes.
        stack: the stack's name in its environment.
        principal: whom the policy is about: the construct path of the role or of the resource.
        type: of that resource; None where it is not of the app.
        about: what the policy is to it.
        statement: what is other than before, a sentence without its subject: ``may now: s3:GetObject on …``.
        allows: whether statements that allow are meant; False for a Deny.
        who: principals of a trust policy or of a resource's policy; empty in an identity's.
        actions: sorted.
        resources: sorted; empty where the policy names none.
        conditions: tests that a request must pass.
        wildcards: what is broad in it, each with the reason why that is accepted, where a policy finding says it.
        other_accounts: accounts among the principals that are not the stack's.
        whole: whether the role or the resource itself comes or goes with it.
        logical_id: of the resource that the statement stands in, after the change or before it where it is gone.
        source: the property there, such as ``PolicyDocument.Statement[ReadArchives]``.
    """

    kind: Direction
    stack: str
    principal: str
    type: str | None
    about: SubjectKind
    statement: str
    allows: bool = True
    who: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    wildcards: tuple[str, ...] = ()
    other_accounts: tuple[str, ...] = ()
    whole: bool = False
    logical_id: str
    source: str

    @property
    def order(self) -> tuple[object, ...]:
        """A place in a report: by stack and subject, what widens first."""
        place = list(Direction).index(self.kind)
        return (self.stack, self.principal, self.about.value, place, self.statement, self.logical_id, self.source)
