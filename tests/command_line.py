"""The command line within the test's process."""

from __future__ import annotations

from click.testing import CliRunner, Result

from tritonstack.cli.root import root
from tritonstack.errors import TritonstackError


def run(*arguments: str, typed: str = "") -> Result:
    """Run ``tritonstack`` with these arguments; an error for the user is in ``exception``, any other is raised.

    ``typed``: its standard input.
    """
    done = CliRunner().invoke(root, list(arguments), standalone_mode=False, input=typed)
    if done.exception is not None and not isinstance(done.exception, TritonstackError):
        raise done.exception
    return done
