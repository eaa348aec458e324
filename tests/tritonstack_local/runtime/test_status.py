"""The runtime's account of itself."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.tritonstack_local.runtime.fakes import asynchronous, config, stage, until
from tritonstack_local.runtime.__main__ import read_arguments


async def fetched(port: int, path: str) -> Any:
    """A JSON answer of the runtime."""

    def fetch() -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return json.load(answer)

    return await asyncio.to_thread(fetch)


@asynchronous
async def test_the_status_reports_endpoints_fleets_models_and_errors(tmp_path: Path) -> None:
    async with stage(tmp_path, config(), max_models=2) as at:
        await until(lambda: at.runtime.reconciler.endpoints["e"].described.status == "InService")
        for target in ("a.tar.gz", "a.tar.gz", "b.tar.gz", "c.tar.gz"):
            await at.call(target)
        at.triton.statuses["c.tar.gz"] = 500
        await asyncio.gather(at.call("c.tar.gz"), return_exceptions=True)
        found = await fetched(at.port, "/_tritonstack/status")
        [endpoint] = found["endpoints"]
        [fleet] = endpoint["fleets"]
        assert (endpoint["name"], endpoint["status"], endpoint["endpoint_config"]) == ("e", "InService", "config-1")
        assert (fleet["state"], fleet["serving"], fleet["release_asked_for"]) == ("ready", True, "24.09")
        assert (fleet["server_version"], fleet["isolation"], fleet["restarts"]) == ("2.51.0", "namespace", 0)
        assert (fleet["requests"], fleet["errors"], fleet["hit_ratio"], fleet["unloads"]) == (5, 1, 0.4, 1)
        assert fleet["model_latency_ms"]["count"] == 5
        assert fleet["last_errors"][-1]["error"].startswith("ModelError (424)")
        assert [(one["target_model"], one["state"]) for one in fleet["models"]] == [
            ("b.tar.gz", "loaded"),
            ("c.tar.gz", "loaded"),
        ]
        at.fleet().refused_ping = 400
        found = await fetched(at.port, "/_tritonstack/status")
        assert found["endpoints"][0]["fleets"][0]["state"] == "unhealthy (/ping answers 400)"
        assert "no GPU" in found["metrics_not_written"]


@asynchronous
async def test_health_answers_before_anything_is_deployed(tmp_path: Path) -> None:
    async with stage(tmp_path) as at:
        assert await fetched(at.port, "/_tritonstack/health") == {"status": "ok"}
        assert (await fetched(at.port, "/_tritonstack/status"))["endpoints"] == []


def test_the_payload_limit_is_read_from_the_environment_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRITONSTACK_MAX_PAYLOAD_BYTES", "26214400")
    assert read_arguments(["--state", "s"]).max_payload_bytes == 26_214_400
    assert read_arguments(["--state", "s", "--max-payload-bytes", "9"]).max_payload_bytes == 9
    for wrong in ("25MB", "0", "-1", ""):
        monkeypatch.setenv("TRITONSTACK_MAX_PAYLOAD_BYTES", wrong)
        with pytest.raises(SystemExit):
            read_arguments(["--state", "s"])
        assert "no number of bytes above 0 (also TRITONSTACK_MAX_PAYLOAD_BYTES)" in capsys.readouterr().err


def test_the_command_line_becomes_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITONSTACK_MAX_PAYLOAD_BYTES", raising=False)
    found = read_arguments(
        ["--port", "1", "--emulator", "http://x/", "--state", str(tmp_path), "--max-payload-bytes", "9"]
    )
    assert (found.port, found.emulator_url, found.state, found.max_payload_bytes) == (1, "http://x", tmp_path, 9)
    assert read_arguments(["--state", "s"]).max_payload_bytes == 6_291_456
