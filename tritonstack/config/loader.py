"""Loads environment files: settings, or every problem of the files at once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.releases import RELEASE_PATTERN
from tritonstack.config.alarms import AlarmSettings, check_prices, check_thresholds
from tritonstack.config.builds import BuildSettings, check_builds
from tritonstack.config.endpoint import Endpoint, check_endpoint
from tritonstack.config.environment import Environment, check_site
from tritonstack.config.fields import GREATEST_NUMBER, Site
from tritonstack.config.load_test import LoadTestSettings, check_load_test
from tritonstack.config.network import NetworkSettings, check_network
from tritonstack.config.rollout import Rollout
from tritonstack.config.scaling import Scaling
from tritonstack.config.yaml_loader import Model, YamlDocument, inner_model, is_within, read_yaml, validate, with_lines
from tritonstack.errors import InputError, Location, Problem, listing, nearest, refuse

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
"""Name of a model → stand-ins for its required fields that no check between fields objects to.

Of a file with faulty fields the rest is checked all the same: optional fields go back to their defaults, required ones
get a stand-in. Problems at a faulty place are left out, so that no message shows a stand-in.
"""
_ITEMS = {"models": "x{}", "additional_args": "--id=x{}"}
"""Lists whose items are checked one by one → the stand-in for a faulty one, so that the others keep their places."""
_WHOLE = (NetworkSettings, Rollout)
"""Models whose checks are between their fields: without one of them none can be made."""


def usable(raw: Any, model: type[Model], faulty: Set[Location], *, at: Location = ()) -> Model | None:
    """``raw`` as a ``model`` without what is ``faulty``, or None. ``at``: the location of ``raw`` in the file."""
    inside = {place[len(at) :] for place in faulty if place[: len(at)] == at}
    kept = None if () in inside else _kept(raw, model, inside)
    if kept is None:
        return None
    try:
        return model.model_validate(kept)
    except ValidationError:
        return None


def _kept(raw: Any, model: type[BaseModel], faulty: Set[Location]) -> dict[str, Any] | None:
    """The mapping ``raw`` without its faulty parts; None where a required one is gone for good."""
    if not isinstance(raw, dict):
        return None
    kept: dict[str, Any] = dict(STAND_INS.get(model.__name__, {}))
    if model is Scaling and faulty:  # which may be its target
        kept |= {"gpu_utilization": 50, **({"requests_per_second": 1} if ("requests_per_second",) in faulty else {})}
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


def _part(key: str, part: Any, inner: type[BaseModel] | None, faulty: Set[Location]) -> Any:
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


def load_environment(path: Path, *, text: str | None = None) -> Environment:
    """The settings in ``path``; with ``text``, those that the file would have with that content.

    Raises InputError with every problem: repeated keys, wrong types, unknown fields, and what the catalogue forbids.
    """
    environment, problems = _read(path, text=text)
    if environment is None or problems:
        raise InputError(problems)
    return environment


def load_environments(folder: Path) -> tuple[Environment, ...]:
    """The settings of every ``*.yaml`` in ``folder``, in the order of the files' names.

    Raises InputError with every problem of every file, or where the folder has no such file.
    """
    paths = sorted(folder.glob("*.yaml"))
    read = [_read(path) for path in paths]
    problems = [problem for _, found in read for problem in found]
    if not paths:
        problems.append(Problem(file=str(folder), found="no *.yaml file", allowed="one file for each environment"))
    refuse(problems)
    return tuple(environment for environment, _ in read if environment is not None)


def _read(path: Path, *, text: str | None = None) -> tuple[Environment | None, list[Problem]]:
    """The settings, where the fields have the right types, and every problem of the file."""
    if not os.path.lexists(path):
        return None, [_no_file(path)]
    try:
        document = read_yaml(path, text=text)
    except InputError as error:
        return None, list(error.problems)
    found = validate(document, Environment)
    checked = _cross_checks(document=document, faulty=found.faulty, path=path)
    problems = [*found.problems, *(problem for problem in checked if not is_within(problem.location, found.faulty))]
    environment = None if found.value is None else found.value.in_project(project_of(path))
    return environment, with_lines(problems, path, document=document)


def _no_file(path: Path) -> Problem:
    names = sorted(one.stem for one in path.parent.glob("*.yaml"))
    return Problem(
        file=str(path),
        found="no such file",
        allowed=f"an environment of {path.parent}: {listing(names, none='none there')}",
        advice=nearest(path.stem, names) if names else "work in a project's folder; tritonstack init FOLDER makes one",
    )


def project_of(path: Path) -> Path:
    """The project of an environment's file: the folder above its own."""
    return path.absolute().parent.parent


def _cross_checks(*, document: YamlDocument, faulty: Set[Location], path: Path) -> Iterator[Problem]:
    """Checks between fields. A faulty field is left out, so that its default or a stand-in holds."""
    value = document.value
    if not isinstance(value, dict):
        return

    def usable_field(field: str) -> Any:
        return None if (field,) in faulty else value.get(field)

    site = Site(
        environment=usable_field("environment"),
        account=usable_field("account"),
        region=usable_field("region"),
        production=usable_field("production"),
        catalogue=load_catalogue(),
    )
    yield from check_site(
        site=site,
        stem=path.stem,
        tags={key: text for key, text in (usable_field("tags") or {}).items() if ("tags", key) not in faulty},
        artifact_key=None if ("artifacts", "key_arn") in faulty else _mapping(usable_field("artifacts")).get("key_arn"),
    )
    builds = usable(value.get("builds", {}), BuildSettings, faulty, at=("builds",))
    if builds is not None:
        yield from check_builds(builds)
    network = usable(value.get("network"), NetworkSettings, faulty, at=("network",))
    if network is not None:
        yield from check_network(network=network, builds=builds, site=site)
    alarms = usable(value.get("alarms"), AlarmSettings, faulty, at=("alarms",))
    prices = {name: each for name, each in _mapping(usable_field("prices")).items() if ("prices", name) not in faulty}
    yield from check_prices(prices=prices, catalogue=site.catalogue)
    endpoints = value.get("endpoints")
    first: dict[str, int] = {}  # index of the first endpoint of a name
    known: dict[str, Endpoint] = {}
    for index, raw in enumerate(endpoints if isinstance(endpoints, list) else []):
        location: Location = ("endpoints", index)
        inside = {at[2:] for at in faulty if at[:2] == location}
        if not isinstance(raw, dict) or () in inside:
            continue
        endpoint, unusable = _usable_endpoint(
            raw=raw, faulty=inside, release=document.texts.get((*location, "release"))
        )
        if endpoint is None:
            continue
        if "name" not in unusable and first.setdefault(endpoint.name, index) != index:
            yield Problem(
                location=(*location, "name"),
                found=f"{endpoint.name}, as endpoints[{first[endpoint.name]}] is called already",
                allowed="a name that no other endpoint of the environment has",
            )
        yield from check_endpoint(endpoint=endpoint, location=location, site=site, unusable=unusable)
        if not unusable & {"mode", "instance_type"}:
            yield from check_thresholds(
                endpoint=endpoint,
                location=location,
                alarms=alarms,
                prices=prices,
                region=site.region,
                project=project_of(path),
            )
        if not unusable:
            known[endpoint.name] = endpoint
    load_test = usable(value.get("load_test"), LoadTestSettings, faulty, at=("load_test",))
    if load_test is not None:
        yield from check_load_test(
            load_test,
            endpoints=known,
            names=frozenset(first),
            catalogue=site.catalogue,
            network=network,
            builds=builds,
        )


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _usable_endpoint(
    *, raw: dict[str, Any], faulty: Set[Location], release: str | None
) -> tuple[Endpoint | None, frozenset[str]]:
    """The endpoint without its faulty fields, and the required fields that hold a stand-in.

    ``release``: as the file spells it. Without quotes it is a number, and the release is still clear.
    """
    if release is not None and ("release",) in faulty and re.fullmatch(RELEASE_PATTERN, release):
        raw, faulty = raw | {"release": release}, faulty - {("release",)}
    unusable = {field for field in STAND_INS["Endpoint"] if field not in raw or (field,) in faulty}
    return usable(raw, Endpoint, faulty), frozenset(unusable)
