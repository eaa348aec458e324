"""A session whose services answer from a table, in the place of AWS: refusals, pages and silence where a test asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import boto3
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config
from botocore.exceptions import ReadTimeoutError
from botocore.validate import ParamValidator

FakeResponse = Mapping[str, Any] | Exception | Callable[[dict[str, Any]], Any]
"""What an operation answers: a parsed answer, an error to raise, or a function of the request that gives either."""


class RefusalError(Exception):
    """An error answer of a service, by its code."""

    def __init__(self, code: str, message: str = "no") -> None:
        """``message``: the service's."""
        super().__init__(code)
        self.code = code
        self.message = message


SILENCE = ReadTimeoutError(endpoint_url="https://aws.invalid")
DENIED = RefusalError("AccessDeniedException", "User is not authorized")


class FakeSession:
    """Makes real boto3 clients, whose calls are answered before they leave: botocore checks every request and name."""

    def __init__(self, answers: Mapping[str, FakeResponse], *, region: str = "us-east-1") -> None:
        """``answers``: ``service.Operation`` → answer; an operation without one is an assertion error."""
        self.answers = dict(answers)
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self._region = region
        self.clients: list[tuple[str, str]] = []

    def client(self, service_name: str, *, config: Any = None) -> Any:
        """A client that never reaches a network."""
        region = config.region_name if config is not None and config.region_name else self._region
        self.clients.append((service_name, region))
        client = boto3.client(
            service_name,
            region_name=region,
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
            config=Config(retries={"total_max_attempts": 1}),
        )

        def answer(model: Any, context: Any, **_more: Any) -> Any:
            status, said = self._answer(f"{service_name}.{model.name}", context)
            if status < 300 and model.output_shape is not None:
                report = ParamValidator().validate(said, model.output_shape)
                wrong = [line for line in report.generate_report().splitlines() if not line.startswith("Missing")]
                assert not wrong, f"AWS never answers so: {wrong}"
            return _response(status), {**said, "ResponseMetadata": {"HTTPStatusCode": status}}

        def remember(params: dict[str, Any], model: Any, context: dict[str, Any], **_more: Any) -> None:
            context["request"] = params
            self.calls.append((f"{service_name}.{model.name}", dict(params)))

        client.meta.events.register("before-parameter-build.*.*", remember)
        client.meta.events.register("before-call.*.*", answer)
        return client

    def _answer(self, name: str, context: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        assert name in self.answers, f"the test has no answer for {name}"
        answer: Any = self.answers[name]
        if callable(answer):
            answer = answer(context["request"])
        if isinstance(answer, RefusalError):
            return 400, {"Error": {"Code": answer.code, "Message": answer.message}}
        if isinstance(answer, Exception):
            raise answer
        return 200, dict(answer)


def _response(status: int) -> AWSResponse:
    return AWSResponse("https://aws.invalid", status, HTTPHeaders(), None)


def pages(rows: str, *parts: list[Any], following: str = "NextToken") -> Callable[[dict[str, Any]], dict[str, Any]]:
    """An operation that answers in pages, each ``rows``: a part; ``following``: the name of the token."""

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        number = int(request.get(following) or 0)
        more = {following: str(number + 1)} if number + 1 < len(parts) else {}
        return {rows: parts[number], **more}

    return answer
