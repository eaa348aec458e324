"""Base class of all settings models, types of their fields, and lists for editors to complete from."""

from __future__ import annotations

import dataclasses
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

from annotated_types import Le
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from tritonstack.config.patterns import (
    ACCOUNT_PATTERN,
    ENVIRONMENT_PATTERN,
    TAG_KEY_PATTERN,
    TAG_VALUE_PATTERN,
    VARIABLE_PATTERN,
)
from tritonstack.config.yaml_loader import YamlDocument, validate
from tritonstack.errors import InputError, Location, Problem
from tritonstack.naming import NAME_PATTERN

MAXIMUM_NAME = 63
"""SageMaker's limit for the names of endpoints, configs, variants and models."""


GREATEST_NUMBER = 2**31 - 1
"""AWS's APIs take counts, days and seconds as 32-bit integers (botocore's models), targets and thresholds as doubles of
up to 2^360, which no figure here comes near."""
LEAST_NUMBER = 1e-9
"""Below it a number other than zero is a slip of the pen; Application Auto Scaling refuses targets below 2^-360."""


_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Control, format (zero-width, bidirectional), surrogate, and separators of lines and paragraphs."""


if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)  # it has no public name


class _Constructor(ModelMetaclass):
    """Turns a wrong argument into the same InputError as a wrong field of a file, in place of pydantic's own error."""

    def __call__(cls, *args: Any, **arguments: Any) -> Any:  # noqa: N805 - a metaclass
        try:
            return super().__call__(*args, **arguments)
        except ValidationError:
            problems = validate(YamlDocument(value=arguments), cast("type[BaseModel]", cls)).problems
        raise InputError([dataclasses.replace(each, file=f"{cls.__name__}(…)") for each in problems])


class SettingsModel(BaseModel, metaclass=_Constructor):
    """Settings are typed strictly (``"1"`` is no number, ``1`` is no text), closed to unknown fields, and immutable.

    Every number is finite and not beyond ``GREATEST_NUMBER``, unless its field has a bound of its own; no text and no
    key has an invisible character (the values of a mapping may: a container's variables are its own affair).
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @field_validator("*", mode="after")
    @classmethod
    def _sound(cls, value: Any, info: ValidationInfo) -> Any:
        for text in value if isinstance(value, dict | tuple) else (value,):
            _check_text(text)
        field = cls.model_fields[info.field_name or ""]
        if not any(isinstance(each, Le) for each in field.metadata):
            for number in value.values() if isinstance(value, dict) else (value,):
                _check_number(number)
        return value


def _check_text(text: object) -> None:
    for sign in text if isinstance(text, str) else "":
        if not sign.isprintable() and sign not in "\n\t" and unicodedata.category(sign) in _UNSEEN:
            code = f"U+{ord(sign):04X}"
            raise PydanticCustomError(
                "unseen", "a text without control and invisible characters ({code})", {"code": code}
            )


def _check_number(number: object) -> None:
    if isinstance(number, bool) or not isinstance(number, int | float) or number == 0:
        return
    if not LEAST_NUMBER <= abs(number) <= GREATEST_NUMBER:
        least = "" if isinstance(number, int) else f"{LEAST_NUMBER:g} or more, and "
        raise PydanticCustomError("number_range", "{range}", {"range": f"{least}{GREATEST_NUMBER} or less"})


VpcId = Annotated[str, Field(pattern=r"^vpc-[0-9a-f]+$")]
SubnetId = Annotated[str, Field(pattern=r"^subnet-[0-9a-f]+$")]
SecurityGroupId = Annotated[str, Field(pattern=r"^sg-[0-9a-f]+$")]
OwnerAccount = Annotated[
    str | None,
    Field(
        pattern=ACCOUNT_PATTERN,
        description="The account that owns these subnets, in quotes, where it shares them (AWS RAM): the roles' "
        "policies name it in the subnets' ARNs. null: the environment's own.",
    ),
]
Boundary = Annotated[
    str | None,
    Field(
        pattern=r"^arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/\S+$",
        description="ARN of the policy that bounds every role made here, or null.",
    ),
]
RolePath = Annotated[
    str | None,
    Field(
        max_length=512,
        pattern=r"^/([A-Za-z0-9_.,+=@-]+/)+$",
        description="Path of every role made here (/team/), where the account demands one; null: /.",
    ),
]
Name = Annotated[str, Field(pattern=NAME_PATTERN, max_length=MAXIMUM_NAME)]
"""Lower-case letters, digits and hyphens, no hyphen at either end."""

EnvironmentName = Annotated[str, Field(pattern=ENVIRONMENT_PATTERN, max_length=MAXIMUM_NAME)]
"""As ``Name``, with a letter first and two characters at least: so begin the names of CDK stages and stacks."""

TagKey = Annotated[str, Field(pattern=TAG_KEY_PATTERN)]
TagValue = Annotated[str, Field(pattern=rf"^$|{TAG_VALUE_PATTERN}", max_length=256)]

VariableName = Annotated[str, Field(pattern=VARIABLE_PATTERN, max_length=1024)]
VariableValue = Annotated[str, Field(max_length=1024)]


def choices(values: Iterable[str]) -> dict[str, Any]:
    """JSON Schema's ``enum`` for a text field whose values are in the catalogue, so that editors complete them."""
    return {"enum": list(values)}


def repeated(names: Iterable[str], *, location: Location) -> Iterator[Problem]:
    """The names of a list, which is at ``location``, that are in it more than once."""
    for name, count in Counter(names).items():
        if count > 1:
            yield Problem(location=location, found=f"{name} {count} times", allowed="each once")


@dataclass(frozen=True, kw_only=True)
class Site:
    """Where an endpoint is deployed; None where a construct has it only at deployment."""

    environment: str | None
    region: str | None
    production: bool
