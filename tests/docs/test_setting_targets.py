"""What each setting becomes: every setting has it, a change of it arrives there; and what templates never have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore.session
import pytest
import yaml

from scripts.documentation.api_members import OPERATIONS, Operation, is_property, rows
from scripts.documentation.setting_targets import Target, setting_targets
from scripts.documentation.settings_page import nested_models, sections
from tests.constructs_lib.templates import template_of
from tests.engines.engine_environments import write_models
from tests.stacks.engine_stages import stage_of
from tests.stacks.everything import stacks_of
from tritonstack.config import load_environment
from tritonstack.config.environment import Environment
from tritonstack.served import served_by

DATA = Path(__file__).with_name("setting_targets.yaml")
SERVICES = {
    "CreateInferenceRecommendationsJob": "sagemaker",
    "CreateModelPackage": "sagemaker",
    "CreateProcessingJob": "sagemaker",
}
CONVERTED = {
    "": {"dashboard"},
    "alarms.thresholds": {"cache_hit_percent", "loading_wait_ms"},  # a ratio, microseconds
    "artifacts": {"retain"},  # Delete, Retain
    "builds": {"on_deploy"},
    # the variant's name has the type without its dots; the count is a custom resource's, of the live fleet
    "endpoints[]": {
        "mode",
        "description",
        "instance_type",
        "instance_types",
        "initial_instance_count",
        "network_isolation",
    },
    "endpoints[].container": {"log_verbose"},
    "endpoints[].rollout": {"kind"},  # ALL_AT_ONCE
    # the target: requests a minute by the factor, percent by vCPUs or GPUs
    "endpoints[].scaling": {"requests_per_second", "safety_factor", "cpu_utilization", "gpu_memory"},
    "endpoints[].variants[]": {"model", "initial_instance_count"},
    "network.created": {"nat"},
    "network.imported": {"endpoints", "subnets", "security_group_ids"},  # read from SSM parameters
}
"""Settings whose value becomes another one: there a change is looked for, and not the value itself."""

NAMED_BY_CLOUDFORMATION = {"ModelName", "EndpointConfigName"}
"""Members that a template leaves to CloudFormation; the endpoint's names the configuration made."""

Templates = list[dict[str, Any]]


def changed() -> dict[str, dict[str, Any]]:
    """Name → an environment; ``plain`` leaves out what may be left out, the others set everything else."""
    read: dict[str, dict[str, Any]] = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    return read


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Templates]:
    """The templates of each of these environments."""
    made = {}
    for name, settings in changed().items():
        project = tmp_path_factory.mktemp(name)
        write_models(project)
        file = project / "local.yaml"
        file.write_text(yaml.safe_dump(settings))
        served = served_by(load_environment(file), project / "model_repos", file=file)
        made[name] = [template_of(stack) for stack in stacks_of(stage_of(served, project))]
    return made


def test_every_setting_has_what_it_becomes_and_nothing_else_has() -> None:
    places: dict[Any, str] = {}
    sections(Environment, "", places)
    fields = {
        (path, field.alias or name): bool(list(nested_models(field.annotation)))
        for model, path in places.items()
        for name, field in model.model_fields.items()
    }
    targets = setting_targets()
    missing = [each for each, has_section in fields.items() if not has_section and not targets.get(each)]
    assert missing == [], "scripts/documentation/setting_targets.yaml says what each becomes"
    assert sorted(targets.keys() - fields.keys()) == []


def test_a_member_of_a_request_is_one_of_the_services_model() -> None:
    session = botocore.session.get_session()
    for (section, field), targets in setting_targets().items():
        for target in targets:
            if target.is_request:
                operation = session.get_service_model(SERVICES[target.of]).operation_model(target.of)
                shape: Any = operation.input_shape  # botocore's types do not tell a list from a structure
                for step in target.path.replace("[]", "").split("."):
                    shape = shape.member if shape.type_name == "list" else shape
                    assert step in shape.members, f"{section}.{field}: {target.text}"
                    shape = shape.members[step]


def test_a_changed_setting_arrives_where_the_page_says(templates: dict[str, Templates]) -> None:
    environments, lost, tried = changed(), [], 0
    for (section, field), targets in setting_targets().items():
        for target in targets:
            if not target.is_property:
                continue
            before = values(templates["plain"], target)
            setters = [
                name for name in environments if name != "plain" and settings_of(environments[name], section, field)
            ]
            converted = field in CONVERTED.get(section, set())
            if not any(
                values(templates[name], target) != before
                and (
                    converted
                    or arrives(settings_of(environments[name], section, field), values(templates[name], target))
                )
                for name in setters
            ):
                lost.append(f"{section}.{field}: {target.text}" + ("" if setters else ": no environment sets it"))
            tried += 1
    assert lost == []
    assert tried > 100


@pytest.mark.parametrize("operation", [each for each in OPERATIONS if each.resource], ids=lambda each: each.name)
def test_templates_have_each_member_that_is_set_here_and_no_declined_one(
    operation: Operation, templates: dict[str, Templates]
) -> None:
    every = [template for of in templates.values() for template in of]
    here = {row.member.path for row in rows(operation) if not row.is_declined}
    declined = {row.member.path for row in rows(operation) if row.is_declined}
    found = {path for path in here | declined if values(every, Target(of=operation.resource, path=path, text=""))}
    assert found & declined == set()
    assert here - found <= NAMED_BY_CLOUDFORMATION
    assert [path for path in here if not is_property(operation.resource, path)] == []


def settings_of(environment: dict[str, Any], section: str, field: str) -> list[Any]:
    """Every value of a field in an environment; of an item of a list those of all items."""
    found: list[Any] = [environment]
    for step in filter(None, section.split(".")):
        below = [each[step.removesuffix("[]")] for each in found if each.get(step.removesuffix("[]"))]
        found = [item for each in below for item in each] if step.endswith("[]") else below
    return [each[field] for each in found if field in each]


def values(templates: Templates, target: Target) -> list[str]:
    """What a property, or an attribute such as DeletionPolicy, is in all resources of its type, as JSON."""
    found = []
    for template in templates:
        for resource in template["Resources"].values():
            if resource["Type"] == target.of:
                of = resource if target.path in resource else resource.get("Properties", {})
                found += [json.dumps(each, sort_keys=True) for each in inside(of, target.path)]
    return sorted(found)


def inside(value: Any, path: str) -> Iterator[Any]:
    """What ``a.b[].c`` leads to; ``SAGEMAKER_…`` and other names of one step have no dot."""
    step, _, rest = path.partition(".")
    name, is_list = step.removesuffix("[]"), step.endswith("[]")
    if not isinstance(value, dict) or name not in value:
        return
    items = value[name] if is_list and isinstance(value[name], list) else [value[name]]
    for item in items:
        if rest:
            yield from inside(item, rest)
        else:
            yield item


def arrives(settings: list[Any], found: list[str]) -> bool:
    """Whether one of the values stands among what was found; of a mapping or a list each of its values."""
    text = plain("".join(found))
    return any(all(plain(each) in text for each in leaves(value)) for value in settings)


def leaves(value: Any) -> Iterator[str]:
    """Every single value, as text."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from leaves(each)
    elif isinstance(value, bool):
        yield str(value).lower()
    else:
        yield f"{value:g}" if isinstance(value, float) else str(value)


def plain(text: str) -> str:
    """Letters and digits, so that ``least-outstanding`` and ``LEAST_OUTSTANDING`` are the same."""
    return re.sub(r"[^a-z0-9.]", "", text.lower())
