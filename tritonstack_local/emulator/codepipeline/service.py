"""CodePipeline's operations on pipelines, and what it says of executions: that there was none."""

from __future__ import annotations

import copy
from typing import Any

from ministack.core.responses import AccountRegionScopedDict, get_account_id, get_region
from ministack.services import iam

from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.codepipeline.structure import check_structure
from tritonstack_local.emulator.json_service import JsonService
from tritonstack_local.emulator.refusal import RefusedError

Request = dict[str, Any]
API = "CodePipeline API reference"
NOT_EXECUTED = "The local AWS keeps and checks pipelines and executes none (tritonstack_local/fidelity.md)"


class Pipelines:
    """What is kept: declarations with their versions, and tags."""

    def __init__(self) -> None:
        """None."""
        self._kept = AccountRegionScopedDict()

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()

    def create(self, request: Request) -> Request:
        """CreatePipeline."""
        declared = request["pipeline"]
        if declared["name"] in self._kept:
            message = f"A pipeline with the name '{declared['name']}' already exists"
            raise RefusedError("PipelineNameInUseException", message, source=f"{API}, CreatePipeline")
        self._check(declared)
        now = clock.now()
        kept = {
            "pipeline": {**copy.deepcopy(declared), "version": 1},
            "tags": list(request.get("tags", [])),
            "created": now,
            "updated": now,
        }
        self._kept[declared["name"]] = kept
        return {"pipeline": kept["pipeline"], "tags": kept["tags"]}

    def update(self, request: Request) -> Request:
        """UpdatePipeline: the whole declaration anew, one version on."""
        declared = request["pipeline"]
        kept = self._of(declared["name"])
        self._check(declared)
        kept["pipeline"] = {**copy.deepcopy(declared), "version": kept["pipeline"]["version"] + 1}
        kept["updated"] = clock.now()
        return {"pipeline": kept["pipeline"]}

    def get(self, request: Request) -> Request:
        """GetPipeline; the local AWS has the latest version alone."""
        kept = self._of(request["name"])
        version = kept["pipeline"]["version"]
        if request.get("version", version) != version:
            message = f"Pipeline {request['name']} has no version {request['version']}; here it has {version} alone"
            raise RefusedError("PipelineVersionNotFoundException", message, source=f"{API}, GetPipeline")
        metadata = {
            "pipelineArn": self.arn(request["name"]),
            "created": kept["created"],
            "updated": kept["updated"],
        }
        return {"pipeline": kept["pipeline"], "metadata": metadata}

    def delete(self, request: Request) -> None:
        """DeletePipeline: of one that is not there, too."""
        self._kept.pop(request["name"], None)

    def list(self, _request: Request) -> Request:
        """ListPipelines."""
        return {
            "pipelines": [
                {
                    "name": name,
                    "version": kept["pipeline"]["version"],
                    "pipelineType": kept["pipeline"].get("pipelineType", "V1"),
                    "executionMode": kept["pipeline"].get("executionMode", "SUPERSEDED"),
                    "created": kept["created"],
                    "updated": kept["updated"],
                }
                for name, kept in sorted(self._kept.items())
            ]
        }

    def state(self, request: Request) -> Request:
        """GetPipelineState: every stage and action, none of which has ever been executed."""
        kept = self._of(request["name"])
        return {
            "pipelineName": request["name"],
            "pipelineVersion": kept["pipeline"]["version"],
            "stageStates": [
                {
                    "stageName": stage["name"],
                    "inboundTransitionState": {"enabled": True},
                    "actionStates": [{"actionName": action["name"]} for action in stage["actions"]],
                }
                for stage in kept["pipeline"]["stages"]
            ],
            "created": kept["created"],
            "updated": kept["updated"],
        }

    def executions(self, request: Request) -> Request:
        """ListPipelineExecutions: none."""
        self._of(request["pipelineName"])
        return {"pipelineExecutionSummaries": []}

    def start(self, request: Request) -> Request:
        """StartPipelineExecution: refused, rather than kept for ever in progress."""
        self._of(request["name"])
        raise RefusedError("ConflictException", NOT_EXECUTED, source="tritonstack_local.emulator")

    def tags(self, request: Request) -> Request:
        """ListTagsForResource."""
        return {"tags": self._of(request["resourceArn"].rpartition(":")[2])["tags"]}

    def tag(self, request: Request) -> Request:
        """TagResource."""
        kept = self._of(request["resourceArn"].rpartition(":")[2])
        tags = {each["key"]: each["value"] for each in [*kept["tags"], *request["tags"]]}
        kept["tags"] = [{"key": key, "value": value} for key, value in sorted(tags.items())]
        return {}

    def untag(self, request: Request) -> Request:
        """UntagResource."""
        kept = self._of(request["resourceArn"].rpartition(":")[2])
        kept["tags"] = [each for each in kept["tags"] if each["key"] not in request["tagKeys"]]
        return {}

    def arn(self, name: str) -> str:
        """The ARN of a pipeline of this account and region."""
        return f"arn:aws:codepipeline:{get_region()}:{get_account_id()}:{name}"

    def _of(self, name: str) -> Request:
        kept: Request | None = self._kept.get(name)
        if kept is None:
            message = f"Account '{get_account_id()}' does not have a pipeline with name '{name}'"
            raise RefusedError("PipelineNotFoundException", message, source=f"{API}, GetPipeline")
        return kept

    def _check(self, declared: Request) -> None:
        check_structure(declared)
        arn = declared["roleArn"]
        if arn.split(":")[4] == get_account_id() and arn.rpartition("/")[2] not in iam._roles:
            raise RefusedError(
                "InvalidStructureException",
                f"CodePipeline is not authorized to perform AssumeRole on role {arn}",
                source="CodePipeline user guide, Troubleshooting",
            )


def codepipeline_service(pipelines: Pipelines) -> JsonService:
    """The service in front of what is kept."""
    return JsonService(
        service="codepipeline",
        target_prefix="CodePipeline_20150709",
        operations={
            "CreatePipeline": pipelines.create,
            "DeletePipeline": pipelines.delete,
            "GetPipeline": pipelines.get,
            "GetPipelineState": pipelines.state,
            "ListPipelineExecutions": pipelines.executions,
            "ListPipelines": pipelines.list,
            "ListTagsForResource": pipelines.tags,
            "StartPipelineExecution": pipelines.start,
            "TagResource": pipelines.tag,
            "UntagResource": pipelines.untag,
            "UpdatePipeline": pipelines.update,
        },
        forget=pipelines.clear,
    )
