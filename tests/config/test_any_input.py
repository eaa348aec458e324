"""Any content of an environment file gives settings or messages, never a traceback."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from annotated_types import Le
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.config.environment_file import environment_text, problems_of
from tests.config.test_settings import models_of
from tritonstack.catalogue import load_catalogue
from tritonstack.config import EndpointSettings, Environment, load_environment
from tritonstack.errors import InputError

CATALOGUE = load_catalogue()
GOOD: dict[str, Any] = yaml.safe_load(environment_text())
SINGLE_GPU = sorted(row.name for row in CATALOGUE.instances.values() if row.multi_model)
RELEASES = [release for release in CATALOGUE.releases_in("us-east-1") if release in CATALOGUE.releases]
NAMES = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?", fullmatch=True)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
TOP_FIELDS = st.sampled_from([*Environment.model_fields, "other"])
ENDPOINT_FIELDS = st.sampled_from([*EndpointSettings.model_fields, "other"])

ENVIRONMENTS = st.fixed_dictionaries(
    {
        "environment": st.just("local"),
        "account": st.from_regex(r"[0-9]{12}", fullmatch=True),
        "region": st.just("us-east-1"),
        "production": st.booleans(),
        "tags": st.dictionaries(st.text("abc :/", min_size=1, max_size=9), st.text("xyz+-@", max_size=9), max_size=4),
        "endpoints": st.lists(
            st.fixed_dictionaries(
                {
                    "name": NAMES,
                    "mode": st.just("multi-model"),
                    "release": st.sampled_from(RELEASES),
                    "instance_type": st.sampled_from(SINGLE_GPU),
                    "initial_instance_count": st.integers(2, 50),
                    "models": st.lists(NAMES, min_size=1, max_size=6, unique=True),
                    "container": st.fixed_dictionaries(
                        {
                            "log_verbose": st.booleans() | st.integers(0, 9),
                            "environment": st.dictionaries(
                                st.from_regex(r"[A-RT-Z][A-Z0-9_]{0,9}", fullmatch=True),
                                st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=200),
                                max_size=5,
                            ),
                        }
                    ),
                }
            ),
            min_size=1,
            max_size=3,
            unique_by=lambda endpoint: endpoint["name"],
        ),
    }
)


def load(document: object) -> Environment:
    """Loads ``document`` from a file called local.yaml."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "local.yaml"
        path.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
        return load_environment(path)


def load_or_messages(document: object) -> None:
    """Load ``document``; an InputError must name the place, what was found and what is allowed."""
    try:
        load(document)
    except InputError as error:
        for problem in error.problems:
            assert problem.file
            assert problem.found
            assert problem.allowed


@given(ENVIRONMENTS)
@settings(max_examples=60)
def test_good_settings_are_read_back_as_they_were_written(document: dict[str, Any]) -> None:
    environment = load(document)
    dumped = environment.model_dump(mode="json", exclude_unset=True)
    assert dumped == document
    assert load(environment.model_dump(mode="json")) == environment


@given(st.lists(st.tuples(ENDPOINT_FIELDS, JUNK), min_size=1, max_size=4), st.sets(ENDPOINT_FIELDS, max_size=3))
@settings(max_examples=100)
def test_junk_in_an_endpoints_fields_gives_messages(changes: list[tuple[str, Any]], removed: set[str]) -> None:
    document = copy.deepcopy(GOOD)
    endpoint = document["endpoints"][0] | dict(changes)
    document["endpoints"] = [{key: value for key, value in endpoint.items() if key not in removed}]
    load_or_messages(document)


@given(JUNK)
@settings(max_examples=60)
def test_any_document_gives_messages(document: Any) -> None:
    load_or_messages(document)


def test_a_field_with_a_bound_of_its_own_has_one_that_aws_takes() -> None:
    bounds: dict[str, Any] = {
        name: each.le
        for model in models_of(Environment)
        for name, field in model.model_fields.items()
        for each in field.metadata
        if isinstance(each, Le)
    }
    assert len(bounds) > 20
    assert {name for name, bound in bounds.items() if bound > 2**31 - 1} == {
        "response_cache_bytes",
        "shm_default_bytes",
        "shm_growth_bytes",
    }


@pytest.mark.parametrize("text", [".inf", "-.inf", ".nan", "1.0e+26", "1" + "0" * 26, "0x" + "f" * 900])
def test_a_count_that_is_no_count_is_refused_with_its_field(text: str, tmp_path: Path) -> None:
    scaling = f"scaling: {{minimum: 1, maximum: {text}, concurrency: {text}}}"
    fields = {problem.field for problem in problems_of(tmp_path, endpoint=scaling)}
    assert fields == {"endpoints[0].scaling.maximum", "endpoints[0].scaling.concurrency"}
