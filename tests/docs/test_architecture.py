"""The pictures and tables of the architecture page show what the templates and the imports say."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from scripts.documentation.architecture_page import access, packages_picture, serving_picture, stacks_picture
from scripts.documentation.import_graph import OUTBUILDINGS, SINGLE, import_graph, reachable
from scripts.documentation.stack_graph import SHOWN, SHOWN_SERVING, shown_environment, stack_graph
from tests.e2e.project import REPOSITORY


def test_every_resource_of_the_shown_stacks_is_counted_and_serving_types_are_all_drawn() -> None:
    types = stack_graph(shown_environment()).types
    for name, constructs in types.items():
        template = json.loads((REPOSITORY / "snapshots" / SHOWN / f"{name}.json").read_text())
        assert sum(sum(counted.values()) for counted in constructs.values()) == len(template["Resources"])
        assert f"<b>{name}</b><br/>{len(template['Resources'])} resources" in stacks_picture()
    serving = json.loads((REPOSITORY / "snapshots" / SHOWN / f"{SHOWN_SERVING}.json").read_text())
    for each in serving["Resources"].values():
        assert each["Type"].removeprefix("AWS::").replace("::", " ") in serving_picture()


def test_only_the_verification_may_invoke_and_only_the_activation_moves_records() -> None:
    found = access(shown_environment())

    def may(action: str) -> set[str]:
        return {who for allowed in found.values() for who, actions in allowed.items() if action in actions}

    assert may("sagemaker:InvokeEndpoint") == {f"{SHOWN_SERVING}/Verification"}
    assert may("ssm:PutParameter") == {f"{SHOWN_SERVING}/Activation"}


def test_imports_go_one_way() -> None:
    graph = import_graph()
    for name in graph:
        if name.startswith("tritonstack"):
            assert not {"app.py", "stacks", "constructs_lib"} & graph[name], name
        if name not in OUTBUILDINGS:
            assert not set(OUTBUILDINGS) & graph[name], name
    assert "stacks" not in graph["constructs_lib"]
    assert "app.py" not in reachable(graph, "stacks")


def test_no_packages_import_each_other_around_a_circle() -> None:
    graph = import_graph()
    assert [name for name in graph if name in reachable(graph, name)] == []


def test_the_graph_of_imports_is_that_of_python_itself() -> None:
    code = "import sys, tritonstack.config.loader; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, text=True, capture_output=True, check=True)
    packages = {".".join(name.split(".")[:2]) for name in loaded.stdout.split() if name.startswith("tritonstack.")}
    known = reachable(import_graph(), "tritonstack.config") | {"tritonstack.config"}
    assert {name for name in packages if name in import_graph()} <= known
    assert "tritonstack.catalogue" in packages
    assert SINGLE in known


@pytest.mark.parametrize("picture", [stacks_picture, serving_picture, packages_picture])
def test_a_picture_has_only_arrows_between_its_nodes(picture: object) -> None:
    assert callable(picture)
    lines = picture().splitlines()
    nodes = {found[1] for line in lines if (found := re.fullmatch(r' {4}(n\d+)\["[^"\[\]]+"\]', line))}
    arrows = [found for line in lines if (found := re.fullmatch(r" {4}(n\d+) -->(?:\|[^|]+\|)? (n\d+)", line))]
    assert len(lines) == len(nodes) + len(arrows) + 3
    assert arrows
    assert {each for found in arrows for each in found.groups()} <= nodes
