"""Facts with a source: GPU instances, Triton releases, their images, host AMIs and the variables that serve reads.

The facts are data (``data/*.json``, each file with its source); the modules give them types.
"""

from tritonstack.catalogue.catalogue import Catalogue, load_catalogue
from tritonstack.catalogue.host_amis import HostAmi
from tritonstack.catalogue.images import ImageNotFoundError, TritonImage
from tritonstack.catalogue.instances import InstanceType
from tritonstack.catalogue.regions import dns_suffix, partition
from tritonstack.catalogue.releases import Backend, TritonRelease, release_order
from tritonstack.catalogue.serve_variables import ServeVariable
from tritonstack.catalogue.vulnerabilities import Vulnerability

__all__ = [
    "Backend",
    "Catalogue",
    "HostAmi",
    "ImageNotFoundError",
    "InstanceType",
    "ServeVariable",
    "TritonImage",
    "TritonRelease",
    "Vulnerability",
    "dns_suffix",
    "load_catalogue",
    "partition",
    "release_order",
]
