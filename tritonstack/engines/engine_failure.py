"""Why an engine was not built: what ``engine_step.py`` left to say, else what the service says of its machine."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tritonstack.engines.step_result import RESULT
from tritonstack.errors import WorkFailedError

_SAID = re.compile(r"FAILED in phase (?P<phase>\w+): (?P<reason>[^\n]+)")
KEPT_LINES = 20


class EngineFailedError(WorkFailedError):
    """An engine was not built.

    Attributes:
        phase: ``proof`` where the plan does not answer the proof, else ``engine``.
        reason: one sentence.
        log_tail: the last lines of the log, oldest first; empty where there are none.
        link: where the whole log is; empty where there is none.
    """

    def __init__(self, *, reason: str, phase: str = "engine", log_tail: Sequence[str] = (), link: str = "") -> None:
        """Takes the parts of the message."""
        self.phase, self.reason, self.log_tail, self.link = phase, reason, tuple(log_tail), link
        lines = [reason, *(f"  {line}" for line in self.log_tail), *([f"  log: {link}"] if link else [])]
        super().__init__("\n".join(lines))


class EngineStoppedError(EngineFailedError):
    """The engine was given up, since another part of the work failed or somebody asked for it."""

    def __init__(self, *, link: str = "") -> None:
        """``link``: where its log is."""
        super().__init__(reason="stopped before it was built", link=link)


def require_built(output: Path, *, log_tail: Sequence[str] = (), link: str = "") -> None:
    """Raise :class:`EngineFailedError` unless the step built its plan."""
    if _account(output).get("outcome") != "built":
        otherwise = f"the job ended well, and left no {RESULT} of a plan"
        raise engine_failure(output, otherwise=otherwise, log_tail=log_tail, link=link)


def engine_failure(
    output: Path, *, otherwise: str, told: str = "", log_tail: Sequence[str] = (), link: str = ""
) -> EngineFailedError:
    """Why there is no plan. What the step says of its failure comes before what the service says of it.

    Args:
        output: the step's output folder.
        otherwise: the reason where the step left none: the service's.
        told: what the step left for the service to tell, where its output did not come.
        log_tail: the log's last lines, where the step left none.
        link: where the whole log is.
    """
    result = _account(output)
    phase, reason = result.get("phase"), result.get("reason")
    said = _SAID.search(told)
    if reason is None and said is not None:
        phase, reason = said["phase"], said["reason"]
    return EngineFailedError(
        phase="proof" if phase == "proof" else "engine",
        reason=f"{reason} (phase {phase} of the engine step)" if reason else otherwise,
        log_tail=[str(line) for line in result.get("log_tail") or log_tail][-KEPT_LINES:],
        link=link,
    )


def _account(output: Path) -> dict[str, Any]:
    """The step's own account; empty where it left none that can be read."""
    try:
        found = json.loads((output / RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
