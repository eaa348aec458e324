"""What of a faulty file can still be checked: its settings without the faulty fields, so that none hides another.

Optional fields go back to their defaults; required ones get a stand-in that no check between fields objects to, where
there is such a value. Findings at a faulty place are left out by the caller, and no message ever shows a stand-in.
"""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from tritonstack.catalogue import load_catalogue
from tritonstack.config.fields import GREATEST_NUMBER
from tritonstack.config.network import NetworkSettings
from tritonstack.config.rollout import Rollout
from tritonstack.config.scaling import Scaling
from tritonstack.config.type_errors import inner_model
from tritonstack.config.yaml_source import Location

STAND_INS: dict[str, dict[str, Any]] = {
    "Endpoint": {
        "name": "x",
        "mode": "multi-model",
        "release": next(iter(load_catalogue().releases)),
        "instance_type": next(iter(load_catalogue().instances)),
        "models": ["x"],
    },
    "Scaling": {"minimum": 1, "maximum": GREATEST_NUMBER},
    "Schedule": {"name": "x", "when": "at(2099-01-01T00:00:00)"},
    "DataCapture": {"percentage": 1},
    "TrafficPhase": {"initial_users": 1, "users_per_minute": 0, "seconds": 120},
    "Pipeline": {"account": "000000000000"},
    "PipelineSource": {"repository": "x/x"},
}
"""Name of a model → its required fields that have a stand-in: an app of environments alone loads no pipeline."""
_ITEMS = {"models": "x{}", "additional_args": "--id=x{}"}
"""Lists whose items are checked one by one: what stands in for a faulty one, so that the others keep their places."""
_WHOLE = (NetworkSettings, Rollout)
"""Models whose checks are between their fields: without one of them nothing can be said."""
_IN_PLACE_OF_A_TARGET = {"requests_per_second": {"requests_per_second": 1}, "concurrency": {"concurrency": 1}}
"""Of ``scaling``: what keeps it a scaling where that target is faulty; for all other fields a target of GPUs does."""

Model = TypeVar("Model", bound=BaseModel)


def usable(raw: Any, model: type[Model], faulty: set[Location], *, at: Location = ()) -> Model | None:
    """``raw``, which stands ``at`` a place of the file, as a ``model`` without what is ``faulty``; or None."""
    inside = {place[len(at) :] for place in faulty if place[: len(at)] == at}
    kept = None if () in inside else _kept(raw, model, inside)
    if kept is None:
        return None
    try:
        return model.model_validate(kept)
    except ValidationError:
        return None


def _kept(raw: Any, model: type[BaseModel], faulty: set[Location]) -> dict[str, Any] | None:
    """The mapping ``raw`` without its faulty parts; None where a required one is gone for good."""
    if not isinstance(raw, dict):
        return None
    kept: dict[str, Any] = dict(STAND_INS.get(model.__name__, {}))
    if model is Scaling:
        for key in sorted({str(place[0]) for place in faulty}):
            kept |= _IN_PLACE_OF_A_TARGET.get(key, {"gpu_utilization": 50})
    for key, part in raw.items():
        inside = {place[1:] for place in faulty if place[:1] == (key,)}
        if not inside:
            kept[key] = part
        elif () not in inside and key in model.model_fields:
            value = _part(key, part, inner_model(model.model_fields[key].annotation), inside)
            if value is None and model in _WHOLE:
                return None
            kept |= {} if value is None else {key: value}
        elif model in _WHOLE:
            return None
    required = {name for name, field in model.model_fields.items() if field.is_required()}
    return kept if required <= kept.keys() else None


def _part(key: str, part: Any, inner: type[BaseModel] | None, faulty: set[Location]) -> Any:
    """One field's value without what is faulty in it; None where nothing of it is of use."""
    if inner is not None and isinstance(part, list):
        items = [_kept(item, inner, {at[1:] for at in faulty if at[0] == i}) for i, item in enumerate(part)]
        return None if None in items else items
    if inner is not None:
        return _kept(part, inner, faulty)
    if isinstance(part, dict):
        return {name: value for name, value in part.items() if (name,) not in faulty}
    if isinstance(part, list) and key in _ITEMS:
        return [_ITEMS[key].format(i) if (i,) in faulty else item for i, item in enumerate(part)]
    return None
