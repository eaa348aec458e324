"""The CDK app: one stage for each file under environments/. What it does, and its context values: stacks/app.py."""

import sys
from pathlib import Path

from stacks.app import main

if __name__ == "__main__":
    sys.exit(main(root=Path(__file__).resolve().parent))
