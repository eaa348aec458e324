"""Loads environment files: settings, or every problem of the files at once.

Rules between fields are checked once every field has the right type.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tritonstack.config.alarms import check_prices, check_thresholds
from tritonstack.config.builds import check_builds
from tritonstack.config.endpoint import check_endpoint
from tritonstack.config.environment import Environment, check_environment_fields
from tritonstack.config.fields import Site, repeated
from tritonstack.config.load_test import check_load_test
from tritonstack.config.network import check_network
from tritonstack.config.triton_release import check_image_build
from tritonstack.config.yaml_loader import read_yaml, validate, with_lines
from tritonstack.errors import InputError, Problem, collecting, listing, nearest, refuse


def load_environment(path: Path, *, text: str | None = None) -> Environment:
    """The settings in ``path``; with ``text``, those that the file would have with that content.

    Raises InputError with every problem: repeated keys, wrong types, unknown fields; else what the catalogue forbids.
    """
    if not os.path.lexists(path):
        raise InputError([_no_file(path)])
    document = read_yaml(path, text=text)
    found = validate(document, Environment)
    if found.value is None:
        raise InputError(with_lines(found.problems, path, document=document))
    environment = found.value.in_project(project_of(path))
    problems = [*found.problems, *_broken_rules(environment, path)]
    refuse(with_lines(problems, path, document=document))
    return environment


def load_environments(folder: Path) -> tuple[Environment, ...]:
    """The settings of every ``*.yaml`` in ``folder``, in the order of the files' names.

    Raises InputError with every problem of every file, or where the folder has no such file.
    """
    environments: list[Environment] = []
    problems: list[Problem] = []
    paths = sorted(folder.glob("*.yaml"))
    for path in paths:
        with collecting(problems):
            environments.append(load_environment(path))
    if not paths:
        problems.append(Problem(file=str(folder), found="no *.yaml file", allowed="one file for each environment"))
    refuse(problems)
    return tuple(environments)


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


def _broken_rules(environment: Environment, path: Path) -> Iterator[Problem]:
    site = Site(environment=environment.environment, region=environment.region, production=environment.production)
    yield from check_environment_fields(environment, stem=path.stem)
    yield from check_builds(environment.builds)
    if environment.network is not None:
        yield from check_network(environment=environment, network=environment.network, site=site)
    yield from check_prices(environment.prices)
    yield from repeated((each.name for each in environment.endpoints), location=("endpoints",))
    for index, endpoint in enumerate(environment.endpoints):
        yield from check_endpoint(endpoint=endpoint, location=("endpoints", index), site=site)
        if endpoint.image_build is not None:
            place = ("endpoints", index, "image")
            yield from check_image_build(image=endpoint.image_build, location=place, project=project_of(path))
        yield from check_thresholds(
            endpoint=endpoint,
            location=("endpoints", index),
            alarms=environment.alarms,
            prices=environment.prices,
            region=environment.region,
            project=project_of(path),
        )
    if environment.load_test is not None:
        yield from check_load_test(
            environment.load_test,
            endpoints=environment.endpoints,
            network=environment.network,
            builds=environment.builds,
        )
