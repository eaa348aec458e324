"""``tritonstack invoke --stream``: a model's responses as they come."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import click

from tritonstack.cli.conventions import echo
from tritonstack.client.streaming import StreamEvent
from tritonstack.errors import InputError, Problem, listing, visible


def parse_parameters(texts: Sequence[str]) -> dict[str, bool | int | float | str]:
    """``name=value`` of the command line; a value is JSON's number or truth value, else text. Raises InputError."""
    found: dict[str, bool | int | float | str] = {}
    problems = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            problems.append(Problem(field="--parameter", found=text, allowed="NAME=VALUE"))
            continue
        try:
            parsed = json.loads(value)
        except ValueError:
            parsed = value
        found[name] = parsed if isinstance(parsed, bool | int | float | str) else value
    if problems:
        raise InputError(problems)
    return found


def print_events(events: Iterator[StreamEvent], *, outputs: Sequence[str], as_json: bool, on_screen: bool) -> None:
    """Print each event as it comes, and at the end their number and times.

    An event of one text is printed without a line's end, so that tokens make up the text; another one as JSON, a line
    each. With ``as_json`` every event is a line of JSON with its time. ``outputs``: what is printed; all where empty.
    """
    times: list[float] = []
    within_line = False
    try:
        for event in events:
            times.append(event.milliseconds)
            shown = _chosen(event.outputs, outputs)
            (only,) = shown.values() if len(shown) == 1 else (None,)
            if as_json:
                click.echo(json.dumps({"milliseconds": round(event.milliseconds, 3), "outputs": shown}))
            elif isinstance(only, str):
                click.echo(visible(only) if on_screen else only, nl=False)
                within_line = not only.endswith("\n")
            else:
                click.echo(json.dumps(shown, ensure_ascii=False))
    finally:
        if within_line:
            click.echo()
    echo(summary(times), err=as_json)


def _chosen(found: Mapping[str, Any], outputs: Sequence[str]) -> Mapping[str, Any]:
    unknown = [name for name in outputs if name not in found]
    if unknown:
        raise InputError([Problem(field="--output", found=", ".join(unknown), allowed=listing(sorted(found)))])
    return {name: found[name] for name in outputs} if outputs else found


def summary(times: Sequence[float]) -> str:
    """Number and times of a stream's events, in milliseconds since the request was sent."""
    if not times:
        return "no event: the model sent no response"
    gaps = [later - earlier for earlier, later in pairwise(times)]
    rest = f", then one every {sum(gaps) / len(gaps):.1f} ms" if gaps else ""
    return f"{len(times)} events: the first after {times[0]:.1f} ms{rest}; {times[-1]:.1f} ms in all"
