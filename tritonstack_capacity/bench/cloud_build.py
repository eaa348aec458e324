"""Program of a load test's build: runs ``capacity bench`` by its settings, uploads results as they come.

``python -m tritonstack_capacity.bench.cloud_build BUCKET TEST``. Each load's results are there before the next: a build
that is stopped leaves what it had measured.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import boto3

from tritonstack.naming import load_test_prefix

FOLDER = Path("load-test-results")
LOOK_SECONDS = 5.0


def main(bucket: str, test: str, *, s3: Any = None, command: tuple[str, ...] = ()) -> int:
    """Run the test; bench's exit code.

    Without ``s3``, one is made with the build's role; ``command`` is run in place of ``tritonstack capacity bench``.
    """
    client = s3 or boto3.client("s3")
    prefix = load_test_prefix(test=test)
    settings = json.loads(client.get_object(Bucket=bucket, Key=f"{prefix}settings.json")["Body"].read())
    bench = command or (sys.executable, "-m", "tritonstack", "capacity", "bench")
    done: dict[str, bytes] = {}

    def upload() -> None:
        """Upload new and changed files to the bucket."""
        for path in sorted(FOLDER.glob("[!.]*")):
            content = path.read_bytes()
            if done.get(path.name) != content:
                client.put_object(Bucket=bucket, Key=f"{prefix}{path.name}", Body=content)
                done[path.name] = content

    process = subprocess.Popen([*bench, *settings["options"], "--to", str(FOLDER)], stdin=subprocess.DEVNULL)
    while True:
        try:
            code = process.wait(timeout=LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            upload()
            continue
        upload()
        return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
