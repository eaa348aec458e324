"""A load test's objects in the bucket, seen from the person's machine."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.errors import WorkFailedError
from tritonstack.measurement_columns import CONFIGURATION
from tritonstack.naming import load_test_prefix
from tritonstack_capacity.bench.document import THIS_MACHINE, BenchDocument
from tritonstack_capacity.bench.measurements_csv import measurements_csv
from tritonstack_capacity.bench.page import page
from tritonstack_capacity.bench.recommended_page import is_recommended, recommended_page
from tritonstack_capacity.bench.results_folder import CSV, JSON, PAGE, read_results

GONE = frozenset({"404", "NoSuchKey"})


class TestObjects:
    """Plan and results of one test.

    Attributes:
        bucket: where they lie.
        url: the folder that they lie in.
    """

    __test__ = False  # no test of ours, whatever its name begins with

    def __init__(self, s3: Any, *, bucket: str, test: str) -> None:
        """``test``: its id."""
        self._s3, self.bucket, self._prefix = s3, bucket, load_test_prefix(test=test)
        self.url = f"s3://{bucket}/{self._prefix}"

    def put_plan(self, plan: dict[str, Any]) -> None:
        """Write the plan."""
        body = json.dumps(plan, indent=1).encode()
        self._s3.put_object(
            Bucket=self.bucket, Key=f"{self._prefix}plan.json", Body=body, ContentType="application/json"
        )

    def exists(self, name: str) -> bool:
        """Whether the test has such an object."""
        return self._read(name) is not None

    def fetch(self, folder: Path, *, local: bool) -> bool:
        """Write the results into ``folder``; whether there were any.

        Those of Inference Recommender get their page here: what gathers them writes document and table alone.
        ``local``: they are of the local AWS. Then the document says so, and what was measured here bears the name of no
        instance type of SageMaker's.

        Raises:
            WorkFailedError: they cannot be read there or written here; they stay in the bucket.
        """
        try:
            return self._fetch(folder, local=local)
        except OSError as error:
            why = error.strerror or error
            raise WorkFailedError(
                f"{folder}: the results of the load test cannot be written: {why}\n  they are in {self.url}"
            ) from error
        except (BotoCoreError, ClientError) as error:
            raise WorkFailedError(
                f"the results of the load test cannot be fetched: {error}\n  they are in {self.url}"
            ) from error

    def _fetch(self, folder: Path, *, local: bool) -> bool:
        found = {name: content for name in (CSV, PAGE, JSON) if (content := self._read(name)) is not None}
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in found.items():
            _put(folder / name, content)
        if JSON not in found:
            return False
        document = read_results(folder / JSON)
        if local:
            document = _mark_local(folder, document)
        if is_recommended(document):
            _put(folder / PAGE, recommended_page(document).encode())
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
    _put(folder / JSON, (json.dumps(document.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n").encode())
    table = _called_constructed(folder / CSV) if recommended else measurements_csv(document)
    _put(folder / CSV, table.encode())
    if not recommended:
        _put(folder / PAGE, page(document).encode())  # the build's own says that it called AWS
    return document


def _called_constructed(file: Path) -> str:
    """The table with names that say what its figures are: nobody sizes a fleet by them unawares."""
    with file.open(newline="") as lines:
        reader = csv.DictReader(lines)
        rows = [{**row, CONFIGURATION: f"{row[CONFIGURATION]} (constructed)"} for row in reader]
    text = io.StringIO()
    writer = csv.DictWriter(text, reader.fieldnames or (), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _put(path: Path, content: bytes) -> None:
    """To a temporary name, then moved."""
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_bytes(content)
    temporary.replace(path)
