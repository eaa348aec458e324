"""What an environment's fields must be to each other, and to what the catalogue knows.

Each check yields every finding it can make about the settings it is given; none stops at the first.
"""

from tritonstack.config.checks.alarms import check_prices, check_thresholds
from tritonstack.config.checks.archives import check_archives, with_archives, with_default_models
from tritonstack.config.checks.builds import check_builds
from tritonstack.config.checks.endpoint import check_endpoint
from tritonstack.config.checks.environment import check_names_across, check_repeated_names, check_site
from tritonstack.config.checks.load_test import check_load_test
from tritonstack.config.checks.network import check_network
from tritonstack.config.checks.release import release_warnings
from tritonstack.config.checks.site import Site

__all__ = [
    "Site",
    "check_archives",
    "check_builds",
    "check_endpoint",
    "check_load_test",
    "check_names_across",
    "check_network",
    "check_prices",
    "check_repeated_names",
    "check_site",
    "check_thresholds",
    "release_warnings",
    "with_archives",
    "with_default_models",
]
