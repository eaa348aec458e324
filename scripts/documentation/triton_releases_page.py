"""``docs/reference/releases.md``: what the catalogue has of each Triton release, and its known vulnerabilities."""

from __future__ import annotations

from scripts.documentation.markdown import code, head, table
from tritonstack.catalogue import TritonRelease, Vulnerability, load_catalogue, model_formats

TEXT = """What an endpoint's `release` decides. A dash is what no source states for certain; every source is in
`tritonstack/catalogue/data/`. A release without an image of AWS's needs one of your own (`image`), and so does one
that is not in this table: it runs with the Python, backends and CUDA of the release before it, and `tritonstack lint`
and the synthesis warn. "ONNX operator set" is the newest that its ONNX Runtime reads, "PyTorch" and "DALI" are what
TorchScript and pipelines are read by: [what is held against them](../decisions/0019-what-the-oldest-release-reads.md).
The host AMI is the newest of the release's CUDA major version, as AWS tests its own images. "covered" is one whose CUDA
is at least the release's; one "by minor version" is of the same major version and older, which CUDA allows and
nobody has tried on SageMaker (UNVERIFIED).

`tritonstack add` gives a new endpoint {default}: the newest release whose image AWS lists for the region, and so the
one with the fewest known vulnerabilities. [Unproved](../decisions/0030-release-of-a-new-endpoint.md) is that its CUDA
runs on the driver of the host AMI. The committed environments and examples run {chosen}: the newest release with
an image of AWS's, every backend that they use, and a host AMI that covers its CUDA. The newer images fix more, and
their CUDA asks more of the driver than any host AMI has: {waiting}.

Families whose GPU not every release's CUDA knows; with an older release they are refused:

{new_gpus}

`.envs/main/bin/python scripts/stale_catalogue.py` holds the catalogue against botocore, cfn-lint, the CDK and the
SageMaker SDK, and ends with 1 where a package has what the catalogue has not, or otherwise.
"""
FIXES = """The first release that has each fix. A release has all those below whose fix is newer. Whether an attacker
can reach one depends on who may invoke the endpoint and whose models it serves: SageMaker lets no other request to the
container's port. That AWS put no fix under an older tag is UNVERIFIED.
`tritonstack lint --environment` warns where a release that fits the endpoint has more of the fixes, and notes what is
left where none has; `tritonstack review --fail-on vulnerable-release` stops what adds some.
"""


def triton_releases_page() -> str:
    """The releases, newest first, and the vulnerabilities, by the release that fixes them."""
    catalogue = load_catalogue()
    rows = [_row(release) for release in reversed(list(catalogue.releases.values()))]
    chosen = newest_covered()
    newer = [
        f"{each} (CUDA {release.cuda})" for each, release in catalogue.releases.items() if release.at_least(chosen)
    ]
    newer = [each for each in newer if each[:5] != chosen and each[:5] in catalogue.image_table.regions]
    titles = ["release", "server", "image of AWS's", "CUDA", "host AMI", "TensorRT", "ONNX Runtime"]
    titles += ["ONNX operator set", "PyTorch", "DALI", "Python", "known vulnerabilities"]
    fixes = sorted(
        catalogue.all_vulnerabilities, key=lambda each: (each.fixed_in, each.score or 0, each.id), reverse=True
    )
    parts = [
        head("Releases of Triton", source="the catalogue"),
        TEXT.format(chosen=chosen, default=catalogue.default_release(), waiting=", ".join(newer), new_gpus=_new_gpus()),
        table(titles, rows),
        "## Known vulnerabilities\n",
        FIXES,
        table(["fixed in", "vulnerability", "CVSS", "what it is", "source"], [_fix(each) for each in fixes]),
    ]
    return "\n".join(parts)


def _new_gpus() -> str:
    """Families of GPUs that not every release's CUDA knows, with the first one that does."""
    new = {each.family: each for each in load_catalogue().instances.values() if each.first_cuda}
    rows = [[each.family, each.gpu, each.compute_capability, str(each.first_cuda)] for each in new.values()]
    return table(["family", "GPU", "compute capability", "CUDA at least"], rows)


def newest_covered() -> str:
    """The newest release with an image of AWS's whose CUDA a host AMI covers outright."""
    catalogue = load_catalogue()
    return next(
        version
        for version, release in reversed(list(catalogue.releases.items()))
        if version in catalogue.image_table.regions and release.cuda
        if any(ami.covers(release) for ami in catalogue.host_amis)
    )


def _row(release: TritonRelease) -> list[str]:
    catalogue = load_catalogue()
    table_of_images = catalogue.image_table
    regions = len(table_of_images.regions.get(release.version, ()))
    image = f"{regions} regions" if regions else "none"
    if release.version in table_of_images.without_region_list:
        image += " (AWS names none; taken from its neighbours)"
    ami = catalogue.propose_host_ami(release.version)
    host = "—" if ami is None else f"{code(ami.name)}, {'covered' if ami.covers(release) else 'by minor version'}"
    known = catalogue.vulnerabilities(release.version)
    worst = f", worst {known[0].score}" if known and known[0].score is not None else ""
    libraries = [release.tensorrt, release.onnxruntime, _operator_set(release)]
    libraries += [model_formats.torch_of(release), model_formats.dali_of(release)]
    cells = [release.version, release.server_version, image, release.cuda, host, *libraries, release.python]
    return [*(cell or "—" for cell in cells), f"{len(known)}{worst}"]


def _operator_set(release: TritonRelease) -> str:
    limits = model_formats.onnx_limits(release)
    return "—" if limits is None else f"{'' if limits.is_exact else 'at most '}{limits.opset}"


def _fix(each: Vulnerability) -> list[str]:
    since = f" (since {each.since})" if each.since else ""
    return [each.fixed_in, each.id, "—" if each.score is None else str(each.score), f"{each.about}{since}", each.source]
