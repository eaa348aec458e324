"""Print facts of the catalogue that are behind, or ahead of, the installed packages.

    .envs/main/bin/python scripts/stale_catalogue.py [--sdk FOLDER]

botocore has SageMaker's host AMIs, instance types and regions, cfn-lint which region hosts which type, the CDK the
accounts of AWS's images, the SageMaker SDK which image is where. Upgrade them, run this, and follow it. What none of
them has (drivers, CUDA, backends, vulnerabilities) is read from NVIDIA's release notes and bulletins by hand.
Ends with 1 where a fact is stale.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import botocore.session

from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.data_file import read_data
from tritonstack.catalogue.instances import load_build_machines
from tritonstack.errors import listing

PARTITIONS = ("aws", "aws-cn", "aws-us-gov")
GPU_FAMILIES = ("g", "p")
SDK_FILE = "image_uri_config/sagemaker-tritonserver.json"
STALE = "STALE    "
"""How the line of a difference begins."""


def compared(fact: str, package: str, ours: Iterable[str], theirs: Iterable[str]) -> str:
    """One kind of fact in the catalogue's file and in a package, in a line."""
    mine, other = set(ours), set(theirs)
    if mine == other:
        return f"current  {fact}: as in {package}"
    differing = {"not in the catalogue": sorted(other - mine), f"not in {package}": sorted(mine - other)}
    return f"{STALE}{fact}: {'; '.join(f'{what}: {listing(names)}' for what, names in differing.items() if names)}"


def comparisons(sdk: Path | None) -> Iterator[str]:
    """Every comparison that the installed packages allow; ``sdk``: the SDK's list of images, where there is one."""
    catalogue, session, of = load_catalogue(), botocore.session.get_session(), compared
    boto, lint = _named("botocore"), _named("cfn-lint")
    ours = set(catalogue.instances)

    def enumerated(shape: str, service: str = "sagemaker") -> set[str]:
        found: Any = session.get_service_model(service).shape_for(shape)
        return set(found.enum)

    amis = {name for name in enumerated("ProductionVariantInferenceAmiVersion") if "-gpu-" in name}
    yield of("host AMIs (host_amis.json)", boto, (ami.name for ami in catalogue.host_amis), amis)
    lists = (session.get_available_regions("sagemaker", partition_name=partition) for partition in PARTITIONS)
    yield of("regions (hosting_regions.json)", boto, catalogue.regions, (name for names in lists for name in names))
    hosted, regions = _types_by_region("hosting"), read_data("hosting_regions.json")["regions"]
    yield of("hosted GPU types by region (hosting_regions.json)", lint, _pairs(regions), _pairs(hosted))
    types = {name for names in hosted.values() for name in names}
    yield of("GPU types (instances.json)", lint, (ours | set(catalogue.omitted_types)) & types, types)
    yield of("GPU types (instances.json)", boto, ours, enumerated("ProductionVariantInstanceType") & ours)
    processing = read_data("build_machines.json")["processing"]["types"]
    offered = enumerated("ProcessingInstanceType") & ours
    yield of("build machines of Processing (build_machines.json)", boto, processing, offered)
    machines = {each.name for each in load_build_machines().machines if each.kind == "codebuild"}
    offered = enumerated("ComputeType", "codebuild") & machines
    yield of("build machines of CodeBuild (build_machines.json)", boto, machines, offered)
    yield _accounts(_named("aws-cdk-lib"), _cdk_accounts(catalogue.regions))
    if sdk is not None:
        yield from _images(json.loads(sdk.read_text(encoding="utf-8")), package=str(sdk))


def _images(document: Mapping[str, Any], *, package: str) -> Iterator[str]:
    """Which release has an image where, and in whose account, as the SageMaker SDK lists it."""
    table = load_catalogue().image_table
    listed = [release for release, kind in table.generations.items() if kind == "dlc"]
    rows = {one: row["registries"] for one, row in document["versions"].items()}
    ours = (f"{one} {at}" for one in listed if one not in table.without_region_list for at in table.regions[one])
    theirs = (f"{one} {at}" for one, registries in rows.items() for at in registries)
    yield compared("images by release and region (triton_images.json)", package, ours, theirs)
    yield _accounts(package, {at: account for registries in rows.values() for at, account in registries.items()})


def _accounts(package: str, accounts: Mapping[str, str]) -> str:
    """Accounts of images; ours in the regions that the package has too: none has all."""
    known = load_catalogue().image_table.accounts["dlc"]
    ours = (f"{region} {account}" for region, account in known.items() if region in accounts)
    theirs = (f"{region} {account}" for region, account in accounts.items())
    return compared("accounts of images (triton_images.json)", package, ours, theirs)


def _types_by_region(use: str) -> dict[str, list[str]]:
    """Region → the GPU types that cfn-lint's schemas have there."""
    package = files(f"cfnlint.data.schemas.extensions.aws_sagemaker_{use}")
    document = json.loads(package.joinpath("instancetype_enum.json").read_text(encoding="utf-8"))
    return {
        region: [name for name in schema["enum"] if name.split(".")[1].startswith(GPU_FAMILIES)]
        for region, schema in document.items()
        if isinstance(schema, dict)
    }


def _cdk_accounts(regions: Iterable[str]) -> dict[str, str]:
    from aws_cdk.region_info import RegionInfo  # noqa: PLC0415 - starts Node.js

    accounts = {region: RegionInfo.get(region).dlc_repository_account for region in regions}
    return {region: account for region, account in accounts.items() if account}


def _pairs(names: Mapping[str, Sequence[str]]) -> set[str]:
    return {f"{region} {name}" for region, types in names.items() for name in types}


def _named(package: str) -> str:
    return f"{package} {version(package)}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each comparison; 1 where one differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sdk", type=Path, metavar="FOLDER", help="where sagemaker-core, or sagemaker 2, was unpacked")
    given = parser.parse_args(arguments)
    sdk = None if given.sdk is None else next(iter(sorted(given.sdk.rglob(SDK_FILE))), None)
    found = list(comparisons(sdk))
    for each in found:
        print(each)
    if sdk is None:
        where = f"{given.sdk} has no {SDK_FILE}" if given.sdk else "no --sdk is given"
        print(
            f"not compared: images by release and region: {where} "
            "(pip install --no-deps --target FOLDER sagemaker-core, then --sdk FOLDER)"
        )
    return int(any(each.startswith(STALE) for each in found))


if __name__ == "__main__":
    sys.exit(main())
