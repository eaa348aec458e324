"""``python -m tritonstack``."""

from tritonstack.cli.root import main

main()
