"""The builds of this process: started, stopped, shown."""

from __future__ import annotations

import contextvars
import threading
import uuid
from typing import Any

from ministack.core.responses import AccountRegionScopedDict, get_account_id, get_region
from ministack.services import codebuild

from tritonstack_local.emulator import service_metrics
from tritonstack_local.emulator.clock import Deadline, clock
from tritonstack_local.emulator.codebuild.build import IN_PROGRESS, Build
from tritonstack_local.emulator.codebuild.events import emit_state_change
from tritonstack_local.emulator.codebuild.plan import plan_build
from tritonstack_local.emulator.codebuild.service_role import check_service_role
from tritonstack_local.emulator.codebuild.worker import BuildWorker
from tritonstack_local.emulator.refusal import RefusedError

Request = dict[str, Any]
_TOKEN_SECONDS = 300.0
_STOP_SECONDS = 15.0


class Builds:
    """Every build that was started. What it shows of them lies in MiniStack's store, whose operations list it."""

    def __init__(self) -> None:
        """None yet."""
        self._lock = threading.Lock()
        self._builds = AccountRegionScopedDict()
        self._numbers = AccountRegionScopedDict()
        self._tokens = AccountRegionScopedDict()
        self._running: list[tuple[Build, threading.Thread]] = []

    def start(self, request: Request) -> dict[str, Any]:
        """StartBuild. Raises RefusedError."""
        with self._lock:
            known = self._known(request)
            if known is not None:
                return {"build": known.as_api()}
            project = codebuild._projects.get(request["projectName"])
            if project is None:
                raise _missing(f"Project cannot be found: {codebuild._project_arn(request['projectName'])}")
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
        plan = plan_build(project, request)
        check_service_role(plan.service_role)
        number = self._numbers.get(plan.project, 0) + 1
        self._numbers[plan.project] = number
        identity = f"{plan.project}:{uuid.uuid4()}"
        build = Build(
            id=identity,
            arn=f"arn:aws:codebuild:{get_region()}:{get_account_id()}:build/{identity}",
            number=number,
            plan=plan,
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
        codebuild._builds[build.id] = build.as_api()
        emit_state_change(build)

        def run() -> None:
            worker.run()
            if not build.abandoned:
                service_metrics.count_build(build)
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
        self._wake()
        for one, thread in list(self._running):
            if one is build:
                thread.join(_STOP_SECONDS)
        return {"build": build.as_api()}

    def delete(self, request: Request) -> dict[str, Any]:
        """BatchDeleteBuilds: all but unknown and running ones."""
        deleted, left = [], []
        for identity in request["ids"]:
            build: Build | None = self._builds.get(identity)
            if build is None or build.status == IN_PROGRESS:
                code = "BUILD_IN_PROGRESS" if build else "BUILD_NOT_FOUND"
                left.append({"id": identity, "statusCode": code})
                continue
            self._builds.pop(identity)
            codebuild._builds.pop(identity, None)
            deleted.append(build.arn)
        return {"buildsDeleted": deleted, "buildsNotDeleted": left}

    def end_all(self) -> None:
        """End every build, for the end of this process; nobody is told."""
        for build, _ in self._running:
            build.abandoned = build.stop_requested = True
        self._wake()
        for _, thread in self._running:
            thread.join(_STOP_SECONDS)

    def forget(self) -> None:
        """Forget every build; those that run end, and nobody is told."""
        for build, _ in self._running:
            build.abandoned = build.stop_requested = True
        self._wake()
        for store in (self._builds, self._numbers, self._tokens):
            store.clear()

    @staticmethod
    def _wake() -> None:
        with clock.condition:
            clock.condition.notify_all()


def _show(build: Build) -> None:
    """Put what there is to see of a build where MiniStack's operations find it, unless it was deleted."""
    if build.id in codebuild._builds:
        codebuild._builds[build.id] = build.as_api()


def _missing(sentence: str) -> RefusedError:
    return RefusedError("ResourceNotFoundException", sentence, source="CodeBuild API reference")
