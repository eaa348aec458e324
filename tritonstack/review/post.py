"""Puts a report under a pull request on GitHub: one comment, found by its first line and rewritten in place.

python3 -m tritonstack.review.post REPORT.md

Needs nothing but Python. Reads GITHUB_REPOSITORY, PULL_REQUEST, GITHUB_TOKEN and GITHUB_API_URL, and REVIEW_AUTHOR: the
account that the token writes as, by default ``github-actions[bot]``. Comments of other accounts are left alone, for
their authors could rewrite them.
"""

# ruff: noqa: T201 - a command
from __future__ import annotations

import json
import os
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonstack.errors import InputError, Problem, TritonstackError, WorkFailedError, refuse

MARKER = "<!-- tritonstack review -->"
"""The first line of a report."""
AUTHOR = "github-actions[bot]"
API = "https://api.github.com"
PER_PAGE = 100
SECONDS = 30
REFUSED = (401, 403, 404)
"""Status codes where a token may not write: 404 where it may not even read."""


class MayNotWriteError(WorkFailedError):
    """The token may not write comments, as that of a pull request from a fork."""


@dataclass(frozen=True, kw_only=True)
class PullRequest:
    """Where a comment goes."""

    api: str  # GitHub's REST API
    repository: str  # ``owner/name``
    number: int  # of the pull request
    token: str  # that may write its comments
    author: str = AUTHOR  # the account that the token writes as

    def post(self, body: str) -> str:
        """Rewrite the comment that begins with the marker, or write the first. Returns what was done, in words.

        Raises:
            MayNotWriteError: the token may not.
            WorkFailedError: GitHub's response is an error or no JSON, or there is none.
        """
        ours = (each for each in self._comments() if (each.get("user") or {}).get("login") == self.author)
        found = next((each for each in ours if str(each.get("body") or "").startswith(MARKER)), None)
        if found is None:
            self._call("POST", f"/repos/{self.repository}/issues/{self.number}/comments", {"body": body})
            return f"comment on #{self.number} written"
        if found.get("body") == body:
            return f"comment on #{self.number} is as it should be"
        self._call("PATCH", f"/repos/{self.repository}/issues/comments/{int(found['id'])}", {"body": body})
        return f"comment on #{self.number} rewritten"

    def _comments(self) -> Iterator[Mapping[str, Any]]:
        page = 1
        while True:
            path = f"/repos/{self.repository}/issues/{self.number}/comments?per_page={PER_PAGE}&page={page}"
            listed = self._call("GET", path)
            yield from listed
            if len(listed) < PER_PAGE:
                return
            page += 1

    def _call(self, method: str, path: str, body: Mapping[str, str] | None = None) -> Any:
        request = urllib.request.Request(  # noqa: S310 - the address is checked to be of http(s) where it is read
            self.api.rstrip("/") + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Accept": "application/vnd.github+json",
                "Authorization": f"Bearer {self.token}",
                "Content-Type": "application/json",
                "User-Agent": "tritonstack-review",
                "X-GitHub-Api-Version": "2022-11-28",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310 - as above
                return json.load(answer)
        except urllib.error.HTTPError as error:
            body_text = error.read(500).decode(errors="replace")
            kind = MayNotWriteError if error.code in REFUSED else WorkFailedError
            raise kind(f"GitHub answered {error.code} to {method} {path}: {body_text}") from None
        except (OSError, ValueError) as error:
            raise WorkFailedError(f"{method} {self.api}{path}: {error}") from None


def pull_request_of(variables: Mapping[str, str]) -> PullRequest:
    """Where the comment goes, by the variables of a CI system.

    Raises:
        InputError: every variable that is missing or wrong.
    """
    checks = {
        "GITHUB_REPOSITORY": (r"[\w.-]+/[\w.-]+", "owner/name"),
        "PULL_REQUEST": (r"[1-9]\d*", "the pull request's number"),
        "GITHUB_TOKEN": (r"\S+", "a token that may write comments of pull requests"),
        "GITHUB_API_URL": (r"https?://\S+", f"GitHub's REST API; {API} without it"),
    }
    given = {"GITHUB_API_URL": API, **{name: value for name, value in variables.items() if value}}
    problems = [
        Problem(field=name, found="another text" if name in given else "not set", allowed=allowed)
        for name, (pattern, allowed) in checks.items()
        if not re.fullmatch(pattern, given.get(name, ""))
    ]
    refuse(problems)
    return PullRequest(
        api=given["GITHUB_API_URL"],
        repository=given["GITHUB_REPOSITORY"],
        number=int(given["PULL_REQUEST"]),
        token=given["GITHUB_TOKEN"],
        author=given.get("REVIEW_AUTHOR", AUTHOR),
    )


def main(arguments: list[str]) -> int:
    """Post. Returns 0 also where the token may not write, after a line about it: the report is elsewhere, too."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return InputError.exit_code
    try:
        body = _report(Path(arguments[0]))
        print(pull_request_of(os.environ).post(body))
    except MayNotWriteError as error:
        print(f"no comment: this token may not write one, as that of a pull request from a fork ({error})")
    except TritonstackError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def _report(path: Path) -> str:
    found = "no such file"
    if path.is_file():
        text = path.read_text(encoding="utf-8")
        if text.startswith(MARKER):
            return text
        found = "a file that does not begin as a report"
    raise InputError([Problem(file=str(path), found=found, allowed="what `tritonstack review --markdown` wrote")])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
