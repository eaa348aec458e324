"""Ensembles that load: a real server responds to their requests as in the linter's table."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential.server import NO_RESPONSE, Server
from tests.lint.ensemble_requests import ENSEMBLES, write_ensemble


@pytest.mark.long
@pytest.mark.parametrize("name", ENSEMBLES)
def test_a_server_responds_to_the_requests_of_an_ensemble_as_in_the_table(tmp_path: Path, name: str) -> None:
    case = ENSEMBLES[name]
    with Server.running(tmp_path) as server:
        response, archive = server.load_laid_out(lambda folder: write_ensemble(folder, case))
        assert response.accepted, response.output
        statuses = [server.infer(archive, shapes) for shapes, _ in case["requests"]]
    assert statuses == [status or NO_RESPONSE for _, status in case["requests"]]
