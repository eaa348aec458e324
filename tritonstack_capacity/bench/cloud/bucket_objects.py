"""Objects of a load test in the bucket: its settings and payloads, and the results that are fetched from there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.errors import WorkFailedError
from tritonstack.naming import load_test_prefix
from tritonstack.paths import write_text
from tritonstack_capacity.bench.cloud.configurations import Configuration
from tritonstack_capacity.bench.document import BenchDocument, is_recommended, measurements_csv
from tritonstack_capacity.bench.page import results_page
from tritonstack_capacity.bench.results_folder import CSV, JSON, PAGE, read_results
from tritonstack_capacity.csv_file import CONSTRUCTED_MARK, THIS_MACHINE

GONE = frozenset({"404", "NoSuchKey"})


class TestObjects:
    """Settings and results of one test.

    Attributes:
        bucket: where they lie.
        url: the folder that they lie in.
    """

    __test__ = False  # no test of ours, whatever its name begins with

    def __init__(self, s3: Any, *, bucket: str, test: str) -> None:
        """``test``: its id."""
        self._s3, self.bucket, self._prefix = s3, bucket, load_test_prefix(test=test)
        self.url = f"s3://{bucket}/{self._prefix}"

    def put_settings(self, settings: dict[str, Any]) -> None:
        """Write the settings."""
        body = json.dumps(settings, indent=1).encode()
        self._s3.put_object(
            Bucket=self.bucket, Key=f"{self._prefix}settings.json", Body=body, ContentType="application/json"
        )

    def read_settings(self) -> dict[str, Any] | None:
        """The settings, or None where there is no such test."""
        content = self._read("settings.json")
        found: dict[str, Any] | None = None if content is None else json.loads(content)
        return found

    def put_payloads(self, configurations: Sequence[Configuration]) -> None:
        """Write the packed sample requests."""
        for one in configurations:
            bucket, _, key = one.payload_url.removeprefix("s3://").partition("/")
            self._s3.put_object(Bucket=bucket, Key=key, Body=one.payload)

    def exists(self, name: str) -> bool:
        """Whether the test has such an object."""
        return self._read(name) is not None

    def fetch(self, folder: Path, *, local: bool) -> bool:
        """Write the results into ``folder``, with their page; whether there were any.

        ``local``: they are of the local AWS. Then the document states it, and a measurement here has the name of no
        instance type of SageMaker's.

        Raises WorkFailedError: they cannot be read there or written here; they stay in the bucket.
        """
        try:
            return self._fetch(folder, local=local)
        except OSError as error:
            why = error.strerror or error
            said = f"{folder}: the results of the load test cannot be written: {why}"
            raise WorkFailedError(f"{said}\n  they are in {self.url}") from error
        except (BotoCoreError, ClientError) as error:
            said = f"the results of the load test cannot be fetched: {error}"
            raise WorkFailedError(f"{said}\n  they are in {self.url}") from error

    def _fetch(self, folder: Path, *, local: bool) -> bool:
        found = {name: content for name in (CSV, JSON) if (content := self._read(name)) is not None}
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in found.items():
            write_text(folder / name, content.decode())
        if JSON not in found:
            return False
        document = read_results(folder / JSON)
        if local:
            document = _mark_local(folder, document)
        write_text(folder / PAGE, results_page(document))
        return True

    def _read(self, name: str) -> bytes | None:
        try:
            answer = self._s3.get_object(Bucket=self.bucket, Key=f"{self._prefix}{name}")
        except ClientError as error:
            if error.response["Error"]["Code"] in GONE:
                return None
            raise
        content: bytes = answer["Body"].read()
        return content


def _mark_local(folder: Path, document: BenchDocument) -> BenchDocument:
    recommended = is_recommended(document)
    results = [
        each if recommended else each.model_copy(update={"instance_type": THIS_MACHINE, "instance_count": 1})
        for each in document.results
    ]
    document = document.model_copy(update={"local": True, "results": results})
    write_text(folder / JSON, json.dumps(document.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n")
    if recommended:
        # Names of configurations come first: no fleet is sized by such a row unawares.
        head, *rows = (folder / CSV).read_text().splitlines()
        table = "\n".join([head, *(row.replace(",", f"{CONSTRUCTED_MARK},", 1) for row in rows), ""])
    else:
        table = measurements_csv(document)
    write_text(folder / CSV, table)
    return document
