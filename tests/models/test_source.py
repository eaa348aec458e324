"""From names to archives: overlays, copies, whole folders; and what the effective recipe of each is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.folders import make_endpoint, make_environment, write, write_double
from tritonstack.archives.exporting import export_digest, script_options
from tritonstack.errors import InputError
from tritonstack.models.digest import model_digest
from tritonstack.models.selection import resolved_models, sources_of
from tritonstack.models.source import ArchiveSource, BuildChoice, archives_of

OVERLAYS = """\
exports: [{script: export.py, produces: [double/1/weights.bin]}]
overlays:
  plain: {}
  batched: {config: [overlays/batched.pbtxt], description: Doubles in batches.}
  small: {config: [overlays/small.pbtxt]}
  other:
    exports: [{script: other.py, produces: [double/1/other.bin]}]
    sample: {request: sample/other.json, answer: sample/answer.json}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with four overlays, of which three export alike."""
    made = write_double(tmp_path)
    with (made / "recipe.yaml").open("a") as recipe:
        recipe.write(OVERLAYS)
    write(
        made,
        {
            "export.py": "print()",
            "other.py": "print()",
            "overlays/batched.pbtxt": "dynamic_batching { }",
            "overlays/small.pbtxt": "max_batch_size: 2",
        },
    )
    return made


def overlay(folder: Path, name: str) -> ArchiveSource:
    return next(source for source in archives_of(folder) if source.overlay == name)


def add(folder: Path, text: str) -> None:
    with (folder / "recipe.yaml").open("a") as recipe:
        recipe.write(text)


def test_a_folder_selects_its_overlays_and_nothing_else(folder: Path) -> None:
    names = [source.name for source in sources_of("double", folder.parent)]
    assert names == ["double-plain", "double-batched", "double-small", "double-other"]
    (one,) = sources_of("double-batched", folder.parent)
    assert (one.folder.name, one.overlay, one.copy, one.model) == ("double", "batched", None, "double")


def test_a_base_archive_stands_beside_the_overlays_and_is_what_the_folders_name_means(folder: Path) -> None:
    alone = {source.name: model_digest(source) for source in archives_of(folder)}
    add(folder, "base_archive: true\n")
    first, *variants = archives_of(folder)
    assert (first.name, first.fragments) == (folder.name, ())
    assert {source.name: model_digest(source) for source in variants} == alone, "the variants stay as they were"
    assert [source.name for source in sources_of(folder.name, folder.parent)] == [folder.name]
    assert [source.name for source in sources_of(variants[0].name, folder.parent)] == [variants[0].name]


def test_copies_are_numbered_and_their_model_is_called_like_the_archive(tmp_path: Path) -> None:
    folder = write_double(tmp_path)
    add(folder, "copies: 3\n")
    sources = sources_of("double", folder.parent)
    assert [source.name for source in sources] == ["double-0", "double-1", "double-2"]
    (model,) = sources[1].own_models
    assert (sources[1].model, model.name, model.directory.name) == ("double-1", "double-1", "double")
    assert 'name: "double-1"' in model.config
    assert len({model_digest(source) for source in sources}) == 3
    with pytest.raises(InputError, match="double-3"):
        sources_of("double-3", folder.parent)


def test_the_effective_recipe_has_the_overlays_fields_and_the_folders_others(folder: Path) -> None:
    batched, other = overlay(folder, "batched").recipe, overlay(folder, "other").recipe
    assert (batched.description, other.description) == ("Doubles in batches.", "Doubles a number.")
    assert batched.exports[0].script == "export.py"
    assert other.exports[0].script == "other.py"
    assert other.sample.request == "sample/other.json"
    engine = "engine: {shapes: {x: {min: [1, 1], opt: [4, 1], max: [8, 1]}}}\n"
    text = (
        (folder / "recipe.yaml")
        .read_text()
        .replace("plain: {}", "plain: {engine: null}")
        .replace("small: {", "small: {exports: null, ")
    )
    (folder / "recipe.yaml").write_text(text + engine)
    plain, small = overlay(folder, "plain").recipe, overlay(folder, "small").recipe
    assert plain.engine is None, "a null takes the engine away"
    assert small.engine is not None
    assert small.exports[0].script == "export.py", "and no other field"


def test_an_unknown_name_gives_the_near_ones_with_file_and_field(folder: Path) -> None:
    with pytest.raises(InputError) as caught:
        sources_of("double-bached", folder.parent, file="environments/dev.yaml", field="endpoints[0].models[1]")
    (problem,) = caught.value.problems
    assert (problem.file, problem.field) == ("environments/dev.yaml", "endpoints[0].models[1]")
    assert problem.advice == "Did you mean double-batched?"
    assert "double-small" in problem.allowed


def test_a_name_that_two_folders_have_an_archive_of_is_refused(tmp_path: Path) -> None:
    for name, overlays in (("a", "b-c"), ("a-b", "c")):
        add(write_double(tmp_path, name), f"overlays: {{{overlays}: {{}}}}\n")
    with pytest.raises(InputError, match=r"(?s)a-b-c, which is of .*one archive a name"):
        sources_of("a-b-c", tmp_path / "model_repos")


def test_an_environment_names_every_problem_and_an_archive_that_comes_twice(folder: Path) -> None:
    environment = make_environment(make_endpoint("one", ("double", "double-plain")), make_endpoint("two", ("gone",)))
    with pytest.raises(InputError) as caught:
        resolved_models(environment, folder.parent, file=Path("dev.yaml"))
    found = {problem.field: problem.found for problem in caught.value.problems}
    assert found["endpoints[0].models[1]"] == "double-plain, which brings double-plain a second time next to double"
    assert found["endpoints[1].models[0]"].startswith("gone")


def test_overlays_have_digests_of_their_own_and_share_exports_that_are_alike(folder: Path) -> None:
    before = {source.name: model_digest(source) for source in archives_of(folder)}
    (folder / "overlays/batched.pbtxt").write_text("dynamic_batching { preferred_batch_size: 4 }")
    after = {source.name: model_digest(source) for source in archives_of(folder)}
    assert [name for name in before if before[name] != after[name]] == ["double-batched"]
    digests = {source.overlay: export_digest(source) for source in archives_of(folder)}
    assert digests["plain"] == digests["batched"]
    assert digests["small"] != digests["plain"]  # its scripts get another max_batch_size
    assert digests["other"] != digests["plain"]
    assert script_options(overlay(folder, "plain"), overlay(folder, "plain").recipe.exports[0])["archive"] == "double"


def test_a_changed_configuration_exports_nothing_again_and_a_changed_script_does(folder: Path) -> None:
    def digest() -> str:
        return export_digest(overlay(folder, "plain"))

    before = digest()
    config = folder / "double/config.pbtxt"
    config.write_text(config.read_text() + "instance_group [ { count: 2 } ]\n")
    (folder / "sample/answer.json").write_text("{}")
    assert digest() == before
    (folder / "export.py").write_text("print(1)")
    assert digest() != before


CHOICES = [BuildChoice(size=size, weights=weights) for size in ("full", "tiny") for weights in ("pretrained", "random")]


def digests(folder: Path) -> list[str]:
    """The digest for full pretrained, full random, tiny pretrained, tiny random."""
    return [model_digest(source) for choice in CHOICES for source in archives_of(folder, choice)]


def test_size_and_weights_matter_only_where_the_recipe_makes_a_difference(tmp_path: Path) -> None:
    folder = write_double(tmp_path)
    assert len(set(digests(folder))) == 1
    add(folder, "sizes: {full: {}, tiny: {layers: 1}}\n")
    full, _, tiny, _ = digests(folder)
    assert digests(folder) == [full, full, tiny, tiny]
    assert full != tiny
    add(folder, f"source: {{hub: a/b, revision: {'a' * 40}}}\n")
    assert len(set(digests(folder))) == 4


def test_the_tiny_size_is_no_part_of_the_full_one_s_digest(tmp_path: Path) -> None:
    folder = write_double(tmp_path)
    add(folder, "sizes: {tiny: {layers: 1}}\n")
    before = digests(folder)
    recipe = folder / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("layers: 1", "layers: 2"))
    after = digests(folder)
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, True, False, False]
