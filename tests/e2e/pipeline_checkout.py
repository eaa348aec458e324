"""A checkout as a pipeline's builds find it, its builds run as processes, and the credentials that CodeBuild serves."""

from __future__ import annotations

import http.server
import json
import shlex
import shutil
import subprocess
import threading
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.project import REPOSITORY, Project, environment_yaml
from tritonstack_local import ACCOUNT, REGION
from tritonstack_local.aws import LocalAws

CONNECTION = f"arn:aws:codeconnections:{REGION}:{ACCOUNT}:connection/11111111-2222-3333-4444-555555555555"
LINKED = (
    ".envs", "constructs_lib", "lambda", "node_modules", "package.json", "pyproject.toml", "requirements", "schemas",
    "scripts", "stacks", "tritonstack",
    "tritonstack_capacity", "tritonstack_local",
)  # fmt: skip
"""What of this repository a build works with; app.py is copied, for it looks beside itself."""
PHASE_SECONDS = 600
LOAD_TEST = f"""load_test:
  recommender:
    phases: [{{initial_users: 2, users_per_minute: 2, seconds: {PHASE_SECONDS}}}]
    duration_seconds: {PHASE_SECONDS}
    poll_seconds: 1
  gate: {{p95_ms: 1000}}
"""


@dataclass(frozen=True)
class Ran:
    """One build."""

    project: str
    code: int
    said: str


class Checkout:
    """This repository with environments, models and a pipeline of the tests."""

    def __init__(self, project: Project, aws: LocalAws, *, name: str) -> None:
        """``name``: of the pipeline; its environments are ``<name>-dev`` and ``<name>-live``."""
        self.project, self.aws, self.name = project, aws, name
        self.root = project.root
        self.dev, self.live = f"{name}-dev", f"{name}-live"
        self.role = ""  # of the build that runs
        for each in LINKED:
            (self.root / each).symlink_to(REPOSITORY / each)
        for each in ("app.py", "cdk.json"):
            shutil.copy(REPOSITORY / each, self.root / each)
        project.add_python_model("doubles", execute="x * 2", answer_to_3=6.0)
        for each in (self.dev, self.live):
            endpoint = (
                '{name: small, mode: single-model, release: "24.09", instance_type: ml.g4dn.xlarge, '
                "initial_instance_count: 1, models: [doubles]}"
            )
            text = f"{environment_yaml(name=each, endpoints=[endpoint])}builds: {{on_deploy: true}}\n"
            project.write(f"environments/{each}.yaml", text + (LOAD_TEST if each == self.dev else ""))
        gates = [{"name": "sound", "commands": ["true"]}, {"name": "load-test", "load_test": {}}]
        document = {
            "name": self.name,
            "account": ACCOUNT,
            "region": REGION,
            "source": {"connection": CONNECTION, "repository": "example/models"},
            "stages": [
                {"environment": self.dev, "gates": gates},
                {"environment": self.live, "approval": True},
            ],
        }
        self.project.write("pipeline.yaml", yaml.safe_dump(document, sort_keys=False))

    def cdk(self, *arguments: str) -> str:
        """The CDK's command line, in the checkout, on the local AWS."""
        command = [str(REPOSITORY / "node_modules/.bin/cdk"), *arguments]
        return self.project.execute(command, variables=self.variables(), timeout=400).stdout

    def deploy_pipeline(self) -> None:
        """What a person does once, as docs/pipeline.md says it."""
        page = (REPOSITORY / "docs" / "pipeline.md").read_text()
        [line] = [line for line in page.splitlines() if line.startswith("$ npx cdk ")]
        self.cdk(*shlex.split(line)[3:], "--require-approval", "never", "-o", "cdk.first")

    def variables(self) -> dict[str, str]:
        """The local AWS, and no validation by cdk-nag, which has a gate of its own."""
        return {**self.aws.variables(), "CDK_VALIDATION": "false", "PYTHONDONTWRITEBYTECODE": "1"}

    def build(self, project: str, *, given: Mapping[str, str]) -> Ran:
        """Run the build commands of a deployed CodeBuild project, in one shell, until one fails.

        ``given``: variables beside the project's own. The commands of its install phase are left out where they fetch
        a command line from the internet: the lock file's is on PATH.
        """
        [found] = self.aws.client("codebuild").batch_get_projects(names=[project])["projects"]
        phases = yaml.safe_load(found["source"]["buildspec"])["phases"]
        script = "\n".join(["set -e", *phases["build"]["commands"]])
        own = {each["name"]: each["value"] for each in found["environment"].get("environmentVariables", [])}
        self.role = found["serviceRole"]
        ran = subprocess.run(
            ["bash", "-c", script],
            cwd=self.root,
            env={
                **dict(self.project.variables.items()),
                "PATH": f"{REPOSITORY / 'node_modules/.bin'}:{self.project.variables['PATH']}",
                **without_keys(self.variables()),
                **own,
                **given,
            },
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        return Ran(project=project, code=ran.returncode, said=ran.stdout + ran.stderr)


def without_keys(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables without credentials: a build has those that CodeBuild serves, and no others."""
    return {name: value for name, value in variables.items() if "ACCESS_KEY" not in name and "TOKEN" not in name}


@contextmanager
def container_credentials(checkout: Checkout) -> Iterator[tuple[dict[str, str], list[str]]]:
    """What CodeBuild serves to its builds: a session of the running one's role, as a container gets it; who asked."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            query = urllib.parse.urlencode({"role": checkout.role, "service": "codebuild.amazonaws.com"})
            given = checkout.aws.own_route(f"iam/credentials?{query}")
            body = json.dumps({**given, "Token": given["SessionToken"], "Expiration": "2099-01-01T00:00:00Z"}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class's name
            """Silence."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}/build"
        yield {"AWS_CONTAINER_CREDENTIALS_FULL_URI": url}, asked
    finally:
        server.shutdown()
        server.server_close()


def stack_of(root: Path, action: Mapping[str, Any]) -> str:
    """The construct path of the stack that a CloudFormation action deploys, from the assembly that synthesis left."""
    template = action["configuration"]["TemplatePath"].partition("::")[2]
    folder, _, file = template.rpartition("/")
    manifest = json.loads((root / "cdk.out" / folder / "manifest.json").read_text())
    [found] = [
        artifact["displayName"]
        for artifact in manifest["artifacts"].values()
        if artifact["type"] == "aws:cloudformation:stack" and artifact["properties"]["templateFile"] == file
    ]
    return str(found)
