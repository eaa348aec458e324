"""Parts of a file of which some fields are wrong: what the others say is checked all the same."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError, create_model

from tritonstack.settings.findings import Finding

Part = TypeVar("Part", bound=BaseModel)


def whole(model: type[Part], raw: object) -> Part | None:
    """``raw`` as a ``model``; None where anything in it is wrong."""
    try:
        return model.model_validate(raw)
    except ValidationError:
        return None


def readable(model: type[Part], raw: object) -> Part | None:
    """``raw`` as a ``model`` without the fields that are wrong or missing; None where it is no mapping.

    To look at a field that it is without is an ``AttributeError``: see ``as_far_as_readable``.
    """
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        if not isinstance(raw, dict):
            return None
        wrong = {str(each["loc"][0]) for each in error.errors(include_url=False) if each["loc"]}
    rest = {name: value for name, value in raw.items() if name not in wrong}
    found = whole(_without_required(model), rest)
    if found is not None:
        for name in wrong:
            vars(found).pop(name, None)
    return found


def has(part: BaseModel, *fields: str) -> bool:
    """Whether those fields could be read."""
    return all(field in vars(part) for field in fields)


def as_far_as_readable(findings: Iterator[Finding]) -> Iterator[Finding]:
    """A check's findings, until it looks at a field that could not be read."""
    try:
        yield from findings
    except AttributeError as error:
        if not (isinstance(error.obj, BaseModel) and error.name in type(error.obj).model_fields):
            raise


@cache
def _without_required(model: type[Part]) -> type[Part]:
    required: dict[str, Any] = {
        name: (field.annotation, None) for name, field in model.model_fields.items() if field.is_required()
    }
    return create_model(model.__name__, __base__=model, **required)
