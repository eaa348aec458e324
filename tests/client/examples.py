"""The code blocks of a page of documentation, to be run unchanged."""

from __future__ import annotations

import contextlib
import functools
import io
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from tritonclient.http import InferenceServerClient

from tests.proxy.world import listening
from tritonstack.cli.proxy import PORT
from tritonstack.client import ModelClient
from tritonstack.proxy.server import Proxy

PAGE = Path(__file__).parents[2] / "docs" / "clients.md"


@dataclass(frozen=True, kw_only=True)
class Block:
    """One fenced block: the heading above it, its language, the line that it begins in, and its text."""

    heading: str
    language: str
    line: int
    text: str


def blocks(page: Path = PAGE) -> tuple[Block, ...]:
    """Every fenced block of a page, in its order."""
    found: list[Block] = []
    heading, language, begun, lines = "", "", 0, list[str]()
    for number, line in enumerate(page.read_text().splitlines(), start=1):
        if begun and line == "```":
            found.append(Block(heading=heading, language=language, line=begun, text="\n".join(lines)))
            begun, lines = 0, []
        elif begun:
            lines.append(line)
        elif line.startswith("```"):
            language, begun = line.removeprefix("```"), number + 1
        elif line.startswith("#"):
            heading = line.lstrip("# ")
    return tuple(found)


def tritons_client(port: int, address: str) -> InferenceServerClient:
    """Triton's client, as the page makes it for ``tritonstack proxy`` on its own port."""
    assert address == f"127.0.0.1:{PORT}"
    return InferenceServerClient(f"127.0.0.1:{port}")


def run_python(client: ModelClient, *, folder: Path, page: Path = PAGE) -> dict[str, str]:
    """Run a page's Python from its top to its end, with ``client`` for the one that the page makes.

    Triton's own client, which the page sends to ``tritonstack proxy``, reaches a proxy with the same client's AWS.

    Args:
        client: of the environment that the page names, with the page's models deployed.
        folder: where the files lie that the page names (``dog.jpg``).
        page: the page.

    Returns:
        Heading → what its blocks printed.

    Raises:
        Whatever the page's own code raises; the traceback names the page's line.
    """
    names: dict[str, Any] = {}
    printed: dict[str, str] = {}

    def made(*, environment: str, latency_metric: bool = False) -> ModelClient:
        assert environment == client.environment, f"the page is about environment {environment}"
        if latency_metric:
            return ModelClient(environment=environment, session=client._session, latency_metric=True)
        return client

    proxy = Proxy(environment=client.environment, session=client._session, concurrency=4)
    with (
        contextlib.chdir(folder),
        mock.patch("tritonstack.client.ModelClient", made),
        listening(proxy) as port,
        mock.patch("tritonclient.http.InferenceServerClient", functools.partial(tritons_client, port)),
    ):
        for block in blocks(page):
            if block.language == "python":
                code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
                with contextlib.redirect_stdout(io.StringIO()) as output:
                    exec(code, names)  # noqa: S102  (the page is the repository's own)
                printed[block.heading] = printed.get(block.heading, "") + output.getvalue()
    return printed


def commands(page: Path = PAGE) -> tuple[tuple[str, ...], ...]:
    """The page's command lines, each split into its words."""
    lines = [line for block in blocks(page) if block.language == "sh" for line in block.text.splitlines()]
    return tuple(tuple(shlex.split(line)) for line in lines)
