"""The stand-in for Triton's tensorrt backend: profiles of instance groups against those of trtexec-stand-in's plan."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tritonstack.paths import environment_python
from tritonstack_local.library import library_path

PROGRAM = """
import json, sys, types
from types import SimpleNamespace

class Refused(Exception):
    pass

utils = types.ModuleType("triton_python_backend_utils")
utils.TritonModelException, utils.TritonError, utils.TRITON_STRING_TO_NUMPY = Refused, str, {}
sys.modules["triton_python_backend_utils"] = utils
from tritonstack.model_files import marked_plan
sys.modules["tritonstack_marked_plan"] = marked_plan
sys.path.insert(0, sys.argv[1] + "/tensorrt")
sys.path.insert(0, sys.argv[1] + "/common")
import model
groups = [{"profile": json.loads(sys.argv[2])}, {}]
try:
    model.refuse_other_profiles(SimpleNamespace(name="net", config={"instance_group": groups}), json.loads(sys.argv[3]))
except Refused as refused:
    print(refused)
"""
TWO = '{"profiles": [{}, {}]}'


@pytest.mark.parametrize(
    ("profiles", "header", "refused"),
    [
        ('["0", "1"]', TWO, ""),
        ("[]", TWO, ""),
        ('["0"]', "{}", ""),
        ('["0", "2"]', TWO, "optimization profile 2[2] for net. Expected optimization profile index range 0-1"),
        ('["1"]', "{}", "index range 0-0"),
    ],
)
def test_a_profile_that_the_plan_lacks_is_refused_as_by_triton(profiles: str, header: str, refused: str) -> None:
    backends = Path(str(library_path())) / "tritonstack_local/backends"
    command = [str(environment_python("backends")), "-c", PROGRAM, str(backends), profiles, header]
    done = subprocess.run(
        command, env={"PYTHONPATH": str(library_path())}, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert refused in done.stdout
    assert bool(done.stdout) == bool(refused)
