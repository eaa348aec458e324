"""``tritonstack prepare`` as a person, a pipeline and a build of a deployment call it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.config.environment_file import environment_text
from tests.preparation.prepare_way import Way
from tests.tritonstack_local.emulator.running import REPOSITORY, wait_until
from tritonstack.archives.stored_inputs import pack_inputs
from tritonstack.cli.root import root
from tritonstack.naming import release_parameter

ENDPOINT = """\
name: one
instance_type: ml.g5.xlarge
models: [tiny-engine, double]
"""


@pytest.fixture
def variables(way: Way) -> dict[str, str]:
    """The variables of a shell in the project whose AWS is the local one."""
    (way.root / "environments").mkdir()
    (way.root / f"environments/{way.name}.yaml").write_text(
        environment_text(header=f"environment: {way.name}", endpoint=ENDPOINT)
    )
    (way.root / ".local").mkdir()
    (way.root / ".local/exports").symlink_to(way.exports)
    return {
        "TRITONSTACK_PROJECT": str(way.root),
        "TRITONSTACK_HOME": str(way.root / ".local"),
        "AWS_ENDPOINT_URL": way.emulator.url,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


@pytest.fixture
def shell(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """This process as such a shell."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def prepare(*arguments: str) -> Result:
    return CliRunner().invoke(root, ["prepare", *arguments])


def put_order(way: Way, *models: str) -> str:
    way.bucket.put("staging/orders/1.json", way.order(*models).to_json().encode())
    return f"s3://{way.name}/staging/orders/1.json"


@pytest.mark.usefixtures("shell")
def test_json_holds_every_archive_with_its_outcome_and_a_second_run_finds_them(way: Way) -> None:
    way.make_builds()
    done = prepare("-e", way.name, "--json")
    assert done.exit_code == 0, done.output + str(done.exception)
    document = json.loads(done.stdout)
    (double, tiny) = document["archives"]
    assert double["outcome"] == "built"
    assert (tiny["endpoint"], tiny["platform"], tiny["model"]) == ("one", "24.09-a10g", "tiny-engine")
    assert document["failed"] == []
    assert "tiny-engine  CodeBuild: " in done.stderr
    assert prepare("-e", way.name, "one").stdout.splitlines()[-1] == "2 there already"


@pytest.mark.usefixtures("shell")
def test_a_dry_run_prints_what_would_be_done_and_does_nothing(way: Way) -> None:
    way.run_here(way.order("double", endpoint="two"))
    there = way.keys()
    done = prepare("-e", way.name, "--dry-run")
    assert done.exit_code == 0, done.output
    name, tiny = way.archive("double"), way.archive("tiny-engine")
    assert done.stdout.splitlines() == [
        f"endpoints/one/24.09-a10g/{name}  copy from endpoints/two/24.09-a10g/{name}",
        f"endpoints/one/24.09-a10g/{tiny}  build, engine on BUILD_GENERAL1_SMALL",
    ]
    assert way.keys() == there
    document = json.loads(prepare("-e", way.name, "--dry-run", "--json").stdout)
    assert {row["model"]: row["outcome"] for row in document["archives"]} == {"double": "copy", "tiny-engine": "build"}


@pytest.mark.usefixtures("shell")
def test_a_recorded_digest_is_prepared_as_well_as_the_sets_own(way: Way) -> None:
    old = way.archive("double")
    pack_inputs(way.source("double"), way.root / "kept.tar.gz")
    way.bucket.put(f"inputs/{old.digest}.tar.gz", (way.root / "kept.tar.gz").read_bytes())
    way.parameter(release_parameter(environment=way.name, endpoint="one", model="double"), old.digest)
    way.parameter(release_parameter(environment=way.name, endpoint="two", model="double"), "f" * 16)
    way.parameter(release_parameter(environment=way.name, endpoint="one", model="other"), "no digest")
    recipe = way.places.folder("double") / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("Doubles a", "Doubles the"))
    assert way.archive("double") != old
    way.make_builds()
    done = prepare("-e", way.name)
    assert done.exit_code == 0, done.output
    *places, last = done.stdout.splitlines()
    prefix = f"s3://{way.name}/endpoints/one/24.09-a10g/"
    built = (old, way.archive("double"), way.archive("tiny-engine"))
    assert set(places) == {f"{prefix}{name}  built" for name in built}
    assert last == "3 built"
    assert way.bucket.look(f"endpoints/one/24.09-a10g/{old}") is not None


@pytest.mark.usefixtures("shell")
def test_an_order_needs_no_environment_file(way: Way) -> None:
    (way.root / f"environments/{way.name}.yaml").unlink()
    done = prepare("--order", put_order(way, "double"))
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1] == "1 built"


@pytest.mark.usefixtures("shell")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"schema": 1}', "12 problems, the first: environment: nothing; allowed: "),
        (b"no json", "Invalid JSON"),
        (None, "NoSuchKey"),
    ],
)
def test_an_order_that_cannot_be_read_fails_in_phase_order(way: Way, content: bytes | None, message: str) -> None:
    url = f"s3://{way.name}/staging/orders/2.json"
    if content is not None:
        way.bucket.put("staging/orders/2.json", content)
    error = prepare("--order", url).exception
    assert error is not None
    assert getattr(error, "exit_code", None) == (1 if content is None else 2)
    last = str(error).splitlines()[-1]
    assert last.startswith(f"FAILED in phase order of {url}: ")
    assert message in last


@pytest.mark.usefixtures("shell")
def test_a_failure_is_in_the_json_and_in_the_last_line(way: Way) -> None:
    done = prepare("--order", put_order(way, "tiny-engine", "double"), "--json")
    document = json.loads(done.stdout)
    assert [(row["model"], row["outcome"]) for row in document["archives"]] == [("double", "built")]
    assert [(row["model"], row["phase"]) for row in document["failed"]] == [("tiny-engine", "order")]
    assert f"cdk deploy '{way.name}/builds'" in document["failed"][0]["reason"]
    assert str(done.exception).splitlines()[-1].startswith("FAILED in phase order of tiny-engine.")
    assert getattr(done.exception, "exit_code", None) == 2


@pytest.mark.usefixtures("shell")
def test_an_unknown_endpoint_is_refused_with_those_that_exist(way: Way) -> None:
    error = prepare("-e", way.name, "two", "three").exception
    assert "no endpoint two" in str(error)
    assert "no endpoint three" in str(error)
    assert "allowed: one" in str(error)


@pytest.mark.parametrize("options", [("-e", "dev"), ("search",)])
def test_an_order_names_environment_and_endpoints_itself(options: tuple[str, ...]) -> None:
    done = prepare(*options, "--order", "s3://bucket/order.json")
    assert done.exit_code == 2
    assert "--order names environment and endpoints itself" in done.output


HANGING = """\
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
print("hanging", flush=True)
while True:
    time.sleep(0.1)
"""


def test_a_signal_stops_the_engines_job_and_leaves_nothing(way: Way, variables: dict[str, str]) -> None:
    way.make_builds()
    sitting = way.root / "sitting.py"
    sitting.write_text(f"{SITTING}\n")
    (way.root / "step.py").write_text(HANGING)
    process = subprocess.Popen(
        [sys.executable, str(sitting), str(way.root / "step.py"), "prepare", "-e", way.name],
        env={**os.environ, **variables, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        for line in process.stdout or ():
            if ": BUILD, " in line:
                break
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=90)
    finally:
        process.kill()
    assert process.returncode == 130, output
    assert output.splitlines()[-1] == "interrupted"
    codebuild = way.emulator.client("codebuild")
    [build] = wait_until(
        lambda: codebuild.batch_get_builds(ids=list(way.builds()))["builds"], lambda builds: builds[0]["buildComplete"]
    )
    assert build["buildStatus"] == "STOPPED"
    assert [key for key in way.keys("") if "tiny-engine" in key or key.startswith("staging/")] == []
    archives = Path(variables["TRITONSTACK_HOME"]) / "archives"
    assert not [path for path in archives.rglob("*") if path.name.startswith(".")]


SITTING = """\
# The command, with a step that never ends in the place of the engine step, and without a Triton for the proof.
import pathlib, sys
from tests.preparation.tiny_engine import PROVEN
from tritonstack.cli.root import main
from tritonstack.preparation import export_step
from tritonstack.archives import staging
staging.prove_sample = lambda *_, **__: PROVEN
export_step.STEP = pathlib.Path(sys.argv.pop(1)).rename(pathlib.Path(sys.argv[0]).with_name("engine_step.py"))
main()
"""
