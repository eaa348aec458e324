"""Rules about fields that a release does not know yet: its reader refuses the whole ``config.pbtxt``.

Source: the message definitions inside of server 2.51.0 (release 24.10), against those of tritonclient 2.73.0.
"""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.models.lint.finding import Finding
from tritonstack.models.lint.place import at_line
from tritonstack.models.lint.view import ModelView, RepositoryView

UNKNOWN_UP_TO = "24.10"
"""The last release that is known not to have these fields."""

_IN_MODEL = "model_metrics"
_IN_ENSEMBLE = "max_inflight_requests"


def check(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """The fields that the release asked for does not know."""
    release = view.target.release
    if release is None or release.version > UNKNOWN_UP_TO:  # both are YY.MM
        return
    node = model.config.node
    scheduling = node.node("ensemble_scheduling")
    places = [(_IN_MODEL, node), (_IN_ENSEMBLE, scheduling)]
    for field, message in places:
        if message is not None and message.has(field):
            allowed = f"no {field}: release {release.version} does not know it"
            yield at_line(
                model, message.line_of(field), "field-newer", f"{field} in release {release.version}", allowed
            )
