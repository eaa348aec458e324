"""``make gpu-check``: the document's shape, the claims beside the figures, and the limit of time; on the CPU, tiny."""

from __future__ import annotations

import ctypes
import json
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu_check.__main__ import MODELS, line, main, subjects, write
from benchmarks.gpu_check.nvml import Gpu, NvmlError, Sampler
from benchmarks.gpu_check.published import CLAIMS, Figures, Verdict, held
from benchmarks.gpu_check.schedule import BATCHES, Deadline, Measurement, Prepared, Subject, measure_all, rows_of
from tritonstack.paths import REPOSITORY

TORCH = REPOSITORY / ".envs" / "torch" / "bin" / "python"
PARAMETERS = {  # of the published models, as their hubs' pages and papers have them
    "resnet50": 25_557_032,
    "bert-base": 109_482_240,
    "bert-large": 335_141_888,
    "roberta-base": 124_645_632,
    "t5-small": 60_506_624,
}


@dataclass
class FakeRuntime:
    """Instances that take ``seconds`` a run; ``fails``: a model that cannot be loaded."""

    seconds: float = 0.001
    fails: str = ""
    slow_load: float = 0.0
    instances: int = 1
    closed: list[str] = field(default_factory=list)
    running: int = 0
    most_running: list[int] = field(default_factory=list)  # so many ran at once when a run began

    def __call__(self, subject: Subject) -> Prepared:
        """As ``Prepare``."""
        self.instances = 1
        if subject.model == self.fails:
            raise RuntimeError("CUDA out of memory.\nTried to allocate 2.00 GiB")
        time.sleep(self.slow_load)
        return Prepared(
            run=self.calls,
            add_instance=self.add if subject.runtime == "pytorch" else None,
            peak_mib=lambda: 100.0,
            load_seconds=0.5,
            parameters=336_000_000,
            weights_mib=1280.0,
            close=lambda: self.closed.append(subject.model),
        )

    def add(self) -> None:
        self.instances += 1

    def calls(self, batch: int) -> Sequence[Callable[[], object]]:
        return [self.run] * self.instances

    def run(self) -> None:
        self.running += 1
        self.most_running.append(self.running)
        time.sleep(self.seconds)
        self.running -= 1


def measured(
    given: Sequence[Subject], runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch, *, seconds: float = 100.0
) -> list[Measurement]:
    """Everything of these subjects, with short rounds."""
    for name, value in (("LOAD_SECONDS", 0.2), ("LATENCY_SECONDS", 0.01), ("WARM_UP_SECONDS", 0.0)):
        monkeypatch.setattr(f"benchmarks.gpu_check.schedule.{name}", value)
    found: list[Measurement] = []
    measure_all(given, runtime, deadline=Deadline(seconds), gpu=None, keep=found.append, batches=(1, 16))
    return found


def test_batches_precisions_and_two_instances_of_every_published_model_are_on_the_list() -> None:
    assert sorted(BATCHES) == [1, 2, 4, 8, 16, 32]
    torch = [each for each in subjects() if each.runtime == "pytorch"]
    assert {(each.model, each.precision) for each in torch} == {(m, p) for m in MODELS for p in ("fp32", "fp16")}
    rows = rows_of(Subject(model="bert-large"), BATCHES)
    assert [row.batch for row in rows if row.kind == "latency"] == [1, 16, 32, 8, 4, 2]
    assert [(row.instances, row.users) for row in rows if row.kind == "under load"] == [(1, 16), (2, 16)]


def test_under_load_each_instance_runs_one_request_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = FakeRuntime(seconds=0.01)
    found = measured([Subject(model="bert-large")], runtime, monkeypatch)
    assert [row.status for row in found] == ["measured"] * 5
    one, two = (row for row in found if row.kind == "under load")
    last = runtime.most_running[-two.runs :]
    before = runtime.most_running[: -two.runs]
    assert (max(before), max(last)) == (1, 2)
    assert one.runs > 1
    assert one.per_second is not None
    sixteen = found[2]
    assert (sixteen.batch, sixteen.runs) == (16, 1)
    assert sixteen.p50_ms is not None
    assert sixteen.per_second == pytest.approx(16_000 / sixteen.p50_ms)
    assert runtime.closed == ["bert-large"]


def test_a_model_that_fails_is_a_row_with_its_reason_and_the_others_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    given = [Subject(model="bert-large"), Subject(model="resnet50", runtime="onnxruntime")]
    found = measured(given, FakeRuntime(fails="bert-large"), monkeypatch)
    assert {row.status for row in found if row.model == "bert-large"} == {"failed"}
    assert found[0].reason == "RuntimeError: CUDA out of memory."
    others = [row for row in found if row.model == "resnet50"]
    assert [row.status for row in others] == ["measured", "measured", "measured", "measured", "skipped"]
    assert others[-1].reason == "onnxruntime is measured with one instance"


def test_nothing_begins_after_the_deadline_and_every_row_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    began = time.monotonic()
    found = measured([Subject(model=name) for name in MODELS], FakeRuntime(slow_load=30), monkeypatch, seconds=2.3)
    assert time.monotonic() - began < 20
    assert {row.status for row in found} == {"skipped"}
    assert len(found) == 5 * len(MODELS)
    assert found[0].reason.startswith("not done in 2 s")  # the load itself was interrupted
    assert found[-1].reason == "no time left of 2 s"


def row(kind: Any, **values: Any) -> Measurement:
    """A measurement of BERT large with these figures."""
    base = Measurement(model="bert-large", runtime="pytorch", precision="fp32", options="default", kind=kind)
    return replace(base, **values)


def bert_large(*, second_rate: float, second_percent: float | None) -> list[Measurement]:
    return [
        row("load", parameters=335_141_888, weights_mib=1278.5),
        row("latency", p50_ms=20.0, per_second=50.0),
        row("latency", batch=16, p50_ms=200.0, per_second=80.0),
        row("under load", users=16, p50_ms=320.0, per_second=50.0, gpu_percent=45.0),
        row("under load", instances=2, users=16, p50_ms=180.0, per_second=second_rate, gpu_percent=second_percent),
    ]


@pytest.mark.parametrize(
    ("said", "second_rate", "second_percent", "here", "verdict"),
    [
        ("two instances add", 92.0, 90.0, "1.84 times: 50 → 92 responses/s", Verdict.HOLDS),
        ("two instances add", 51.0, 90.0, "1.02 times: 50 → 51 responses/s", Verdict.FAILS),
        ("GPU utilisation", 92.0, 90.0, "45 % → 90 %", Verdict.HOLDS),
        ("GPU utilisation", 92.0, None, "GPU utilisation (NVML): this machine has no such figure", Verdict.OPEN),
        ("dynamic batching", 92.0, 90.0, "1.60 times: 50 → 80 inferences/s", Verdict.FAILS),
        ("490 a minute", 92.0, 90.0, "3,000 a minute, p50 320 ms with 16 users", Verdict.BESIDE),
        ("336 million", 92.0, 90.0, "335 million, 1.25 GiB in FP32", Verdict.HOLDS),
        ("3 times faster", 92.0, 90.0, "needs an engine", Verdict.OPEN),
        ("ONNX Runtime 168 ms", 92.0, 90.0, "resnet50 fp32 1 pytorch default latency: not on", Verdict.OPEN),
    ],
)
def test_beside_each_claim_stands_what_this_gpu_showed(
    said: str, second_rate: float, second_percent: float | None, here: str, verdict: Verdict
) -> None:
    figures = Figures(bert_large(second_rate=second_rate, second_percent=second_percent))
    [found] = [each for each in held(figures, gpu=True) if said in each.said]
    assert here in found.here
    assert found.verdict is verdict


def test_without_a_gpu_no_claim_holds_or_fails() -> None:
    rows = list(held(Figures(bert_large(second_rate=92.0, second_percent=None)), gpu=False))
    assert len(rows) == len(CLAIMS)
    assert {each.verdict for each in rows} == {Verdict.NO_GPU, Verdict.OPEN}


class FakeNvml:
    """NVML's functions, of a GPU at 40 %; ``utilization``: its return code."""

    def __init__(self, *, utilization: int = 0) -> None:
        self._utilization = utilization
        self.uuid = b""

    def nvmlInit_v2(self) -> int:  # noqa: N802 - NVML's name
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: Any, handle: Any) -> int:  # noqa: N802
        return 0

    def nvmlDeviceGetHandleByUUID(self, uuid: Any, handle: Any) -> int:  # noqa: N802
        self.uuid = uuid.value
        return 6 if uuid.value.startswith(b"GPU-") else 0  # 6: not found

    def nvmlDeviceGetUtilizationRates(self, handle: Any, found: Any) -> int:  # noqa: N802
        found._obj.gpu = 40
        return self._utilization

    def nvmlDeviceGetMemoryInfo(self, handle: Any, found: Any) -> int:  # noqa: N802
        found._obj.used = 3 * 2**30
        return 0

    def nvmlSystemGetDriverVersion(self, text: Any, length: Any) -> int:  # noqa: N802
        ctypes.memmove(text, b"570.1", 6)
        return 0


def test_utilisation_and_memory_are_sampled_of_the_gpu_that_pytorch_uses() -> None:
    library = FakeNvml()
    gpu = Gpu(uuid="1f", library=library)
    assert (library.uuid, gpu.driver()) == (b"MIG-1f", "570.1")
    with Sampler(gpu) as sampler:
        time.sleep(0.15)
    assert (sampler.percent, sampler.memory_mib, sampler.reason) == (40.0, 3072.0, "")


def test_a_mig_slice_has_memory_and_a_reason_instead_of_utilisation() -> None:
    with Sampler(Gpu(library=FakeNvml(utilization=3))) as sampler:
        time.sleep(0.05)
    assert (sampler.percent, sampler.memory_mib) == (None, 3072.0)
    assert sampler.reason == "nvmlDeviceGetUtilizationRates: not supported (a MIG slice has no utilisation)"
    with pytest.raises(NvmlError, match="cannot be loaded"):
        Gpu()


def test_a_file_is_replaced_whole_and_a_line_names_what_was_not_measured(tmp_path: Path) -> None:
    write({"measurements": [asdict(row("load"))]}, tmp_path / "new" / "figures.json")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["figures.json"]
    skipped = row("under load", users=16, status="skipped", reason="no time left of 240 s")
    assert line(skipped) == "bert-large pytorch fp32 under load, 1 of 16 users: skipped: no time left of 240 s"


def test_without_pytorch_it_says_what_is_needed_and_measures_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The environment of the tests has no PyTorch."""
    assert main(["--to", str(tmp_path / "figures.json")]) == 1
    assert "needs: a Python with PyTorch that finds an NVIDIA GPU" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SystemExit):
        main(["--seconds", "301"])


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_whole_check_on_the_cpu_writes_one_document_marked_as_no_gpus(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    options = ["--device", "cpu", "--tiny", "--batches", "1,2", "--seconds", "240", "--to", str(file)]
    done = subprocess.run(
        [TORCH, "-m", "benchmarks.gpu_check", *options], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(file.read_text())
    assert document["figures_of_a_gpu"] is False
    assert document["device"]["name"] == "CPU: no figure here is a GPU's"
    assert document["ended"] is not None
    by_model = {each["model"]: each for each in document["measurements"] if each["kind"] == "latency"}
    assert {name: each["status"] for name, each in by_model.items()} == dict.fromkeys(MODELS, "measured")
    assert {each["verdict"] for each in document["claims"]} <= {Verdict.NO_GPU.value, Verdict.OPEN.value}
    onnx = [each for each in document["measurements"] if each["runtime"] == "onnxruntime" and each["kind"] == "latency"]
    assert [each["status"] for each in onnx if each["batch"] == 1] == ["measured"] * 3


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_networks_have_the_published_numbers_of_parameters() -> None:
    script = (
        "import json, torch; from benchmarks.gpu_check.networks import network\n"
        "with torch.device('meta'):\n"  # shapes alone
        f"    print(json.dumps({{n: sum(p.numel() for p in network(n).parameters()) for n in {sorted(PARAMETERS)}}}))"
    )
    done = subprocess.run([TORCH, "-c", script], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == PARAMETERS
