"""The container's log on its way to the log group."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from tests.tritonstack_local.runtime.fakes import Recorder
from tritonstack_local.runtime.publisher import LINE_BYTES, REQUEST_NOTES, LogShipper


class Logs(Recorder):
    """CloudWatch Logs that remembers messages, and may be out of order."""

    def __init__(self) -> None:
        """It works."""
        super().__init__()
        self.messages: list[str] = []
        self.broken = False
        self.exists = False

    def create_log_group(self, **_given: Any) -> dict[str, Any]:
        """As CloudWatch Logs answers."""
        if self.exists:
            raise ClientError({"Error": {"Code": "ResourceAlreadyExistsException"}}, "CreateLogGroup")
        return {}

    def put_log_events(self, **given: Any) -> dict[str, Any]:
        """Remember, or fail."""
        if self.broken:
            raise ClientError({"Error": {"Code": "ServiceUnavailableException"}}, "PutLogEvents")
        self.messages += [event["message"] for event in given["logEvents"]]
        return {}


def shipper(logs: Logs, path: Path, seen: list[str] | None = None) -> LogShipper:
    """A shipper of ``path``."""
    found = seen if seen is not None else []
    return LogShipper(client=logs, path=path, group="g", stream="s", seen=found.append)


def test_each_line_is_sent_once_and_a_half_written_one_later(tmp_path: Path) -> None:
    path, logs = tmp_path / "log", Logs()
    one = shipper(logs, path)
    assert one.ship() == 0
    path.write_text("first\nsecond\nhal")
    one.ship()
    assert logs.messages == ["first", "second"]
    with path.open("a") as file:
        file.write("f\n")
    one.ship()
    one.ship()
    assert logs.messages == ["first", "second", "half"]


def test_what_cannot_be_sent_is_sent_later(tmp_path: Path) -> None:
    path, logs = tmp_path / "log", Logs()
    path.write_text("line\n")
    one = shipper(logs, path)
    logs.broken = True
    assert one.ship() == 0
    logs.broken = False
    assert one.ship() == 1
    assert logs.messages == ["line"]


def test_a_log_group_that_exists_already_is_used(tmp_path: Path) -> None:
    path, logs = tmp_path / "log", Logs()
    path.write_text("line\n")
    logs.exists = True
    assert shipper(logs, path).ship() == 1


def test_a_log_of_many_lines_goes_in_several_batches(tmp_path: Path) -> None:
    path, logs = tmp_path / "log", Logs()
    lines = [f"line {number}" for number in range(5000)]
    path.write_text("\n".join(lines) + "\n")
    assert shipper(logs, path).ship() == 5000
    assert logs.messages == lines


def test_long_empty_and_undecodable_lines_are_sent_as_cloudwatch_takes_them(tmp_path: Path) -> None:
    path, logs = tmp_path / "log", Logs()
    path.write_bytes(b"x" * 20_000 + b"\n\n\xff\xfe\n")
    shipper(logs, path).ship()
    assert [len(message) for message in logs.messages] == [LINE_BYTES, 1, 2]


def test_stand_ins_are_noticed(tmp_path: Path) -> None:
    path, seen = tmp_path / "log", list[str]()
    path.write_text("I1 tritonstack stand-in: onnxruntime on the CPU\nother\n")
    shipper(Logs(), path, seen).ship()
    assert seen == ["tritonstack stand-in: onnxruntime on the CPU"]


NOTE = 'I1120 19:53:19.326678 1 sagemaker_server.cc:241] "Invoking SageMaker TargetModel: a.tar.gz"'


def test_of_the_notes_of_requests_few_are_sent_and_every_other_line(tmp_path: Path) -> None:
    path, logs = tmp_path / "log", Logs()
    lines = [NOTE] * 3000
    lines[1500:1500] = ["E1 an error in between"]
    path.write_text("\n".join([*lines, "the end"]) + "\n")
    shipper(logs, path).ship()
    assert logs.messages.count(NOTE) == REQUEST_NOTES
    others = [message for message in logs.messages if message != NOTE]
    assert others[:2] == ["E1 an error in between", "the end"]
    assert others[2].startswith("tritonstack: 2900 of Triton's lines")
    assert str(path) in others[2]


def test_notes_of_requests_that_are_few_are_all_sent(tmp_path: Path) -> None:
    path, logs = tmp_path / "log", Logs()
    path.write_text(f"{NOTE}\n" * REQUEST_NOTES)
    assert shipper(logs, path).ship() == REQUEST_NOTES
    assert set(logs.messages) == {NOTE}
