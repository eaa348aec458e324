"""Own keys, role paths, retention and data capture."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.environment_file import write_environment
from tritonstack.config import load_environment
from tritonstack.errors import InputError

KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"


@pytest.mark.parametrize(
    ("header", "endpoint", "field", "words"),
    [
        (f"artifacts: {{key_arn: {KEY.replace('us-east-1', 'eu-west-1')}}}", "", "artifacts.key_arn",
         ("eu-west-1", "us-east-1")),
        ("artifacts: {key_arn: alias/mine}", "", "artifacts.key_arn", ("arn:aws",)),
        ("role_path: team", "", "role_path", ("/team/",)),
        ("logs: {endpoint_days: 31}", "", "logs.endpoint_days", ("30", "60")),
        ("logs: {function_days: 0}", "", "logs.function_days", ("1",)),
        ("", "data_capture: {percentage: 20}", "endpoints[0].data_capture", ("multi-model", "captures no data")),
        ("", "mode: single-model\ndata_capture: {percentage: 0}", "endpoints[0].data_capture.percentage",
         ("1 or more",)),
        ("", "mode: single-model\ndata_capture: {percentage: 1, folder: staging}",
         "endpoints[0].data_capture.folder", ("archives",)),
        ("", "mode: single-model\ndata_capture: {percentage: 1, capture: [input, input]}",
         "endpoints[0].data_capture.capture", ("twice",)),
        ("", "mode: single-model\ndata_capture: {percentage: 1, capture: []}",
         "endpoints[0].data_capture.capture", ("at least 1",)),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_its_field_and_says_why(
    tmp_path: Path, header: str, endpoint: str, field: str, words: tuple[str, ...]
) -> None:
    with pytest.raises(InputError) as caught:
        load_environment(write_environment(tmp_path, header=header, endpoint=endpoint))
    [problem] = caught.value.problems
    assert problem.field == field
    assert [word for word in words if word not in str(problem)] == []


def test_what_is_set_is_taken(tmp_path: Path) -> None:
    header = f"artifacts: {{key_arn: {KEY}}}\nrole_path: /team/triton/\nlogs: {{endpoint_days: 30, function_days: 7}}"
    endpoint = "mode: single-model\ndata_capture: {percentage: 100, capture: [output], days: 7}"
    environment = load_environment(write_environment(tmp_path, header=header, endpoint=endpoint))
    assert (environment.artifacts.key_arn, environment.role_path) == (KEY, "/team/triton/")
    assert (environment.logs.endpoint_days, environment.logs.function_days) == (30, 7)
    capture = environment.endpoints[0].data_capture
    assert capture is not None
    assert (capture.percentage, capture.capture, capture.folder, capture.days) == (100, ("output",), "captured", 7)
