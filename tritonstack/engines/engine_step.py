"""Build one TensorRT plan where it is served: in the endpoint's own Triton image, on its GPU, and run it once.

One file for the Python of every Triton image (3.8 to 3.12), of the standard library alone: it is copied into the image
and started as ``python3 engine_step.py JOB``. JOB is a JSON file; its relative paths start at its own folder, which has
the graph, ``model.onnx``, and maybe the ``timing.cache`` of an earlier build and a ``calibration.cache``::

    {"release": "24.09",
     "tensorrt": ["10.4"],                     versions that were planned for, each as far as it is known
     "gpu": {"name": "A10G", "compute_capability": "8.6"},
     "cuda": "12.6.1",                         the image's, or null where it is not known
     "options": ["--fp16", ...],               trtexec's, but those that name files
     "inputs": {"x": {"file": "x.raw", "shape": [1, 4]}},   the proof's, in the type of the engine's tensor
     "more_inputs": [],                        the same for the optimisation profiles 1, 2, ...
     "measure": {"seconds": 3, "shapes": [{"x": [8, 4]}]},  of each profile, or null; 0 s: not measured
     "outputs": ["logits"],                    outputs that the plan must have
     "timing_cache": true,                     whether a cache is read and left
     "calibration_cache": false,               whether trtexec takes INT8's ranges from calibration.cache
     "timeout_seconds": 7200, "output": "output"}

In the output folder it leaves ``model.plan``, ``outputs.json`` (``[{"name", "shape", "values"}, ...]``; of the profiles
1, 2, ... ``outputs1.json``, ...), ``timing.cache``, ``trtexec.log`` and at last ``result.json``: without that file
nothing there counts. A failure leaves the log and ``result.json`` with its phase, reason and last log lines.

Exit status: 0 built; 2 the job file cannot be read; 3 this machine is not the planned one; 4 trtexec builds no plan;
5 the plan fails the proof; 6 too slow; 128 + n ended by signal n.

It always starts itself again through NVIDIA's entrypoint, where the image has one. CodeBuild runs no
image's ENTRYPOINT (aws/aws-codebuild-docker-images, issue 157), and ``ContainerEntrypoint`` of Processing replaces it;
but it is the entrypoint's shell that sets up CUDA's forward compatibility: ``/etc/shinit_v2`` tries the image's own
``libcuda`` on the machine's driver and puts it into LD_LIBRARY_PATH where it works.

``TRITONSTACK_TRTEXEC``, ``TRITONSTACK_NVIDIA_SMI`` and ``TRITONSTACK_NVIDIA_ENTRYPOINT`` name other programs than those
of the image; an empty entrypoint is none.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT
from typing import Any

TRTEXEC_PLACES = ("/usr/src/tensorrt/bin/trtexec", "/usr/src/bin/trtexec")  # NVIDIA's images

ENTRYPOINTS = ("/opt/nvidia/nvidia_entrypoint.sh", "/opt/tritonserver/nvidia_entrypoint.sh")  # newer images, older
THROUGH = "TRITONSTACK_STARTED_THROUGH"  # what this process was started through; empty: it could not be

# CUDA's major version -> the oldest driver branch that runs it, with minor version compatibility (NVIDIA, "CUDA
# Compatibility", table 1).
LEAST_DRIVERS = {11: 450, 12: 525, 13: 580}
COMPAT_STATUS, COMPAT_WORKS = "_CUDA_COMPAT_STATUS", "CUDA Driver OK"  # what /etc/shinit_v2 found

GRAPH, CALIBRATION = "model.onnx", "calibration.cache"
MESSAGE = Path("/opt/ml/output/message")  # SageMaker developer guide: "Save and Access Metadata …", ExitMessage
JOB, MACHINE, BUILD, PROOF, TIME = 2, 3, 4, 5, 6
PHASE_OF = {JOB: "job", MACHINE: "machine", BUILD: "build", PROOF: "proof", TIME: "time"}
LOADED_WITH = ("--versionCompatible",)  # options of the build that loading the plan needs as well
MADE = ("model.plan", "outputs.json", "timing.cache", "trtexec.log")  # and outputs1.json, ... of further profiles
OUTPUT: dict[str, Any] = {"stdin": DEVNULL, "stdout": PIPE, "stderr": STDOUT, "errors": "replace"}
TAIL_LINES = 40


class StepError(Exception):
    """The step cannot go on: the exit status and the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class Interrupted(BaseException):
    """A signal that ends the step: its number."""


def say(line: str, *, by: str = "engine step: ") -> None:
    """Write a line of the build's log at once."""
    sys.stdout.write(by + line.rstrip("\n") + "\n")
    sys.stdout.flush()


def read_job(path: Path) -> dict[str, Any]:
    """The job, with absolute paths and its folder. Raises StepError where it cannot be read."""
    try:
        job: dict[str, Any] = dict(json.loads(path.read_text(encoding="utf-8")))
        folder = path.resolve().parent
        job["folder"], job["output"] = folder, folder / job["output"]
        proofs = [job["inputs"], *job.get("more_inputs", [])]
        job["proofs"] = [{name: (folder / one["file"], one["shape"]) for name, one in each.items()} for each in proofs]
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise StepError(JOB, f"{path}: {error!r}") from error
    if job.get("calibration_cache") and not (folder / CALIBRATION).is_file():  # trtexec would make it up
        raise StepError(JOB, f"{path}: no {CALIBRATION} beside it")
    return job


def find_program(variable: str, places: tuple[str, ...], name: str) -> str:
    """Find a program: the one that the variable names, else the first of the places, else the one on PATH."""
    here = (place for place in places if os.access(place, os.X_OK))
    found = os.environ.get(variable) or next(here, shutil.which(name))
    if not found:
        raise StepError(MACHINE, f"{name} is not in this image (looked in {', '.join([*places, 'PATH'])})")
    return found


def output_of(argv: list[str]) -> tuple[int, str]:
    """A short program's exit status and everything it writes."""
    try:
        done = subprocess.run(argv, timeout=300, check=False, **OUTPUT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StepError(MACHINE, f"{argv[0]} does not run here: {error}") from error
    return done.returncode, done.stdout


def version_in(banner: str) -> str | None:
    """TensorRT's version in trtexec's first line: ``[TensorRT v8601]``, ``… v100300]`` or ``… v11.1.0.106]``.

    The number is NV_TENSORRT_VERSION: a digit for the minor version up to 8, two from 10 on.
    """
    match = re.search(r"\[TensorRT v(\d+(?:\.\d+)*)\]", banner)
    if not match or "." in match[1]:
        return ".".join(match[1].split(".")[:3]) if match else None
    number = int(match[1])
    major, rest = divmod(number, 1000 if number < 10000 else 10000)
    return f"{major}.{rest // 100}.{rest % 100}"


def check_trtexec(job: dict[str, Any], program: str) -> dict[str, Any]:
    """Which trtexec this is; raises StepError unless its TensorRT is one of those planned."""
    _, text = output_of([program, "--help"])
    banner = next((line for line in text.splitlines() if "[TensorRT v" in line), "")
    version = version_in(banner)
    if version is None:
        raise StepError(MACHINE, f"{program} --help does not say its TensorRT: {text.strip()[:300]!r}")
    if not any((version + ".").startswith(planned + ".") for planned in job["tensorrt"]):
        wanted = f"Triton {job['release']} with TensorRT {' or '.join(job['tensorrt'])}"
        raise StepError(MACHINE, f"planned for {wanted}, but {program} is TensorRT {version}")
    image = os.environ.get("NVIDIA_TRITON_SERVER_VERSION", job["release"])  # set in NVIDIA's images
    if image != job["release"]:
        raise StepError(MACHINE, f"planned for Triton {job['release']}, but this image is Triton {image}")
    traits = {"stand_in": "stand-in" in banner, "host_data": "--includeDataTransfers" in text}
    return {"program": program, "tensorrt": version, **traits}


def find_gpus() -> list[dict[str, Any]]:
    """Name, driver and compute capability (None with drivers that do not report it) of every visible GPU."""
    program = find_program("TRITONSTACK_NVIDIA_SMI", (), "nvidia-smi")
    status, text = output_of([program, "--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader"])
    if status != 0:  # drivers before 510 have no compute_cap; trtexec reports it when it starts
        status, text = output_of([program, "--query-gpu=name,driver_version", "--format=csv,noheader"])
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if "," in line]
    if status != 0 or not rows:
        raise StepError(MACHINE, f"{program} finds no GPU: {text.strip()[:300]!r}")
    return [{"name": row[0], "driver": row[1], "compute_capability": (*row, None)[2]} for row in rows]


def version_parts(version: str | None) -> tuple[int, ...]:
    """The leading numbers of a version (``535.161.08`` -> 535, 161, 8); empty for anything else."""
    found = re.match(r"\d+(?:\.\d+)*", version or "")
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def check_driver(job: dict[str, Any], driver: str) -> dict[str, Any]:
    """The image's CUDA, this machine's driver, and how the one runs on the other.

    Raises StepError where it does not run: trtexec would fail with a number of CUDA's that names no driver.
    """
    program = find_program("TRITONSTACK_NVIDIA_SMI", (), "nvidia-smi")
    reported = re.search(
        r"^CUDA Version\s*:\s*(\d+\.\d+)", output_of([program, "-q", "-d", "COMPUTE"])[1], re.MULTILINE
    )
    supported, image = reported[1] if reported else None, os.environ.get("CUDA_VERSION") or job["cuda"]
    status, through = os.environ.get(COMPAT_STATUS, ""), os.environ.get(THROUGH) or None
    found = {"driver": driver, "supported": supported, "image": image, "entrypoint": through}
    needed, least = version_parts(image)[:2], LEAST_DRIVERS.get((version_parts(image) or (0,))[0])
    if status == COMPAT_WORKS:
        return {**found, "by": "forward compatibility"}
    if needed and version_parts(supported) >= needed:
        return {**found, "by": "driver"}
    if least and version_parts(driver) >= (least,):
        return {**found, "by": "minor version compatibility"}
    if not needed or not least:
        return {**found, "by": "not known"}
    if through:
        why = f"and {through} reports that CUDA's forward compatibility does not work here: {status or 'no reason'}"
    else:
        why = f"and without NVIDIA's entrypoint ({' or '.join(ENTRYPOINTS)}) nothing sets up forward compatibility"
    raise StepError(
        MACHINE,
        f"this machine's driver {driver} supports CUDA {supported or 'in a version that it does not print'}; the image"
        f" of Triton {job['release']} has CUDA {image}, which needs driver {least} or newer, {why}. Build on the other"
        " service (builds.engine_builder) or on a newer GPU family, or take a release with an older CUDA.",
    )


def check_gpu(job: dict[str, Any], name: str | None, capability: str | None) -> None:
    """Raises StepError where a GPU is not the planned one; None is not known."""
    planned = job["gpu"]
    words = set(re.split(r"[^A-Za-z0-9]+", name.lower())) if name else None
    same_name = words is None or set(re.split(r"[^A-Za-z0-9]+", planned["name"].lower())) <= words
    if same_name and capability in (None, planned["compute_capability"]):
        return
    wanted = f"{planned['name']} (compute capability {planned['compute_capability']})"
    found = f"{name or 'a GPU'} (compute capability {capability or 'not known'})"
    raise StepError(MACHINE, f"planned for {wanted}, but this machine has {found}")


class Runner:
    """Runs trtexec, a line of its log at a time, until one deadline for all of its runs."""

    def __init__(self, log: Path, seconds: float) -> None:
        self.log, self.seconds = log, seconds
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._end = time.monotonic() + seconds

    def run(self, argv: list[str], *, status: int, on_line: Callable[[str], Any]) -> float:
        """Run it; returns its seconds. Raises StepError with ``status`` where it fails, with TIME past the deadline."""
        say("runs " + " ".join(argv))
        started, late = time.monotonic(), threading.Event()
        child: subprocess.Popen[str] = subprocess.Popen(argv, bufsize=1, start_new_session=True, **OUTPUT)

        def expire() -> None:
            late.set()
            end(child)

        timer = threading.Timer(max(0.0, self._end - started), expire)
        timer.daemon = True
        timer.start()
        try:
            with self.log.open("a", encoding="utf-8") as log:
                for line in child.stdout or ():
                    log.write(line)
                    self.tail.append(line.rstrip("\n"))
                    say(line, by="")
                    on_line(line)
            code = child.wait()
        finally:
            timer.cancel()
            end(child)
            timer.join()
        if late.is_set():
            raise StepError(TIME, f"trtexec was not done after {self.seconds:g} s and was ended")
        if code != 0:
            reason = next((line for line in reversed(self.tail) if "[E]" in line), "its last lines are in the log")
            raise StepError(status, f"trtexec ends with status {code}: {reason}")
        return round(time.monotonic() - started, 3)


def end(child: subprocess.Popen[str]) -> None:
    """End a program and whatever it started, which may outlive it; nothing where all are gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def read_outputs(path: Path, wanted: list[str]) -> list[dict[str, Any]]:
    """trtexec's exported outputs, each as name, shape and flat values; raises StepError where one is missing."""
    found = {}
    try:
        # C++ writes nan, -nan and inf; this JSON reader accepts NaN and Infinity.
        text = re.sub(r"(?<=[\s,\[])-?nan(?=[\s,\]])", "NaN", path.read_text(encoding="utf-8"))
        for one in json.loads(re.sub(r"(?<=[\s,\[])(-?)inf(?=[\s,\]])", r"\1Infinity", text)):
            shape = [int(length) for length in re.findall(r"\d+", str(one["dimensions"]))]
            found[one["name"]] = {"name": one["name"], "shape": shape, "values": one["values"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StepError(PROOF, f"trtexec's outputs cannot be read: {error}") from error
    missing = [name for name in wanted if name not in found]
    if missing:
        raise StepError(PROOF, f"the plan gives no {', '.join(missing)}; it gives {', '.join(found)}")
    return [found[name] for name in wanted]


def build(job: dict[str, Any], work: Path, runner: Runner, result: dict[str, Any]) -> None:
    """Build the plan in the work folder."""
    cache, plan = work / "timing.cache", work / "model.plan"
    if job["timing_cache"] and (job["folder"] / cache.name).is_file():
        shutil.copyfile(job["folder"] / cache.name, cache)
    graph = job["folder"] / GRAPH
    argv = [result["trtexec"]["program"], f"--onnx={graph}", f"--saveEngine={plan}", *job["options"]]
    argv += [f"--timingCacheFile={cache}"] if job["timing_cache"] else []
    argv += [f"--calib={job['folder'] / CALIBRATION}"] if job.get("calibration_cache") else []

    def check_line(line: str) -> None:
        found = re.search(r"\bCompute Capability: (\d+\.\d+)", line)
        if found:
            result["gpu"]["compute_capability"] = found[1]
            check_gpu(job, None, found[1])

    result["command"] = argv
    result["durations"]["build_seconds"] = runner.run(argv, status=BUILD, on_line=check_line)
    if not plan.is_file() or not plan.stat().st_size:
        raise StepError(BUILD, "trtexec ends well and leaves no plan")


def spelled(name: str) -> str:
    """An input's name as trtexec's lists take it: a colon would end it."""
    return f"'{name}'" if ":" in name else name


def loading(job: dict[str, Any], work: Path, result: dict[str, Any], number: int, shapes: dict[str, Any]) -> list[str]:
    """The command that runs the plan with a profile and shapes; the caller adds what for."""
    argv = [result["trtexec"]["program"], f"--loadEngine={work / 'model.plan'}"]
    listed = [f"{spelled(name)}:{'x'.join(map(str, shape))}" for name, shape in shapes.items()]
    argv += [f"--shapes={','.join(listed)}"] if listed else []
    argv += [f"--useProfile={number}"] if len(job["proofs"]) > 1 else []
    argv += ["--includeDataTransfers"] if result["trtexec"]["host_data"] else []
    return argv + [option for option in job["options"] if option in LOADED_WITH]


def prove(job: dict[str, Any], work: Path, runner: Runner, result: dict[str, Any]) -> None:
    """Run the plan once on the proof's inputs of each profile."""
    seconds = 0.0
    for number, inputs in enumerate(job["proofs"]):
        argv = loading(job, work, result, number, {name: shape for name, (_, shape) in inputs.items()})
        files = [f"{spelled(name)}:{file}" for name, (file, _) in inputs.items()]
        argv += [f"--loadInputs={','.join(files)}", f"--exportOutput={work / 'exported.json'}"]
        argv += ["--iterations=1", "--warmUp=0", "--duration=0"]
        if number:
            (work / "exported.json").unlink()  # of the profile before
        seconds += runner.run(argv, status=PROOF, on_line=len)
        outputs = read_outputs(work / "exported.json", job["outputs"])
        (work / outputs_name(number)).write_text(json.dumps(outputs), encoding="utf-8")
    result["durations"]["proof_seconds"] = round(seconds, 3)


def outputs_name(number: int) -> str:
    """The file with a profile's outputs."""
    return f"outputs{number}.json" if number else "outputs.json"


# samples/common/sampleReporting.cpp of NVIDIA/TensorRT, printEpilog: the same lines from 8.5 to 11.1.
FIGURE = re.compile(r"\] (Throughput|Latency|GPU Compute Time): (.+)$")
NUMBER = re.compile(r"(min|max|mean|median|percentile\((\d+)%\)) = ([0-9.eE+-]+) ms")


def read_measurement(lines: list[str]) -> dict[str, Any]:
    """What trtexec measured, from its performance summary; empty where the lines have no whole one.

    ``throughput``: queries a second, each of one batch; ``latency`` and ``gpu_compute``: milliseconds of a query, with
    and without the transfers of its tensors, by ``mean``, ``median``, ``p99``, ...
    """
    found: dict[str, Any] = {}
    for line in lines:
        match = FIGURE.search(line.rstrip())
        if match and match[1] == "Throughput":
            number = re.match(r"([0-9.eE+-]+) qps", match[2])
            found["throughput"] = float(number[1]) if number else None
        elif match:
            key = "latency" if match[1] == "Latency" else "gpu_compute"
            found[key] = {f"p{rank}" if rank else word: float(value) for word, rank, value in NUMBER.findall(match[2])}
    whole = found.get("throughput") is not None and found.get("latency") and found.get("gpu_compute")
    return found if whole else {}


def measure(job: dict[str, Any], work: Path, runner: Runner, result: dict[str, Any]) -> None:
    """Let trtexec measure the plan at each profile's optimal shapes; a failure of it is reported and fails no build."""
    wanted = job.get("measure") or {"seconds": 0, "shapes": []}
    result["measurements"] = []
    if wanted["seconds"] and result["trtexec"]["stand_in"]:
        say("not measured: a stand-in has no speed of an engine")
    elif wanted["seconds"]:
        started = time.monotonic()
        for number, shapes in enumerate(wanted["shapes"]):
            argv = [*loading(job, work, result, number, shapes), f"--duration={wanted['seconds']}"]
            lines: list[str] = []
            try:
                runner.run([*argv, "--percentile=90,95,99"], status=PROOF, on_line=lines.append)
            except StepError as error:
                say(f"profile {number} is not measured: {error}")
                break
            figures = read_measurement(lines)
            if figures:
                result["measurements"].append({"profile": number, "shapes": shapes, **figures})
            else:
                say(f"profile {number} is not measured: trtexec printed no performance summary")
        result["durations"]["measure_seconds"] = round(time.monotonic() - started, 3)


def file_record(path: Path) -> dict[str, Any]:
    """A file's size and SHA-256."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return {"bytes": path.stat().st_size, "sha256": digest.hexdigest()}


def run_job(job: dict[str, Any], work: Path, result: dict[str, Any]) -> None:
    """The whole step in the work folder; the result grows as far as the step gets."""
    runner = Runner(work / "trtexec.log", job["timeout_seconds"])
    try:
        program = find_program("TRITONSTACK_TRTEXEC", TRTEXEC_PLACES, "trtexec")
        result["trtexec"] = check_trtexec(job, program)
        gpus = find_gpus()
        for gpu in gpus:
            check_gpu(job, gpu["name"], gpu["compute_capability"])
        result["gpu"] = gpus[0]
        result["cuda"] = check_driver(job, result["gpu"]["driver"])
        say(f"TensorRT {result['trtexec']['tensorrt']} on {result['gpu']['name']}, as planned")
        cuda = result["cuda"]
        say(f"CUDA {cuda['image'] or 'not known'} with driver {cuda['driver']}, by: {cuda['by']}")
        build(job, work, runner, result)
        prove(job, work, runner, result)
        measure(job, work, runner, result)
    except StepError:
        result["log_tail"] = list(runner.tail)
        raise


def step(job: dict[str, Any]) -> int:
    """Do the job and leave its result; returns the exit status."""
    output = job["output"]
    work = output / ".engine-step"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    for stale in [output / "result.json", *(output / name for name in MADE), *output.glob("outputs?*.json")]:
        stale.unlink(missing_ok=True)
    image = {name: os.environ[name] for name in ("CUDA_VERSION", "TRT_VERSION") if name in os.environ}
    result: dict[str, Any] = {"release": job["release"], "planned_gpu": job["gpu"], "durations": {}, "image": image}
    try:
        try:
            run_job(job, work, result)
        except StepError as error:
            fail(error.status, error.reason)
            result.update(outcome="failed", phase=PHASE_OF[error.status], reason=error.reason, status=error.status)
            if (work / "trtexec.log").is_file():
                (work / "trtexec.log").replace(output / "trtexec.log")
        else:
            heed(signal.SIG_IGN)  # from here on it is soon done
            names = [*MADE, *(outputs_name(number) for number in range(1, len(job["proofs"])))]
            made = [name for name in names if (work / name).is_file()]
            result.update(outcome="built", status=0, files={name: file_record(work / name) for name in made})
            for name in made:
                (work / name).replace(output / name)
        (work / "result.json").write_text(json.dumps(result, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        (work / "result.json").replace(output / "result.json")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return int(result["status"])


def fail(status: int, reason: str) -> int:
    """Report why the step fails, also in SageMaker Processing's file for the exit message (1 KB)."""
    line = f"FAILED in phase {PHASE_OF[status]}: {reason}"
    say(line)
    with contextlib.suppress(OSError):  # elsewhere there is no such folder
        MESSAGE.write_text(line.encode()[:1000].decode(errors="ignore"), encoding="utf-8")
    return status


def heed(handler: Any) -> None:
    """Call this on SIGTERM and SIGINT."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, handler)


def interrupt(number: int, _: Any) -> None:
    """End the step; further signals do not interrupt its clean-up."""
    heed(signal.SIG_IGN)
    raise Interrupted(number)


def enter(arguments: list[str]) -> None:
    """Start this program again through NVIDIA's entrypoint, which ends in ``exec``; returns where there is none."""
    if THROUGH in os.environ:
        return
    here = next((place for place in ENTRYPOINTS if os.access(place, os.X_OK)), "")
    program = os.environ.get("TRITONSTACK_NVIDIA_ENTRYPOINT", here)
    if not program:
        say(f"starts without NVIDIA's entrypoint: not in this image ({', '.join(ENTRYPOINTS)})")
        return
    say("starts through " + program)
    os.environ[THROUGH] = program
    try:
        os.execv(program, [program, sys.executable, str(Path(__file__).resolve()), *arguments])  # noqa: S606
    except OSError as error:
        say(f"{program} does not run here: {error}; goes on without it")
        os.environ[THROUGH] = ""


def main(arguments: list[str]) -> int:
    """The program."""
    heed(interrupt)
    if len(arguments) != 1:
        return fail(JOB, "usage: python3 engine_step.py JOB.json")
    try:
        return step(read_job(Path(arguments[0])))
    except (StepError, OSError) as error:
        return fail(error.status if isinstance(error, StepError) else MACHINE, str(error))
    except Interrupted as error:
        say(f"ended by signal {error.args[0]}; nothing is left")
        return 128 + int(error.args[0])


if __name__ == "__main__":
    enter(sys.argv[1:])
    sys.exit(main(sys.argv[1:]))
