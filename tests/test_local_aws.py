"""The local AWS is an optional package."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tritonstack import extensions, local_aws
from tritonstack.errors import InputError


@pytest.fixture
def not_installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A wheel without the extra ``local``."""
    monkeypatch.setattr(extensions, "find_spec", lambda _name: None)
    for name in [name for name in sys.modules if name.startswith("tritonstack_local.plugin")]:
        monkeypatch.delitem(sys.modules, name)
    local_aws.installed.cache_clear()
    yield
    local_aws.installed.cache_clear()


def test_it_is_found_by_its_entry_point() -> None:
    package = local_aws.installed()
    assert package is not None
    assert {"python", "onnxruntime", "tensorrt"} <= package.BACKENDS


def test_without_it_none_runs_and_what_needs_one_says_how_to_install_it(not_installed: None) -> None:
    assert local_aws.find_local_aws() is None
    with pytest.raises(InputError, match=r"pip install 'tritonstack\[local\]'"):
        local_aws.require_local_aws()
