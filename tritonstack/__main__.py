"""``python -m tritonstack``."""

from tritonstack.cli import main

main()
