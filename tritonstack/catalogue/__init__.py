"""Facts with a source: GPU instances, Triton releases, their images, host AMIs and the variables that serve reads.

The facts are data (``data/*.json``, each file with its source); the modules give them types.
"""

from tritonstack.catalogue.catalogue import Catalogue, load_catalogue
from tritonstack.catalogue.instances import InstanceType, dns_suffix, partition
from tritonstack.catalogue.options import ServeVariable
from tritonstack.catalogue.releases import (
    Backend,
    HostAmi,
    ImageNotFoundError,
    TritonRelease,
    Vulnerability,
    release_order,
)

__all__ = [
    "Backend",
    "Catalogue",
    "HostAmi",
    "ImageNotFoundError",
    "InstanceType",
    "ServeVariable",
    "TritonRelease",
    "Vulnerability",
    "dns_suffix",
    "load_catalogue",
    "partition",
    "release_order",
]
