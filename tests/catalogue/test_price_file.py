"""A project's prices.json: one text for the same prices, every fault of it at once, never half a file."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonstack.catalogue.price_file import (
    ListedPrice,
    PriceFile,
    RegionPrices,
    parse_price_file,
    read_price_file,
)
from tritonstack.errors import InputError
from tritonstack.paths import write_text
from tritonstack_capacity.price_list import price_file_text

SCHEMA = Path(__file__).parents[2] / "schemas/prices.schema.json"
ROWS = st.builds(
    ListedPrice,
    usd_per_hour=st.floats(min_value=0, exclude_min=True, allow_infinity=False, allow_nan=False),
    sku=st.text(min_size=1),
    usage_type=st.just("USE1-Host:ml.g4dn.xlarge"),
    effective=st.just("2026-11-01"),
    published=st.sampled_from([None, "2026-10-01T00:00:00Z"]),
    listed=st.booleans(),
)
FILES = st.builds(
    PriceFile,
    regions=st.dictionaries(
        st.sampled_from(["us-east-1", "eu-west-3", "ap-south-1"]),
        st.builds(
            RegionPrices,
            published=st.just("2026-11-20T02:56:06Z"),
            version=st.text(min_size=1),
            types=st.dictionaries(st.sampled_from(["ml.g4dn.xlarge", "ml.g5.2xlarge", "ml.p5.48xlarge"]), ROWS),
        ),
    ),
)
SMALL = PriceFile(
    regions={
        "us-east-1": RegionPrices(
            published="2026-11-20T02:56:06Z",
            version="1",
            types={"ml.g4dn.xlarge": ListedPrice(usd_per_hour=0.5, sku="A", usage_type="u", effective="2026-11-01")},
        )
    }
)


@given(FILES)
def test_what_is_written_is_read_again_and_is_of_the_schema(prices: PriceFile) -> None:
    text = price_file_text(prices)
    assert parse_price_file(text, file="prices.json") == prices
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(json.loads(text))
    turned = PriceFile(
        regions={
            region: found.model_copy(update={"types": dict(reversed(found.types.items()))})
            for region, found in reversed(prices.regions.items())
        }
    )
    assert price_file_text(turned) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["Invalid JSON"]),
        ("[]", ["prices.json"]),
        ('{"regions": {}, "prices": 1}', ["prices.json: prices", "Extra inputs"]),
        (
            '{"regions": {"us-east-1": {"published": "now", "version": "", "types": []}}}',
            ["published", "version", "types"],
        ),
        (price_file_text(SMALL).replace("0.5", "0"), ["usd_per_hour", "greater than 0"]),
        (price_file_text(SMALL).replace("0.5", "-1"), ["usd_per_hour", "greater than 0: -1"]),
        (price_file_text(SMALL).replace("0.5", "NaN"), ["usd_per_hour", "finite"]),
        (price_file_text(SMALL).replace("0.5", '"0.5"'), ["usd_per_hour", "'0.5'"]),
        (price_file_text(SMALL).replace("ml.g4dn.xlarge", "g4dn"), ["regions.us-east-1.types.g4dn"]),
        (price_file_text(SMALL).replace('"USD"', '"CNY"'), ["currency", "'CNY'"]),
    ],
)
def test_every_fault_is_reported_by_its_field_with_what_to_do(text: str, words: list[str], tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    file.write_text(text)
    with pytest.raises(InputError) as refused:
        read_price_file(file)
    for word in (*words, "tritonstack capacity prices update", "schemas/prices.schema.json"):
        assert word in str(refused.value)


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "prices.json"
    file.write_text("old")

    def interrupt(_self: Path, _target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_text(file, "new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("prices.json", "old")]
