"""Encrypt with DryRun: MiniStack carries it out, KMS never does (developer guide, "Testing your permissions")."""

from __future__ import annotations

from typing import Any

from ministack.services import kms

Answer = tuple[int, dict[str, str], Any]


def install() -> None:
    """Wrap MiniStack's function; what it refuses stays refused."""
    encrypt = kms._encrypt

    def encrypt_or_tell(request: dict[str, Any]) -> Answer:
        answer: Answer = encrypt(request)
        if request.get("DryRun") and answer[0] == 200:
            answer = kms._dry_run_error("Encrypt")
        return answer

    kms._encrypt = encrypt_or_tell
