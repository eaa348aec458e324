"""Permissions in plain words: sentences without their subject, which is the role or the resource."""

from __future__ import annotations

from tritonstack.review.conditions import words
from tritonstack.review.permission_groups import Group
from tritonstack.review.policies import Subject, SubjectKind

_BROAD = ("AdministratorAccess", "PowerUserAccess", "FullAccess", "IAMFullAccess")


def sentence(
    group: Group, *, subject: Subject, came: bool, denied: bool, whole: bool, others: tuple[str, ...] | None
) -> str:
    """What comes or goes.

    Args:
        group: the statement.
        subject: whom it is about.
        came: whether it holds from now on; False: no longer.
        denied: whether a Deny stands against all of it.
        whole: whether the subject comes or goes with it.
        others: the conditions under which the same is said on the other side; None where it is not.
    """
    first = group.grants[0]
    conditions = words(first.conditions)
    if others is not None:
        if came is first.allows:
            verb = "may now under weaker conditions" if first.allows else "is denied under other conditions"
        else:
            verb = "may only under stricter conditions now" if first.allows else "is denied under other conditions"
        was, now = (others, conditions) if came else (conditions, others)
        return _who(group, subject, verb) + _what(group) + f" — before: {_when(was)}; now: {_when(now)}"
    verb = _verb(allows=first.allows, came=came)
    text = (_whole(group, subject, came=came) if whole else _who(group, subject, verb)) + _what(group)
    if conditions:
        text += f", if {' and '.join(conditions)}"
    if denied:
        text += " (without effect: a Deny stands against it)"
    return text


def changed(group: Group, *, subject: Subject, was: tuple[str, ...], now: tuple[str, ...]) -> str:
    """What holds under conditions that changed, of which neither is stricter."""
    verb = "may under other conditions" if group.grants[0].allows else "is denied under other conditions"
    return _who(group, subject, verb) + _what(group) + f" — before: {' or '.join(was)}; now: {' or '.join(now)}"


def broad_managed_policy(name: str) -> tuple[str, ...]:
    """What is broad in one of AWS's own managed policies, by its name."""
    last = name.rpartition("/")[2]
    return (f"managed policy {last} is broad by its name",) if last.endswith(_BROAD) else ()


def _verb(*, allows: bool, came: bool) -> str:
    return {
        (True, True): "may now",
        (True, False): "may no longer",
        (False, True): "is denied from now on",
        (False, False): "is no longer denied",
    }[allows, came]


def _whole(group: Group, subject: Subject, *, came: bool) -> str:
    """What a subject that comes or goes says of itself."""
    word = "new" if came else "gone"
    if group.grants[0].allows:
        return f"{word}: {_who(group, subject, 'may' if came else 'could')}"
    return f"{word}, with a Deny: {_who(group, subject, 'may not' if came else 'could not')}"


def _who(group: Group, subject: Subject, verb: str) -> str:
    """The verb, with who it is that may, where the subject is a resource or a role to assume."""
    names = ", ".join(group.principals)
    act = f"{verb} assume it" if subject.kind is SubjectKind.TRUST and verb.startswith(("may", "could")) else verb
    return f"{names} {act}: ".lstrip()


def _what(group: Group) -> str:
    actions = ", ".join(group.actions)
    return actions if group.resources == ("*",) and group.principals else f"{actions} on {', '.join(group.resources)}"


def _when(conditions: tuple[str, ...]) -> str:
    return " and ".join(conditions) or "always"
