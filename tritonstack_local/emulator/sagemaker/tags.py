"""AddTags, DeleteTags, ListTags."""

from __future__ import annotations

from typing import Any

from tritonstack_local.emulator.refusal import RefusedError
from tritonstack_local.emulator.sagemaker.records import API
from tritonstack_local.emulator.sagemaker.state import SageMakerState

Request = dict[str, Any]
_MOST = 50


def store(state: SageMakerState, arn: str, pairs: list[dict[str, str]]) -> None:
    """Set the tags of something just created."""
    state.tags[arn] = {pair["Key"]: pair["Value"] for pair in pairs}


class Tags:
    """The operations on tags, of whatever has an ARN."""

    def __init__(self, state: SageMakerState) -> None:
        """Works on ``state``."""
        self._state = state

    def add(self, request: Request) -> dict[str, Any]:
        """AddTags: adds or overwrites; answers with all tags."""
        with self._state.changed:
            own = self._of(request["ResourceArn"])
            merged = {**own, **{pair["Key"]: pair["Value"] for pair in request["Tags"]}}
            if len(merged) > _MOST:
                raise RefusedError("ValidationException", f"More than {_MOST} tags.", source=f"{API}, AddTags")
            own.update(merged)
            return {"Tags": _pairs(own)}

    def delete(self, request: Request) -> None:
        """DeleteTags."""
        with self._state.changed:
            own = self._of(request["ResourceArn"])
            for key in request["TagKeys"]:
                own.pop(key, None)

    def list(self, request: Request) -> dict[str, Any]:
        """ListTags: always one page, since fifty is the most there can be and the least a page holds."""
        return {"Tags": _pairs(self._of(request["ResourceArn"]))}

    def _of(self, arn: str) -> dict[str, str]:
        own = self._state.tags.get(arn)
        if own is None:
            raise RefusedError("ValidationException", f'Could not find resource "{arn}".', source=f"{API}, ListTags")
        return own


def _pairs(own: dict[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in own.items()]
