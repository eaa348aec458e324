"""Serialise the decoding pipeline, and decode the sample. `tritonstack build` runs this in the environment ``dali``."""

import sys

from _exporters import inception_dali, script

if __name__ == "__main__":
    sys.exit(script.run(inception_dali.export))
