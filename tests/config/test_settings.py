"""What good settings become."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
import yaml
from pydantic import BaseModel

from tests.config.environment_file import write_environment
from tritonstack.catalogue import load_catalogue
from tritonstack.cli.schema import schema_text
from tritonstack.config import (
    EndpointSettings,
    Environment,
    engines_built_on_deploy,
    load_environment,
    load_environments,
)
from tritonstack.config.triton_release import release_warnings
from tritonstack.config.yaml_loader import inner_model, parse_yaml
from tritonstack.errors import InputError

REPOSITORY = Path(__file__).parents[2]
CATALOGUE = load_catalogue()
COMMITTED = sorted((REPOSITORY / "environments").glob("*.yaml"))


def endpoint_of(folder: Path, *, header: str = "", endpoint: str = "") -> EndpointSettings:
    """The endpoint of a small environment with the given lines."""
    return load_environment(write_environment(folder, header=header, endpoint=endpoint)).endpoints[0]


def models_of(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """``model`` and every model inside its fields."""
    yield model
    for field in model.model_fields.values():
        inner = inner_model(field.annotation)
        if inner:
            yield from models_of(inner)


def test_every_field_is_described_in_the_schema_and_every_model_is_strict_and_immutable() -> None:
    models = {model.__name__: model for model in models_of(Environment)}
    assert len(models) == 30
    schema = json.loads(schema_text("environment"))
    for name, model in models.items():
        described = schema if name == "Environment" else schema["$defs"][name]
        for field, info in model.model_fields.items():
            assert len(info.description or "") > 10, (name, field)
            assert described["properties"][field]["description"] == info.description
        config = model.model_config
        assert (config["extra"], config["strict"], config["frozen"]) == ("forbid", True, True)


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_committed_environments_load_and_match_the_schema(path: Path) -> None:
    environment = load_environment(path)
    assert environment.environment == path.stem
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=../schemas/environment.schema.json\n")
    jsonschema.Draft202012Validator(json.loads(schema_text("environment"))).validate(parse_yaml(text).value)


def test_local_stays_small_and_production_is_guarded() -> None:
    environments = {row.environment: row for row in load_environments(REPOSITORY / "environments")}
    assert environments["local"].account == "123456789012"
    assert environments["local"].endpoints[0].models == ("digits-onnx", "digits-ensemble")
    assert {name for name, each in environments.items() if each.production} == {"prod", "prod-eu"}
    for prod in (environments["prod"], environments["prod-eu"]):
        assert prod.artifacts.retain
        assert all(endpoint.initial_instance_count >= 2 for endpoint in prod.endpoints)


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_committed_environments_run_the_newest_release_whose_cuda_a_host_covers(path: Path) -> None:
    for endpoint in load_environment(path).endpoints:
        release, ami = CATALOGUE.release(endpoint.release), CATALOGUE.propose_host_ami(endpoint.release)
        assert release is not None
        assert ami is not None
        assert not ami.too_old_for(release)
        assert any(each.covers(release) for each in CATALOGUE.host_amis)
        assert release.version in CATALOGUE.image_table.regions
        needed = {"tensorflow"} if "inception-ensemble-graphdef" in endpoint.models else set()
        assert needed <= release.backends
        for newer in CATALOGUE.releases.values():
            runs = newer.version in CATALOGUE.image_table.regions and needed <= newer.backends
            if newer.order > release.order and runs:
                assert not any(each.covers(newer) for each in CATALOGUE.host_amis)


VARIANTS = """mode: single-model
scaling: {minimum: 2, maximum: 4, concurrency: 3}
variants: [{name: current, model: a, weight: 3}, {name: candidate, model: b, weight: 1, instance_type: ml.g4dn.2xlarge,
"""


def test_the_documented_pools_are_taken_with_an_archive_for_each_gpu(tmp_path: Path) -> None:
    [block] = re.findall(r"```yaml\n(.*?)```", (REPOSITORY / "docs/instance-pools.md").read_text(), re.DOTALL)
    path = write_environment(tmp_path)
    document = {**parse_yaml(path.read_text()).value, "endpoints": parse_yaml(block).value}
    jsonschema.Draft202012Validator(json.loads(schema_text("environment"))).validate(document)
    [endpoint] = Environment.model_validate(document).endpoints
    assert (endpoint.instance_type, endpoint.routing_strategy) == ("ml.g5.xlarge", "LEAST_OUTSTANDING_REQUESTS")
    assert [str(each.platform) for each in endpoint.platform_settings] == ["25.09-a10g", "25.09-t4"]
    assert {each.variant_name for each in endpoint.type_settings} == {endpoint.variant_name}
    assert endpoint.variant_name.startswith("g5-xlarge-pool-")


def test_a_variant_has_the_endpoints_settings_but_for_its_own(tmp_path: Path) -> None:
    lines = VARIANTS.replace(",\n", ", scaling: {minimum: 1, maximum: 3, concurrency: 2}}]")
    path = write_environment(tmp_path, endpoint=lines, without=["models"])
    [endpoint] = load_environment(path).endpoints
    assert endpoint.models == ("a", "b")
    current, candidate = endpoint.variant_settings
    assert [each.variant_name for each in endpoint.variant_settings] == [
        "current-g4dn-xlarge",
        "candidate-g4dn-2xlarge",
    ]
    assert [each.models for each in endpoint.variant_settings] == [("a",), ("b",)]
    assert [each.initial_instance_count for each in endpoint.variant_settings] == [2, 1]
    assert current.scaling == endpoint.scaling
    assert candidate.scaling is not None
    assert candidate.scaling.maximum == 3
    validator = jsonschema.Draft202012Validator(json.loads(schema_text("environment")))
    validator.validate(parse_yaml(path.read_text()).value)
    [block] = re.findall(r"```yaml\n(.*?)```", (REPOSITORY / "docs/updates.md").read_text(), re.DOTALL)
    documented = {**parse_yaml(path.read_text()).value, "endpoints": parse_yaml(block).value}
    validator.validate(documented)
    assert [each.models for each in Environment.model_validate(documented).endpoints[0].variant_settings] == [
        ("inception-ensemble-graphdef",),
        ("inception-ensemble",),
    ]


def test_a_release_newer_than_the_catalogue_runs_with_an_own_image_and_a_warning(tmp_path: Path) -> None:
    image = "123456789012.dkr.ecr.us-east-1.amazonaws.com/triton:30.01-py3"
    endpoint = endpoint_of(tmp_path, endpoint=f'release: "30.01"\nimage: {image}')
    assert endpoint.image_uri("us-east-1") == image
    assert endpoint.inference_ami_version == "al2023-ami-sagemaker-inference-gpu-4-1"
    [warning] = release_warnings(endpoint=endpoint, region="us-east-1")
    assert "30.01 is not in the catalogue" in warning
    assert "those of 26.10" in warning


@pytest.mark.parametrize(
    ("release", "words"),
    [("24.09", ()), ("23.02", ()), ("26.04", ("lists no regions",)), ("23.07", ("taken to be those of 23.05",))],
)
def test_a_release_with_an_image_runs_and_what_is_taken_for_granted_is_warned_of(
    release: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    endpoint = endpoint_of(tmp_path, endpoint=f'release: "{release}"')
    warnings = release_warnings(endpoint=endpoint, region="us-east-1")
    assert len(warnings) == len(words)
    assert all(word in warning for word, warning in zip(words, warnings, strict=True))


def test_verbose_logging_is_off_and_the_ping_is_live_in_multi_model_mode_unless_set(tmp_path: Path) -> None:
    assert endpoint_of(tmp_path).container_environment() == {
        "SAGEMAKER_TRITON_LOG_VERBOSE": "false",
        "SAGEMAKER_TRITON_OVERRIDE_PING_MODE": "live",
        "SAGEMAKER_TRITON_PING_MODE": "live",
        "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE": "16777216",
        "SAGEMAKER_TRITON_SHM_GROWTH_BYTE_SIZE": "1048576",
    }


def test_single_model_mode_keeps_the_images_ping_unless_set(tmp_path: Path) -> None:
    single = endpoint_of(tmp_path, endpoint="mode: single-model").container_environment()
    assert not [name for name in single if "PING_MODE" in name]
    chosen = endpoint_of(tmp_path, endpoint="mode: single-model\ncontainer: {ping_mode: ready}").container_environment()
    assert chosen["SAGEMAKER_TRITON_PING_MODE"] == chosen["SAGEMAKER_TRITON_OVERRIDE_PING_MODE"] == "ready"


def test_each_setting_is_rendered_as_serve_reads_it(tmp_path: Path) -> None:
    container = (
        "{log_verbose: 2, log_info: true, log_warning: false, log_error: true, shm_default_bytes: 8388608, "
        "shm_growth_bytes: 1, thread_count: 4, buffer_manager_thread_count: 0, model_load_gpu_limit: 0.75, "
        "model_namespacing: false, ping_mode: live, default_model_name: ensemble_1, inference_type: infer, "
        "allow_metrics: true, metrics_port: 9002, allow_grpc: false, "
        "response_cache_bytes: 1048576, additional_args: [--exit-timeout-secs=1], environment: {MODE: fast}}"
    )
    endpoint = endpoint_of(tmp_path, endpoint=f'mode: single-model\nrelease: "25.04"\ncontainer: {container}')
    prefix = "SAGEMAKER_TRITON_"
    assert endpoint.container_environment() == {
        "MODE": "fast",
        prefix + "ADDITIONAL_ARGS": "--cache-config=local,size=1048576 --exit-timeout-secs=1",
        prefix + "ALLOW_GRPC": "false",
        prefix + "ALLOW_METRICS": "true",
        prefix + "BUFFER_MANAGER_THREAD_COUNT": "0",
        prefix + "DEFAULT_MODEL_NAME": "ensemble_1",
        prefix + "DISABLE_MODEL_NAMESPACING": "false",  # what disables it is the word false
        prefix + "INFERENCE_TYPE": "infer",
        prefix + "LOG_ERROR": "true",
        prefix + "LOG_INFO": "true",
        prefix + "LOG_VERBOSE": "2",
        prefix + "LOG_WARNING": "false",
        prefix + "METRICS_PORT": "9002",
        prefix + "MODEL_LOAD_GPU_LIMIT": "0.75",
        prefix + "OVERRIDE_PING_MODE": "live",
        prefix + "PING_MODE": "live",
        prefix + "SHM_DEFAULT_BYTE_SIZE": "8388608",
        prefix + "SHM_GROWTH_BYTE_SIZE": "1",
        prefix + "THREAD_COUNT": "4",
    }


@pytest.mark.parametrize(
    ("line", "rendered"),
    [
        ("host_ami: null", "al2-ami-sagemaker-inference-gpu-3-1"),
        ("host_ami: sagemaker-default\ninstance_type: ml.g6.xlarge\naccept_unlisted_instance_type: true", None),
        ("release: '25.04'", "al2-ami-sagemaker-inference-gpu-3-1"),
        (
            "release: '25.04'\ninstance_type: ml.g7e.2xlarge\nmode: single-model",
            "al2023-ami-sagemaker-inference-gpu-4-1",
        ),
        ("host_ami: al2023-ami-sagemaker-inference-gpu-4-1", "al2023-ami-sagemaker-inference-gpu-4-1"),
    ],
)
def test_the_release_proposes_the_host_and_a_setting_decides(line: str, rendered: str | None, tmp_path: Path) -> None:
    assert endpoint_of(tmp_path, endpoint=line).inference_ami_version == rendered


def test_where_sagemakers_driver_is_undocumented_there_is_a_warning(tmp_path: Path) -> None:
    lines = "host_ami: sagemaker-default\ninstance_type: ml.g6e.xlarge\naccept_unlisted_instance_type: true"
    [warning] = release_warnings(endpoint=endpoint_of(tmp_path, endpoint=lines), region="us-east-1")
    assert "host_ami" in warning
    assert "g6e" in warning


def test_an_unlisted_type_can_be_accepted(tmp_path: Path) -> None:
    lines = "instance_type: ml.g6.xlarge\naccept_unlisted_instance_type: true"
    assert endpoint_of(tmp_path, endpoint=lines).instance.gpu == "L4"


def test_a_production_multi_model_endpoint_starts_with_two_instances_unless_set(tmp_path: Path) -> None:
    assert endpoint_of(tmp_path, header="production: true").initial_instance_count == 2
    assert endpoint_of(tmp_path, header="production: true", endpoint="mode: single-model").initial_instance_count == 1
    assert endpoint_of(tmp_path).initial_instance_count == 1


def test_a_folder_without_environments_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="one file for each environment"):
        load_environments(tmp_path)


def test_problems_of_all_files_are_reported_together(tmp_path: Path) -> None:
    write_environment(tmp_path, header="region: us-east-9")
    write_environment(tmp_path, header="environment: dev\nproduction: 1", name="dev")
    with pytest.raises(InputError) as caught:
        load_environments(tmp_path)
    assert [problem.field for problem in caught.value.problems] == ["production", "region"]


def with_builds(folder: Path, builds: str) -> Environment:
    return load_environment(write_environment(folder, header=f"builds: {builds}"))


@pytest.mark.parametrize(
    ("given", "needs_engine", "built"),
    [
        ("{}", True, True),
        ("{}", False, False),
        ("{on_deploy: null}", True, True),
        ("{on_deploy: false}", True, False),
        ("{on_deploy: true}", False, True),
    ],
)
def test_a_deployment_builds_where_an_engine_is_needed_unless_the_file_decides(
    tmp_path: Path, given: str, needs_engine: bool, built: bool
) -> None:
    assert engines_built_on_deploy(with_builds(tmp_path, given), needs_engine) is built


def test_the_data_capture_page_shows_what_dev_has() -> None:
    [block] = re.findall(r"```yaml\n(.*?)```", (REPOSITORY / "docs/data-capture.md").read_text(), re.DOTALL)
    captures = [each.data_capture for each in load_environment(REPOSITORY / "environments/dev.yaml").endpoints]
    [capture] = [each for each in captures if each is not None]
    assert yaml.safe_load(block) == {"data_capture": capture.model_dump()}
