"""The keys of every local AWS that tests start without the command line: known, so that their clients have them."""

from __future__ import annotations

from tritonstack_local.keys import TOKEN_HEADER, LocalKeys

KEYS = LocalKeys(access_key_id="testing", secret_access_key="testing", token="of-the-tests")
OWN = {TOKEN_HEADER: KEYS.token}
"""Headers of requests to the routes of emulator and runtime that are not AWS's."""
