"""The catalogue's data files agree with themselves and with each other."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import tritonstack.catalogue
from tritonstack.catalogue import load_catalogue, release_order
from tritonstack.catalogue.data_file import read_data
from tritonstack.config.container import ContainerSettings

FOLDER = Path(tritonstack.catalogue.__file__).parent / "data"
FILES = sorted(path.name for path in FOLDER.glob("*.json"))
CATALOGUE = load_catalogue()


def _no_repeated_key(pairs: list[tuple[str, object]]) -> dict[str, object]:
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), sorted({name for name in names if names.count(name) > 1})
    return dict(pairs)


@pytest.mark.parametrize("name", FILES)
def test_every_data_file_names_its_source_and_repeats_no_key(name: str) -> None:
    document = json.loads((FOLDER / name).read_text(encoding="utf-8"), object_pairs_hook=_no_repeated_key)
    assert len(document["source"]) > 20


@pytest.mark.parametrize("name", CATALOGUE.instances)
def test_every_type_is_whole_and_hosted_somewhere(name: str) -> None:
    row = CATALOGUE.instances[name]
    assert re.fullmatch(r"ml\.[a-z0-9-]+\.[a-z0-9]+", name)
    assert re.fullmatch(r"\d+\.\d", row.compute_capability)
    assert row.gpu_count in (1, 2, 4, 8)
    assert (row.first_cuda is not None) == (row.architecture == "Blackwell")
    assert min(row.vcpu, row.memory_gib, row.gpu_memory_mib, row.local_nvme_gb) > 0
    assert row.regions


def test_every_hosted_type_is_in_the_catalogue_or_left_out_with_a_reason() -> None:
    hosted = {name for names in read_data("hosting_regions.json")["regions"].values() for name in names}
    omitted = CATALOGUE.omitted_types
    assert hosted == set(CATALOGUE.instances) | (hosted & set(omitted))
    assert not set(CATALOGUE.instances) & set(omitted)
    assert all(len(reason) > 20 for reason in omitted.values())


def test_types_listed_for_multi_model_mode_are_in_the_catalogue_and_have_one_gpu() -> None:
    listed = read_data("instances.json")["multi_model_types"]
    assert listed
    assert all(CATALOGUE.instances[name].gpu_count == 1 for name in listed)
    assert {row.name for row in CATALOGUE.instances.values() if row.multi_model} == set(listed)


def test_every_release_with_an_image_has_a_row_or_a_reason() -> None:
    with_image = set(CATALOGUE.image_table.regions)
    without_row = set(CATALOGUE.images_without_a_row)
    assert {release for release in with_image if CATALOGUE.release(release) is None} == without_row


def test_every_vulnerability_names_its_release_and_its_source() -> None:
    document = read_data("vulnerabilities.json")
    assert {row["bulletin"] for row in document["cves"].values()} == set(document["bulletins"])
    assert len(CATALOGUE.all_vulnerabilities) == len(document["cves"]) + len(document["front_end"])
    for each in CATALOGUE.all_vulnerabilities:
        assert release_order(each.since or "19.01") < release_order(each.fixed_in)
        assert (each.score is not None) == each.id.startswith("CVE-")
        assert each.score is None or 0 < each.score <= 10
        assert len(each.source) > 20
        assert len(each.about) > 10


def test_every_image_region_has_an_account_and_is_a_known_region() -> None:
    table = CATALOGUE.image_table
    for release, regions in table.regions.items():
        accounts = table.accounts[table.generations[release]]
        assert regions <= set(accounts), release
        assert all(re.fullmatch(r"\d{12}", account) for account in accounts.values())
        assert regions <= set(CATALOGUE.regions), release


def test_releases_are_in_order_of_age_and_so_are_their_servers() -> None:
    rows = list(CATALOGUE.releases.values())
    assert [row.order for row in rows] == sorted(row.order for row in rows)
    servers = [tuple(int(part) for part in row.server_version.split(".")) for row in rows]
    assert servers == sorted(set(servers))


def test_releases_never_go_back_in_cuda_or_python() -> None:
    rows = list(CATALOGUE.releases.values())
    cuda = [tuple(int(part) for part in row.cuda.split(".")[:2]) for row in rows if row.cuda]
    python = [tuple(int(part) for part in row.python.split(".")) for row in rows]
    assert cuda == sorted(cuda)
    assert python == sorted(python)


def test_every_backend_bound_is_a_release_and_every_platform_names_a_backend() -> None:
    for backend in CATALOGUE.backends.values():
        assert all(release_order(bound) for bound in (backend.since, backend.last) if bound)
    assert set(CATALOGUE.platforms.values()) <= set(CATALOGUE.backends)


def test_every_variable_has_a_setting_or_is_the_platforms_own_and_every_setting_a_variable() -> None:
    for variable in CATALOGUE.serve_variables.values():
        assert release_order(variable.since)
        assert (variable.field is None) == (variable.scope == "platform"), variable.name
        assert variable.field is None or variable.field in ContainerSettings.model_fields
    rendered = {variable.field for variable in CATALOGUE.serve_variables.values()}
    # The first are variables themselves; the second is an argument within SAGEMAKER_TRITON_ADDITIONAL_ARGS.
    assert set(ContainerSettings.model_fields) - rendered == {"environment", "response_cache_bytes"}
