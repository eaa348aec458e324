"""Names that several parts spell alike."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonstack import naming
from tritonstack.naming import NAME_PATTERN, ArchiveName, EndpointReference, Platform
from tritonstack.paths import REPOSITORY

names = st.from_regex(NAME_PATTERN.replace("$", r"\Z"))
digests = st.from_regex(r"\A[0-9a-f]{16}\Z")
T4 = Platform(release="24.09", gpu="T4")
ARCHIVE = ArchiveName(model="digits", digest="0123456789abcdef")


@given(model=names, digest=digests)
def test_an_archive_s_name_is_read_as_it_was_written(model: str, digest: str) -> None:
    archive = ArchiveName(model=model, digest=digest)
    assert ArchiveName.parse(str(archive)) == archive
    assert re.fullmatch(NAME_PATTERN, model)


@given(text=st.text(max_size=60))
def test_any_text_is_an_archive_s_name_or_is_not(text: str) -> None:
    found = ArchiveName.parse(text)
    assert found is None or str(found) == text


@pytest.mark.parametrize(
    "text",
    [
        "digits.0123456789abcdef.tar.gz\n", "a/digits.0123456789abcdef.tar.gz", "digits.0123456789ABCDEF.tar.gz",
        "digits.0123456789abcde.tar.gz", "digits.0123456789abcdef.tar", "-.0123456789abcdef.tar.gz",
        "digits-.0123456789abcdef.tar.gz", "Digits.0123456789abcdef.tar.gz", ".0123456789abcdef.tar.gz",
    ],
)  # fmt: skip
def test_what_is_nearly_an_archive_s_name_is_none(text: str) -> None:
    assert ArchiveName.parse(text) is None


def test_keys_and_names_are_read_as_they_were_written() -> None:
    key = naming.archive_key(endpoint="digits", platform=T4, archive=ARCHIVE)
    assert naming.stored_archive(key) == ("digits", T4, ARCHIVE)
    assert naming.stored_archive(f"{key}/more") is naming.stored_archive(key.replace("endpoints", "inputs")) is None
    assert naming.platform_of_prefix(naming.platform_prefix(endpoint="digits", platform=T4)) == T4
    cache = naming.timing_cache_key(gpu="T4", tensorrt="10.4.0")
    assert cache.startswith(naming.timing_caches_prefix(gpu="t4"))
    assert naming.tensorrt_of_timing_cache(cache) == "10.4.0"
    record = naming.release_parameter(environment="prod", endpoint="digits", model="bert")
    assert naming.released_model(record, environment="prod") == ("digits", "bert")
    assert naming.released_model("/tritonstack/prod/_artifacts/key-arn", environment="prod") is None
    reference = EndpointReference(environment="prod", endpoint="digits")
    assert naming.endpoint_of_records(reference.records) == naming.endpoint_of_records(reference.removed_records)
    assert naming.endpoint_of_records(reference.records) == "digits"


@pytest.mark.parametrize("name", ["", "*", "prod/digits", "_removed", "Prod", "digits-"])
def test_a_reference_to_an_endpoint_takes_names_alone(name: str) -> None:
    with pytest.raises(ValueError, match="is no name"):
        EndpointReference(environment="prod", endpoint=name)


OWNED = {
    "a key root of the bucket": r"[\"'](endpoints|manifests|inputs|staging|timing-caches)/",
    "the name of a serving stack": r"serving-\{",
    "the digest's pattern": r"\[0-9a-f\]\{(\{\{DIGEST_LENGTH\}\}|16)\}",
    "a variant's resource id": r"endpoint/\{[^}]*\}/variant/",
    "a type of custom resource": r"[\"']Custom::[A-Z]\w+[\"']",
    "the end of a set's key": r"\.(release|build)-set",
    "an endpoint's log group": r"ENDPOINT_LOG_GROUPS\}",
    "the prefix of engine jobs": r"\}-engine-",
}
ROUTE = ("tritonstack_local/runtime/deployed.py", "a key root of the bucket")
"""An address of the local AWS that begins as a key does."""


def test_names_that_several_parts_spell_alike_are_spelt_in_naming_alone() -> None:
    """Functions cannot import it: ``tests/test_aws_names.py`` and their own tests hold their copies."""
    spelt = []
    for top in ("app.py", "stacks", "constructs_lib", "tritonstack", "tritonstack_local", "tritonstack_capacity"):
        for path in [REPOSITORY / top] if top.endswith(".py") else sorted((REPOSITORY / top).rglob("*.py")):
            name, text = path.relative_to(REPOSITORY).as_posix(), path.read_text()
            found = [what for what, pattern in OWNED.items() if re.search(pattern, text) and (name, what) != ROUTE]
            spelt += [f"{name}: {what}" for what in found if name != "tritonstack/naming.py"]
    assert spelt == []


def test_keys_and_parameters_are_spelt_as_documented() -> None:
    assert str(T4) == "24.09-t4"
    assert str(ARCHIVE) == "digits.0123456789abcdef.tar.gz"
    assert naming.platform_prefix(endpoint="vision", platform=T4) == "endpoints/vision/24.09-t4/"
    assert (
        naming.archive_key(endpoint="vision", platform=T4, archive=ARCHIVE)
        == "endpoints/vision/24.09-t4/digits.0123456789abcdef.tar.gz"
    )
    assert (
        naming.manifest_key(endpoint="vision", platform=T4, archive=ARCHIVE)
        == "manifests/vision/24.09-t4/digits.0123456789abcdef.json"
    )
    assert naming.inputs_key(digest="0123456789abcdef") == "inputs/0123456789abcdef.tar.gz"
    record = naming.release_parameter(environment="dev", endpoint="vision", model="digits")
    assert record == "/tritonstack/dev/vision/digits"
    assert naming.artifact_parameter(environment="dev", value="key-arn") == "/tritonstack/dev/_artifacts/key-arn"
    assert naming.builds_parameter(environment="dev", value="project-name") == "/tritonstack/dev/_builds/project-name"
    assert naming.order_key(order="1a") == "staging/orders/1a.json"
    assert naming.job_prefix(run="1a") == "staging/jobs/1a/"
    assert naming.timing_cache_key(gpu="T4", tensorrt="10.4.0") == "timing-caches/t4/10.4.0/timing.cache"
    assert naming.endpoint_name(environment="dev", endpoint="vision") == "dev-vision"
    assert naming.variant_name(instance_type="ml.g4dn.xlarge") == "g4dn-xlarge"
