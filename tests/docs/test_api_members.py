"""The page of API members: every member of botocore's has its row, and each row's setting or argument exists."""

from __future__ import annotations

import copy
import inspect
import re
from typing import Any

import botocore.session
import pytest
from botocore.model import ServiceModel
from pydantic import ValidationError

from scripts.documentation import api_members_page
from scripts.documentation.api_members import OPERATIONS, Entry, Operation, entries, members, missing, rows
from scripts.documentation.commands_page import command_of
from scripts.documentation.settings_page import sections
from tritonstack.client import ModelClient
from tritonstack.config.environment import Environment


def shape_with(operation: Operation, structure: str, member: str) -> Any:
    """The request's shape, as a later botocore would have it: with one more text in a structure."""
    session = botocore.session.get_session()
    model = copy.deepcopy(session.get_component("data_loader").load_service_model(operation.service, "service-2"))
    model["shapes"][structure]["members"][member] = {"shape": "EndpointName"}
    return ServiceModel(model, operation.service).operation_model(operation.name).input_shape


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
def test_every_member_of_the_service_model_is_in_one_row(operation: Operation) -> None:
    assert missing(operation) == [], "scripts/documentation/api_members.yaml, or setting_targets.yaml, says what it is"
    listed = [value.path for row in rows(operation) for value in row.member.values]
    every = [value.path for each in members(operation.input_shape) for value in each.values]
    assert listed == every
    assert len(set(every)) == len(every) > 0


@pytest.mark.parametrize(
    ("operation", "structure", "path"),
    [
        ("CreateModel", "CreateModelInput", "Added"),
        ("CreateModel", "ContainerDefinition", "PrimaryContainer.Added"),
        ("CreateEndpointConfig", "ProductionVariant", "ProductionVariants[].Added"),
        ("CreateEndpointConfig", "DataCaptureConfig", "DataCaptureConfig.Added"),
        ("UpdateEndpoint", "AutoRollbackConfig", "DeploymentConfig.AutoRollbackConfiguration.Added"),
        ("InvokeEndpoint", "InvokeEndpointInput", "Added"),
    ],
)
def test_a_member_that_botocore_adds_is_missing_until_it_gets_its_row(
    operation: str, structure: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = next(each for each in OPERATIONS if each.name == operation)
    shape = shape_with(of, structure, "Added")
    assert missing(of, shape) == [path]
    monkeypatch.setattr(Operation, "input_shape", property(lambda self: shape if self is of else members))
    monkeypatch.setattr(api_members_page, "OPERATIONS", [of])
    with pytest.raises(ValueError, match=re.escape(f"{of.section} lacks {path}")):
        api_members_page.api_members_page()


def test_a_structure_that_has_itself_below_it_ends() -> None:
    shapes = {
        "Tree": {"type": "structure", "members": {"Name": {"shape": "Text"}, "Below": {"shape": "Trees"}}},
        "Trees": {"type": "list", "member": {"shape": "Tree"}},
        "Text": {"type": "string"},
    }
    model = ServiceModel({"metadata": {}, "operations": {}, "shapes": shapes}, "tree")
    found = members(model.shape_for("Tree"), within=frozenset({"Tree"}))
    assert [each.path for each in found] == ["Name", "Below[]"]


def test_no_entry_is_of_a_member_that_is_gone_or_that_a_setting_has() -> None:
    used: dict[str, set[int]] = {}
    for operation in OPERATIONS:
        used.setdefault(operation.section, set()).update(id(row.entry) for row in rows(operation))
    assert sorted(entries()) == sorted(used)
    stale = [
        (section, path)
        for section, of in entries().items()
        for path, each in of.items()
        if id(each) not in used[section]
    ]
    assert stale == [], "scripts/documentation/api_members.yaml: remove them"


def test_each_setting_is_one_of_the_environment_file() -> None:
    places: dict[Any, str] = {}
    sections(Environment, "", places)
    fields = {
        (path, field.alias or name) for model, path in places.items() for name, field in model.model_fields.items()
    }
    named = {place for operation in OPERATIONS for row in rows(operation) for place in row.settings}
    assert named - fields == set()
    assert len(named) > 50


def test_each_argument_is_one_of_the_client_or_the_command() -> None:
    arguments = [each for of in entries().values() for entry in of.values() for each in entry.argument]
    for argument in arguments:
        if of_client := re.fullmatch(r"ModelClient\.(\w+)\((\w+)=\)", argument):
            assert of_client[2] in inspect.signature(getattr(ModelClient, of_client[1])).parameters, argument
        else:
            _, command, option = argument.split()
            options = [name for each in command_of(command).params for name in (*each.opts, each.human_readable_name)]
            assert option in options, argument
    assert len(arguments) > 5


@pytest.mark.parametrize(
    "entry", [{}, {"declined": ""}, {"declined": "why", "made": "how"}, {"setting": ["a"], "argument": ["b"]}]
)
def test_an_entry_is_one_of_settings_arguments_made_or_a_reason(entry: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="one of these"):
        Entry.model_validate(entry)
