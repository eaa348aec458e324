"""Runs builds: phases, log, artifacts, events."""

from __future__ import annotations

import contextvars
import logging
import platform
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tritonstack.catalogue.instances import load_build_machines
from tritonstack.paths import REPOSITORY
from tritonstack_local.emulator import service_events
from tritonstack_local.emulator.clock import Deadline, clock
from tritonstack_local.emulator.codebuild.build import (
    IN_PROGRESS,
    Build,
    BuildParameters,
    PhaseRecord,
    build_environment,
    build_parameters,
    download_source,
    upload_artifacts,
)
from tritonstack_local.emulator.codebuild.buildspec import (
    ArtifactFiles,
    BuildspecError,
    CommandPhase,
    InterruptedBuildError,
    PhaseError,
    is_inline,
    read_buildspec,
)
from tritonstack_local.emulator.codebuild.shell import BuildShell
from tritonstack_local.emulator.iam.authorization import enforced, role_principal
from tritonstack_local.emulator.iam.needs import Need
from tritonstack_local.emulator.iam.service_calls import (
    Refusal,
    credentials_of,
    interface_needs,
    pull_needs,
    refusal_of,
)
from tritonstack_local.emulator.ministack_adapter import codebuild
from tritonstack_local.emulator.ministack_adapter.core import account_region_table, get_account_id, get_region
from tritonstack_local.emulator.request_validation import CREDENTIALS, RefusedError
from tritonstack_local.emulator.services import role_trusts
from tritonstack_local.trtexec.launchers import NoStandInsError, stand_in_variables

_PRINCIPAL = "codebuild.amazonaws.com"
_KEY_ACTIONS = ("DescribeKey", "GenerateDataKey", "Encrypt", "Decrypt", "ReEncryptFrom", "ReEncryptTo")
LINKED = (".envs", "node_modules")
"""Folders of the project in place of what an image has installed."""


def gpu_variables(parameters: BuildParameters, log: service_events.LogStream) -> dict[str, str]:
    """The variables that name the stand-ins for the image's trtexec and the machine's GPU; none without a GPU.

    Raises PhaseError where the compute type has no GPU, or none can be made for the image's release.
    """
    if not parameters.on_gpu:
        return {}
    image, compute_type = parameters.environment["image"], parameters.environment["computeType"]
    gpus = {machine.name: machine.gpu for machine in load_build_machines().machines if machine.kind == "codebuild"}
    if compute_type not in gpus:
        known = " and ".join(gpus)
        raise PhaseError(
            "CLIENT_ERROR", f"{parameters.environment['type']} has the compute types {known}, not {compute_type}"
        )
    try:
        variables, line = stand_in_variables(image, gpu=gpus[compute_type])
    except NoStandInsError as error:
        raise PhaseError("CLIENT_ERROR", f"no stand-ins for trtexec and nvidia-smi: {error}") from error
    for said in (line, *(f"{name}={value}" for name, value in sorted(variables.items()))):
        log.say(said)
    return variables


def emit_state_change(build: Build) -> None:
    """Emit the build's current status to the rules of the calling context's account and region."""
    detail = {
        "build-status": build.status,
        "project-name": build.parameters.project,
        "build-id": build.arn,
        "additional-information": {
            "build-number": build.number,
            "timeout-in-minutes": build.parameters.timeout_minutes,
            "build-complete": build.status != IN_PROGRESS,
            "initiator": build.initiator,
            "environment": {"environment-variables": build.parameters.variables},
            "logs": {"group-name": build.log_group, "stream-name": build.log_stream, "deep-link": build.deep_link},
        },
        "current-phase": build.phases[-1].name,
        "current-phase-context": "[]",
        "version": "1",
    }
    service_events.emit("aws.codebuild", "CodeBuild Build State Change", detail, [build.arn])


# A failing INSTALL or PRE_BUILD ends the build; after a failing BUILD there are still POST_BUILD and UPLOAD_ARTIFACTS.
logger = logging.getLogger("tritonstack.emulator.codebuild")


class BuildWorker:
    """Runs one build, in a thread of its own and the context of the request that started it."""

    def __init__(self, build: Build, changed: Callable[[], None]) -> None:
        """``changed`` is called whenever there is something new to show of ``build``."""
        self._build = build
        self._changed = changed
        self._role = role_principal(build.parameters.service_role, f"AWSCodeBuild-{build.log_stream}")
        self._log = service_events.LogStream(
            build.log_group,
            build.log_stream,
            writer=self._role,
            prefix=lambda: time.strftime("[Container] %Y/%m/%d %H:%M:%S ", time.gmtime(clock.now())),
        )
        self._deadline: Deadline = clock.deadline(build.parameters.timeout_minutes * 60)
        self._folder = Path(tempfile.gettempdir(), f"codebuild-{uuid.uuid4().hex}")
        self._source = self._folder / "src"
        self._shell: BuildShell | None = None
        self._environment: dict[str, str] = {}

    def run(self) -> None:
        """From PROVISIONING to COMPLETED; never raises."""
        build = self._build
        try:
            build.phases[-1].status, build.phases[-1].end = "SUCCEEDED", clock.now()  # QUEUED
            self._folder.mkdir(mode=0o700)
            self._source.mkdir()
            status = self._phases()
        except InterruptedBuildError as interruption:
            status = interruption.status
        except Exception:  # a fault of this emulator's must not leave a build that never ends
            logger.exception("build %s: a fault of the local AWS", build.id)
            status = "FAULT"
        self._finish(status)

    def _finish(self, status: str) -> None:
        """End the build, also where its processes or its log cannot be ended as they should."""
        try:
            if self._shell is not None:
                self._shell.end()
            if self._build.phases[-1].end is None:
                self._close(self._build.phases[-1], status)
            finalizing = self._build.begin("FINALIZING")
            shutil.rmtree(self._folder, ignore_errors=True)
            self._close(finalizing, "SUCCEEDED")
        except Exception:  # as in ``run``
            logger.exception("build %s: a fault of the local AWS at its end", self._build.id)
            status = "FAULT"
        self._build.begin("COMPLETED")
        self._build.end = clock.now()
        self._build.status = status
        self._changed()

    def _phases(self) -> str:
        """The build's status, SUCCEEDED or FAILED."""
        if not (self._phase("PROVISIONING", self._provision) and self._phase("DOWNLOAD_SOURCE", self._download)):
            return "FAILED"
        succeeded = True
        for name, phase in self._buildspec.phases.items():
            if self._phase(name.upper(), lambda phase=phase: self._commands(phase)):  # type: ignore[misc]
                continue
            succeeded = False
            if name not in ("build", "post_build"):
                return "FAILED"
        artifacts = self._buildspec.artifacts
        uploaded = self._phase("UPLOAD_ARTIFACTS", lambda: self._upload(artifacts))
        return "SUCCEEDED" if succeeded and uploaded else "FAILED"

    def _phase(self, name: str, work: Callable[[], None]) -> bool:
        """Run one phase; whether it succeeded. Raises InterruptedBuildError where the build is to end at once."""
        record = self._build.begin(name)
        self._changed()
        try:
            self._check()
            work()
        except PhaseError as error:
            self._close(record, "FAILED", error.code, error.message)
            return False
        except InterruptedBuildError as interruption:
            self._close(record, interruption.status, interruption.code, interruption.message)
            raise
        self._close(record, "SUCCEEDED")
        return True

    def _close(self, record: PhaseRecord, status: str, code: str = "", message: str = "") -> None:
        record.code, record.message, record.status, record.end = code, message, status, clock.now()
        if status != "SUCCEEDED" or record.name not in ("PROVISIONING", "FINALIZING"):
            self._log.say(f"Phase complete: {record.name} State: {status}")
            self._log.say(f"Phase context status code: {code} Message: {message}")
        self._changed()

    def _check(self) -> None:
        """Raises InterruptedBuildError where the build was stopped or has no time left."""
        if self._build.stop_requested:
            raise InterruptedBuildError("STOPPED", "BUILD_STOPPED", "Build has been stopped.")
        if self._deadline.passed:
            minutes = self._build.parameters.timeout_minutes
            raise InterruptedBuildError("TIMED_OUT", "BUILD_TIMED_OUT", f"Build has timed out after {minutes} minutes.")

    def _provision(self) -> None:
        parameters, say = self._build.parameters, self._log.say
        say("This is the local AWS, not CodeBuild: the commands run as processes of this machine.")
        image, compute_type = parameters.environment["image"], parameters.environment["computeType"]
        say(f"No container: {image} is not pulled, {compute_type} not kept to.")
        if parameters.vpc:
            say(f"No VPC: the commands have this machine's network, not that of {parameters.vpc.get('vpcId')}.")
        self._authorise()
        given = f"The commands have credentials of {parameters.service_role}."
        say(given if enforced() else f"No credentials of {parameters.service_role}: IAM is not enforced.")
        self._environment = gpu_variables(parameters, self._log)

    def _authorise(self) -> None:
        """Raise PhaseError where the service role may not write the log, join the VPC or pull the image.

        The messages are those of failed builds (juspay/hyperswitch-cdk, pull request 37; aws/aws-cdk, issue 12705;
        awslabs/aws-codebuild-jenkins-plugin, issue 106; everything2/everything2, issue 2562). That each of them fails
        PROVISIONING is UNVERIFIED.
        """
        build, parameters = self._build, self._build.parameters
        vpc, image = parameters.vpc or {}, parameters.environment["image"]
        interfaces = interface_needs(vpc.get("subnets", ()), vpc.get("securityGroupIds", ()), service="codebuild")
        pull = pull_needs(image) if parameters.environment["imagePullCredentialsType"] == "SERVICE_ROLE" else ()
        not_pulled = (
            "Unable to pull customer's container image. CannotPullContainerError: Error response from daemon: pull"
            f" access denied for {image.partition(':')[0]}, repository does not exist or may require 'docker login':"
        )
        not_logged = (
            f"Service role {parameters.service_role} does not allow AWS CodeBuild to create Amazon CloudWatch Logs log"
            f" streams for build {build.arn}."
        )
        for code, message, refused in (
            ("ACCESS_DENIED", f"{not_logged} Error message:", self._log.refusal),
            ("VPC_CLIENT_ERROR", "Unexpected EC2 error: UnauthorizedOperation:", self._refusal(interfaces)),
            ("BUILD_CONTAINER_UNABLE_TO_PULL_IMAGE", f"{not_pulled} denied:", self._refusal(pull)),
        ):
            if refused is not None:
                raise PhaseError(code, f"{message} {refused.sentence}")
        given = credentials_of(self._role, service=_PRINCIPAL, source=parameters.project_arn, vpc=vpc.get("vpcId"))
        build.credentials = given or CREDENTIALS

    def _refusal(self, needs: Iterable[Need]) -> Refusal | None:
        return refusal_of(self._role, needs, by=f"codebuild: build {self._build.id}")

    def _note_bucket(self, bucket: str) -> None:
        """CodeBuild reads a bucket's owner and region, and goes on where it may not.

        Source: aws-ia/terraform-aws-control_tower_account_factory, issue 53.
        """
        for action in ("s3:GetBucketAcl", "s3:GetBucketLocation"):
            self._refusal([Need(action=action, resource=f"arn:aws:s3:::{bucket}")])

    def _upload(self, files: ArtifactFiles | None) -> None:
        """The project's key takes more than S3's use of it (CodeBuild user guide, "Encrypt build outputs")."""
        artifacts, key = self._build.parameters.artifacts, self._build.parameters.encryption_key
        if artifacts["type"] == "S3":
            self._note_bucket(artifacts["location"])
            encrypts = ":key/" in key and not artifacts.get("encryptionDisabled")
            needs = [Need(action=f"kms:{action}", resource=key) for action in _KEY_ACTIONS if encrypts]
            if refused := self._refusal(needs):
                raise PhaseError("CLIENT_ERROR", f"Error in UPLOAD_ARTIFACTS phase: AccessDenied: {refused.sentence}")
        upload_artifacts(self._build, files, source=self._source, between=self._check)

    def _download(self) -> None:
        build = self._build
        if build.parameters.source["type"] == "S3":
            self._note_bucket(build.parameters.source["location"].removeprefix("arn:aws:s3:::").partition("/")[0])
        download_source(build, self._source)
        try:
            self._buildspec = read_buildspec(self._buildspec_text())
        except BuildspecError as error:
            raise PhaseError("YAML_FILE_ERROR", str(error)) from error
        for name in () if build.parameters.on_gpu else LINKED:  # a Triton image has no environments
            project, linked = REPOSITORY / name, self._source / name
            if project.exists() and not linked.exists() and not linked.is_symlink():
                linked.symlink_to(project)
                self._log.say(f"{name} of the project is linked into the source, where the image has it installed.")
        home = self._folder / "home"
        home.mkdir()
        variables = build_environment(build, self._buildspec, source=self._source, home=home)
        self._log.say(f"CODEBUILD_SRC_DIR={self._source}")
        self._shell = BuildShell(
            folder=self._folder / "tmp",
            directory=self._source,
            environment={**variables, **self._environment},
            line=self._log.line,
        )

    def _buildspec_text(self) -> str:
        """Inline, or a file's of the source: ``buildspec.yml`` by default."""
        given = self._build.parameters.source.get("buildspec") or "buildspec.yml"
        if is_inline(given):
            return given
        path = (self._source / given).resolve()
        if not path.is_relative_to(self._source.resolve()):
            raise PhaseError("YAML_FILE_ERROR", f"{given}: a path within the source is needed")
        if not path.is_file():
            raise PhaseError("YAML_FILE_ERROR", f"stat {path}: no such file or directory")
        return path.read_text(encoding="utf-8", errors="replace")

    def _commands(self, phase: CommandPhase) -> None:
        assert self._shell is not None  # noqa: S101  made in DOWNLOAD_SOURCE
        self._log.say(f"Entering phase {self._build.phases[-1].name}")
        for name, version in phase.runtimes.items():
            here = platform.python_version() if name == "python" else "whatever the PATH has"
            self._log.say(f"runtime-versions: {name} {version} is asked for and not installed; here it is {here}.")
        for command in phase.commands:
            self._check()
            self._log.say(f"Running command {command}")
            status = self._shell.run(command, interrupted=lambda: self._build.stop_requested, deadline=self._deadline)
            if status is None:
                self._check()
            if status != 0:
                self._shell.set("CODEBUILD_BUILD_SUCCEEDING", "0")
                self._log.say(f"Command did not exit successfully {command} exit status {status}")
                raise PhaseError(
                    "COMMAND_EXECUTION_ERROR", f"Error while executing command: {command}. Reason: exit status {status}"
                )


Request = dict[str, Any]
_TOKEN_SECONDS = 300.0
_STOP_SECONDS = 15.0


def check_service_role(arn: str) -> None:
    if not role_trusts(arn, _PRINCIPAL):
        raise RefusedError(
            "InvalidInputException",
            f"CodeBuild is not authorized to perform: sts:AssumeRole on {arn}: the role does not exist, or its trust"
            f" policy does not name {_PRINCIPAL}",
            source="CodeBuild user guide, troubleshooting",
        )


class Builds:
    """Every build that was started. What it shows of them lies in MiniStack's store, whose operations list it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._builds = account_region_table()
        self._numbers = account_region_table()
        self._tokens = account_region_table()
        self._running: list[tuple[Build, threading.Thread]] = []

    def start(self, request: Request) -> dict[str, Any]:
        """StartBuild. Raises RefusedError."""
        with self._lock:
            known = self._known(request)
            if known is not None:
                return {"build": known.as_api()}
            project = codebuild.projects().get(request["projectName"])
            if project is None:
                raise _missing(f"Project cannot be found: {codebuild.project_arn(request['projectName'])}")
            build = self._new(project, request)
            if "idempotencyToken" in request:
                self._tokens[request["idempotencyToken"]] = (request, build, clock.deadline(_TOKEN_SECONDS))
        self._run(build)
        return {"build": build.as_api()}

    def _known(self, request: Request) -> Build | None:
        """The build that the same token started within five minutes."""
        token = request.get("idempotencyToken")
        entry: tuple[Request, Build, Deadline] | None = self._tokens.get(token) if token else None
        if entry is None or entry[2].passed:
            return None
        if entry[0] != request:
            raise RefusedError(
                "InvalidInputException",
                f"idempotencyToken {token} was used with other parameters",
                source="CodeBuild API reference, StartBuild",
            )
        return entry[1]

    def _new(self, project: dict[str, Any], request: Request) -> Build:
        parameters = build_parameters(project, request)
        check_service_role(parameters.service_role)
        number = self._numbers.get(parameters.project, 0) + 1
        self._numbers[parameters.project] = number
        identity = f"{parameters.project}:{uuid.uuid4()}"
        build = Build(
            id=identity,
            arn=f"arn:aws:codebuild:{get_region()}:{get_account_id()}:build/{identity}",
            number=number,
            parameters=parameters,
            initiator="local-aws",
            region=get_region(),
        )
        submitted = build.begin("SUBMITTED")
        submitted.status, submitted.end = "SUCCEEDED", clock.now()
        build.begin("QUEUED")
        self._builds[build.id] = build
        return build

    def _run(self, build: Build) -> None:
        worker = BuildWorker(build, lambda: _show(build))
        codebuild.builds()[build.id] = build.as_api()
        emit_state_change(build)

        def run() -> None:
            worker.run()
            if not build.abandoned:
                service_events.count_build(build)
                emit_state_change(build)

        thread = threading.Thread(target=contextvars.copy_context().run, args=(run,), daemon=True)
        with self._lock:
            self._running = [(one, its) for one, its in self._running if its.is_alive()] + [(build, thread)]
            thread.start()

    def stop(self, request: Request) -> dict[str, Any]:
        """StopBuild: end a running build's processes and show it as it ended. Raises RefusedError."""
        build: Build | None = self._builds.get(request["id"])
        if build is None:
            raise _missing(f"Build cannot be found: {request['id']}")
        build.stop_requested = True
        clock.wake()
        for one, thread in list(self._running):
            if one is build:
                thread.join(_STOP_SECONDS)
        return {"build": build.as_api()}

    def end_all(self) -> None:
        """End every build without events, at the end of this process."""
        for build, _ in self._running:
            build.abandoned = build.stop_requested = True
        clock.wake()
        for _, thread in self._running:
            thread.join(_STOP_SECONDS)


def _show(build: Build) -> None:
    """Put what there is to see of a build where MiniStack's operations find it, unless it was deleted."""
    if build.id in codebuild.builds():
        codebuild.builds()[build.id] = build.as_api()


def _missing(sentence: str) -> RefusedError:
    return RefusedError("ResourceNotFoundException", sentence, source="CodeBuild API reference")
