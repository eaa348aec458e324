"""``tritonstack local up``, ``down`` and ``env``: a local AWS is two processes, started and stopped both or none."""

from __future__ import annotations

import http.client
import os
import shlex
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click

from tritonstack.cli.conventions import echo
from tritonstack.cli.progress import Steps
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.local_files import made_files, size_lines
from tritonstack.paths import (
    CHECKOUT,
    REPOSITORY,
    LocalPaths,
    environment_python,
    project_folder,
    setup_command,
)
from tritonstack_local import IAM_RECORDS
from tritonstack_local.aws import (
    EMULATOR_PORT,
    PERSONAL_VARIABLES,
    RUNTIME_PORT,
    LocalAws,
    find_local_aws,
    plain_environment,
    read_url,
    require_local_aws,
    sdk_variables,
)
from tritonstack_local.commands.iam import role_variables
from tritonstack_local.keys import OWN_ROUTES, LocalKeys
from tritonstack_local.leftovers import sweep_emulator, sweep_shared_memory
from tritonstack_local.library import child_variables, library_path
from tritonstack_local.processes import (
    ProcessRecord,
    RunningRecord,
    choose_ports,
    exclusive,
    forget_record,
    log_tail,
    read_record,
    require_port_again,
    start_process,
    write_record,
)

START_SECONDS = 240.0
"""A process that ends is noticed at once; one that lives and does not respond yet is on a machine with other work."""


def start_local_aws(
    *,
    emulator_port: int,
    runtime_port: int,
    report: Callable[[str], None],
    note: Callable[[str], None] = lambda _text: None,
    iam: bool = True,
) -> LocalAws:
    """Start the emulator and the runtime and wait until both respond; what runs already is left as it is.

    Of a local AWS one part of which has ended, that part alone is started again, on its port. The runtime takes up
    the endpoints that are deployed; the emulator keeps its state in memory, so that it comes back empty.
    ``iam``: whether permissions are enforced; a part that is started again does as the other part.

    Raises InputError: a port is taken, the environments are not made yet, or nothing can be written to the state
    folder. Raises WorkFailedError: a process ended or did not respond in time; with the last lines of its log.
    """
    paths = LocalPaths.from_environment()
    _check_environments()
    with exclusive(paths, report=report):
        aws = find_local_aws()
        if aws is not None:
            return aws
        record = read_record(paths)
        if record is not None and record.half and _answers(record):
            return _start_other_half(paths, record, report=report, note=note)
        left, _ = _stop_recorded(paths)
        if left:
            note(f"ended what still ran from before ({', '.join(left)}); what was deployed there is discarded")
        return _start(paths, choices=(emulator_port, runtime_port), report=report, iam=iam)


def _start(paths: LocalPaths, *, choices: tuple[int, int], report: Callable[[str], None], iam: bool) -> LocalAws:
    emulator_port, runtime_port = choose_ports(emulator=choices[0], runtime=choices[1])
    record = RunningRecord(emulator_port=emulator_port, runtime_port=runtime_port, iam=iam, keys=LocalKeys.draw())
    started: list[ProcessRecord] = []
    try:
        report(f"local AWS on port {emulator_port}")
        started.append(emulator := _start_emulator(paths, record))
        write_record(paths, replace(record, emulator=emulator))
        _wait(emulator_port, "the AWS emulator", emulator, record.keys)
        report(f"SageMaker runtime on port {runtime_port}")
        started.append(runtime := _start_runtime(paths, record))
        write_record(paths, replace(record, emulator=emulator, runtime=runtime))
        _wait(runtime_port, "the SageMaker runtime", runtime, record.keys)
    except BaseException:  # an interrupted start too leaves nothing running
        for process in reversed(started):
            process.stop()
        forget_record(paths)
        raise
    return LocalAws(
        emulator_port=emulator_port, runtime_port=runtime_port, keys=record.keys, emulator=emulator, runtime=runtime
    )


def _answers(record: RunningRecord) -> bool:
    """Whether the part that still runs responds."""
    alive = record.runtime is not None and record.runtime.running
    port = record.runtime_port if alive else record.emulator_port
    try:
        read_url(f"http://127.0.0.1:{port}{OWN_ROUTES}health", record.keys)
    except (OSError, http.client.HTTPException):
        return False
    return True


RUNTIME_AGAIN = "the SageMaker runtime had ended: it is started again, and takes up the endpoints that are deployed"
EMULATOR_AGAIN = (
    "the AWS emulator had ended, and all that was deployed there with it: it is started again, empty. To deploy "
    "again: tritonstack local deploy"
)


def _start_other_half(
    paths: LocalPaths, record: RunningRecord, *, report: Callable[[str], None], note: Callable[[str], None]
) -> LocalAws:
    """Start emulator or runtime again where one of them has ended; the other one keeps running in any case."""
    lost = record.runtime is None or not record.runtime.running
    port = record.runtime_port if lost else record.emulator_port
    name = "the SageMaker runtime" if lost else "the AWS emulator"
    require_port_again(port, name=name)
    report(f"{name} on port {port}")
    process = (_start_runtime if lost else _start_emulator)(paths, record)
    try:
        write_record(paths, replace(record, runtime=process) if lost else replace(record, emulator=process))
        _wait(port, name, process, record.keys)
    except BaseException:
        process.stop()
        raise
    note(RUNTIME_AGAIN if lost else EMULATOR_AGAIN)
    aws = find_local_aws()
    if aws is None:
        raise WorkFailedError(f"the other part of the local AWS ended while {name} was started: tritonstack local up")
    return aws


def stop_local_aws(*, report: Callable[[str], None] = lambda _step: None) -> str:
    """Stop what ``start_local_aws`` started. Returns the outcome in words.

    Raises InputError: the record of what runs is damaged.
    """
    paths = LocalPaths.from_environment()
    if not paths.record.is_file():
        return "none was running"
    with exclusive(paths, report=report):
        stopped, ended = _stop_recorded(paths)
    if not stopped:
        return "none was running"
    return "stopped" + "".join(f"; {name} had ended before" for name in ended)


def _stop_recorded(paths: LocalPaths) -> tuple[list[str], list[str]]:
    """Stop the parts that the record names and remove it; returns those stopped, and those that had ended."""
    record = read_record(paths)
    stopped: list[str] = []
    ended: list[str] = []
    for name, part in record.parts.items() if record else ():
        (stopped if part.running else ended).append(name)
        part.stop()
    forget_record(paths)
    sweep_shared_memory()
    sweep_emulator(paths.emulator / "tmp")
    return stopped, ended


def _start_emulator(paths: LocalPaths, record: RunningRecord) -> ProcessRecord:
    temporary = paths.emulator / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.environ.get("HOME", str(paths.root)),
        "PYTHONPATH": str(library_path()),
        "PYTHONUNBUFFERED": "1",
        **child_variables(),
        **record.keys.variables(),
        "GATEWAY_PORT": str(record.emulator_port),
        "STATE_DIR": str(paths.emulator / "state"),
        "TMPDIR": str(temporary),
        "NODE_PATH": str(REPOSITORY / "node_modules"),
        "TRITONSTACK_RUNTIME_URL": f"http://127.0.0.1:{record.runtime_port}",
        "TRITONSTACK_IAM": "on" if record.iam else "off",
        # Of the caller's folder; the emulator starts in another one.
        **{name: str(Path(os.environ[name]).absolute()) for name in (IAM_RECORDS,) if os.environ.get(name)},
    }
    return start_process(
        [str(environment_python("emulator")), "-m", "tritonstack_local.emulator"],
        environment=environment,
        folder=paths.emulator,
        log=_new_log(paths, "emulator"),
    )


def _start_runtime(paths: LocalPaths, record: RunningRecord) -> ProcessRecord:
    paths.runtime.mkdir(parents=True, exist_ok=True)
    return start_process(
        [
            str(environment_python("main")), "-m", "tritonstack_local.runtime",
            "--port", str(record.runtime_port), "--emulator", f"http://127.0.0.1:{record.emulator_port}",
            "--state", str(paths.runtime),
        ],
        environment={
            **plain_environment(), **child_variables(), "PYTHONPATH": str(library_path()), "PYTHONUNBUFFERED": "1",
            **record.keys.variables(), "TRITONSTACK_IAM": "on" if record.iam else "off",
        },
        folder=paths.runtime,
        log=_new_log(paths, "runtime"),
    )  # fmt: skip


def _new_log(paths: LocalPaths, name: str) -> Path:
    """A new log for this run; the previous run's is renamed."""
    log = paths.logs / f"{name}.log"
    if log.is_file():
        log.replace(paths.logs / f"{name}.before.log")
    return log


def _check_environments() -> None:
    missing = [name for name in ("main", "emulator", "backends") if not environment_python(name).exists()]
    if missing:
        if CHECKOUT is None:
            project_folder()  # outside of a project set-up is not what is missing
        found = f"the environments {', '.join(missing)} are not made yet"
        allowed = "environments under .envs/ as requirements/ pins them"
        raise InputError([Problem(found=found, allowed=allowed, advice=setup_command())])


def _wait(port: int, name: str, process: ProcessRecord, keys: LocalKeys) -> None:
    url = f"http://127.0.0.1:{port}{OWN_ROUTES}health"
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            read_url(url, keys)
            answered = True
        except (OSError, http.client.HTTPException):
            answered = False
        if not process.running:  # even where something responds: then it is another server
            tail = f"The last lines of {process.log}:\n{log_tail(Path(process.log))}"
            raise WorkFailedError(f"{name} ended while it was starting. {tail}")
        if answered:
            return
        time.sleep(0.1)
    raise WorkFailedError(f"{name} did not respond within {START_SECONDS:.0f} s at {url}; its log: {process.log}")


PORT = click.IntRange(0, 65535)
IAM_STAYS = "IAM stays on; to start without it: tritonstack local down, then tritonstack local up --no-iam"


@click.command("up", epilog="example: tritonstack local up --port 0")
@click.option(
    "--port",
    default=EMULATOR_PORT,
    type=PORT,
    show_default=True,
    envvar="TRITONSTACK_PORT",
    show_envvar=True,
    help="Port of the AWS APIs; 0 takes a free one.",
)
@click.option(
    "--runtime-port",
    default=RUNTIME_PORT,
    type=PORT,
    show_default=True,
    envvar="TRITONSTACK_RUNTIME_PORT",
    show_envvar=True,
    help="Port of InvokeEndpoint; 0 takes a free one.",
)
@click.option("--no-iam", is_flag=True, help="Allow every request: no permission is enforced.")
def up(*, port: int, runtime_port: int, no_iam: bool) -> None:
    """Start the local AWS and its SageMaker runtime. They stay up until `tritonstack local down`.

    Where one of the two has ended, it alone is started again. What is deployed is lost with the local AWS, not with the
    runtime.
    """
    aws = find_local_aws()
    if aws is not None:
        echo(f"The local AWS is up already: {aws.emulator_url}, InvokeEndpoint at {aws.runtime_url}")
        if no_iam and aws.iam()["enforced"]:
            echo(IAM_STAYS)
        return
    steps = Steps()
    with steps.step("start the local AWS") as step:
        aws = start_local_aws(
            emulator_port=port, runtime_port=runtime_port, report=step.say, note=steps.note, iam=not no_iam
        )
        step.end_with(f"{aws.emulator_url}, InvokeEndpoint at {aws.runtime_url}")
    record = read_record(LocalPaths.from_environment())
    if no_iam:
        stays = record is not None and record.iam
        off = "IAM is switched off: every request is allowed, also those that AWS would refuse"
        steps.note(IAM_STAYS if stays else off)


@click.command("down", epilog="example: tritonstack local down")
def down() -> None:
    """Stop the local AWS and its runtime, and list what stays on this machine, with sizes.

    What was deployed there is gone. `tritonstack clean` removes what stays.
    """
    with Steps().step("stop the local AWS") as step:
        outcome = stop_local_aws(report=step.say)
        step.say("measuring what stays")
        made, _ = made_files(("environments", "builds", "state"))
        step.end_with(outcome)
    if made:
        echo("What stays on this machine:")
        for line in size_lines(made):
            echo(line)
        echo("To remove it, with a list and a question: tritonstack clean")


PATH_BACK = 'if [ -n "${TRITONSTACK_PATH-}" ]; then PATH=${PATH#"$TRITONSTACK_PATH":}; unset TRITONSTACK_PATH; fi'
"""Takes our folder off PATH where ``env`` put it."""


@click.command("env", epilog="example: tritonstack local env --role deployer")
@click.option("--unset", is_flag=True, help="Print the commands that unset the variables instead.")
@click.option("--role", help="Name or ARN of a role to act as, instead of the account's administrator.")
def env(*, unset: bool, role: str | None) -> None:
    """Print the variables that point an AWS SDK at the local AWS: eval "$(tritonstack local env)"."""
    if unset:  # also when nothing runs any more
        for name in (*sdk_variables(emulator_url="", runtime_url="", keys=LocalKeys.draw()), "AWS_SESSION_TOKEN"):
            click.echo(f"unset {name}")
        click.echo(PATH_BACK)
        return
    aws = require_local_aws()
    variables = aws.variables() | ({} if role is None else role_variables(aws, role))
    click.echo(f"unset {' '.join(PERSONAL_VARIABLES)}")
    for name, value in variables.items():
        click.echo(f"export {name}={shlex.quote(value)}")
    programs = shlex.quote(str(REPOSITORY / ".envs" / "main" / "bin"))  # tritonstack and aws, first on PATH, once
    put_first = f'export TRITONSTACK_PATH={programs} PATH={programs}:"$PATH"'
    echo(f'case ":$PATH:" in *:{programs}:*) ;; *) {put_first} ;; esac')
