"""A project of its own for the tests: environments and small models in a temporary folder, and the real CLI."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = REPOSITORY / ".envs" / "main" / "bin" / "tritonstack"
AWS_CLI = REPOSITORY / ".envs" / "main" / "bin" / "aws"

ON_THE_ENDPOINT = 'os.environ.get("SAGEMAKER_MULTI_MODEL") == "true"'
"""In a model's program: true on a multi-model endpoint, and false in a build's proof, which passes it."""


@dataclass(frozen=True)
class Project:
    """A folder with ``environments/`` and ``model_repos/``, and a local AWS's state beside them."""

    root: Path

    @property
    def variables(self) -> dict[str, str]:
        """What the command line is started with: this project, this state, nothing of the caller's AWS."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return {
            **inherited,
            "TRITONSTACK_PROJECT": str(self.root),
            "TRITONSTACK_HOME": str(self.root / ".local"),
            "COLUMNS": "200",
        }

    def run(self, *arguments: str, expect: int = 0, timeout: float = 400) -> subprocess.CompletedProcess[str]:
        """Run ``tritonstack`` with these arguments and demand the exit code ``expect``."""
        return self.execute([str(PROGRAM), *arguments], expect=expect, timeout=timeout)

    def execute(
        self, command: Sequence[str], *, expect: int = 0, timeout: float = 120, variables: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run any command in the project's folder and demand the exit code ``expect``."""
        result = subprocess.run(
            list(command),
            cwd=self.root,
            env={**self.variables, **(variables or {})},
            text=True,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
        shown = f"$ {' '.join(command)}\n{result.stdout}\n{result.stderr}"
        assert result.returncode == expect, f"exit code {result.returncode}, expected {expect}\n{shown}"
        return result

    def write(self, path: str, content: str) -> Path:
        """Write one file of the project, its indentation taken off."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(dedent(content).lstrip("\n"))
        return target

    def add_python_model(self, name: str, *, execute: str, answer_to_3: float, initialize: str = "pass") -> None:
        """Add a model of Triton's own python backend: FP32 ``x`` [1] in, FP32 ``y`` [1] out.

        Args:
            name: folder, model and archive.
            execute: an expression over ``x`` (a NumPy array), the answer.
            answer_to_3: its value where x is 3: the sample's answer, which the build proves.
            initialize: statements for ``initialize``.
        """
        folder = f"model_repos/{name}"
        self.write(
            f"{folder}/{name}/config.pbtxt",
            f"""
            name: "{name}"
            backend: "python"
            max_batch_size: 8
            input [ {{ name: "x" data_type: TYPE_FP32 dims: [ 1 ] }} ]
            output [ {{ name: "y" data_type: TYPE_FP32 dims: [ 1 ] }} ]
            instance_group [ {{ count: 1 kind: KIND_CPU }} ]
            """,
        )
        self.write(
            f"{folder}/{name}/1/model.py",
            f'''
            """A test's model."""
            import os
            import time

            import numpy as np
            import triton_python_backend_utils as pb_utils


            class TritonPythonModel:
                def initialize(self, args):
                    {initialize}

                def execute(self, requests):
                    return [self.answer(request) for request in requests]

                def answer(self, request):
                    x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
                    y = np.asarray({execute}, dtype=np.float32)
                    return pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor("y", y)])
            ''',
        )
        self.write(
            f"{folder}/recipe.yaml",
            """
            description: A model of the tests.
            kind: python
            sample: {request: sample/request.json, answer: sample/answer.json, tolerance: 1.0e-6}
            """,
        )
        request = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [3.0]}]}
        answer = {"outputs": [{"name": "y", "datatype": "FP32", "shape": [1, 1], "data": [answer_to_3]}]}
        self.write(f"{folder}/sample/request.json", json.dumps(request))
        self.write(f"{folder}/sample/answer.json", json.dumps(answer))


def environment_yaml(*, name: str, endpoints: Sequence[str], retain: bool = False) -> str:
    """An environment file of the tests; each endpoint is a YAML mapping in flow form."""
    lines = [
        f"environment: {name}",
        'account: "123456789012"',
        "region: us-east-1",
        "production: false",
        f"artifacts: {{retain: {str(retain).lower()}}}",
        "endpoints:",
        *(f"  - {endpoint}" for endpoint in endpoints),
    ]
    return "\n".join(lines) + "\n"
