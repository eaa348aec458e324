"""One engine from its job to its output: the timing cache fetched, the job run, the cache kept."""

from __future__ import annotations

import shutil
from pathlib import Path

from tritonstack.archives.bucket import ArtifactBucket
from tritonstack.archives.programs import Report
from tritonstack.engines.builders import Builder
from tritonstack.engines.engine_failure import EngineFailedError, EngineStoppedError
from tritonstack.engines.runners import EngineRunner, run_name
from tritonstack.engines.timing_cache import drop_timing_cache, fetch_timing_cache, keep_timing_cache


def build_engine(
    job: Path,
    output: Path,
    *,
    model: str,
    environment: str,
    builder: Builder,
    runner: EngineRunner,
    bucket: ArtifactBucket,
    report: Report,
) -> None:
    """Build one engine; its output is in ``output`` then.

    A timing cache that TensorRT does not read may end trtexec: then the engine is built once more without it.

    Raises as ``EngineRunner.run``.
    """
    gpu = builder.machine.gpu
    before = fetch_timing_cache(bucket, job, gpu=gpu, report=report)
    try:
        runner.run(name=run_name(environment=environment, model=model), job=job, output=output, report=report)
    except EngineStoppedError:
        raise
    except EngineFailedError as error:
        if before is None or not _is_about_the_cache(error):
            raise
        report("TensorRT does not read the timing cache; once more without it")
        drop_timing_cache(job)
        before = None
        shutil.rmtree(output, ignore_errors=True)
        runner.run(name=run_name(environment=environment, model=model), job=job, output=output, report=report)
    keep_timing_cache(bucket, output, gpu=gpu, before=before, report=report)


def _is_about_the_cache(error: EngineFailedError) -> bool:
    """Whether TensorRT's words speak of the timing cache (``TimingCache``, ``timing cache``) as an error."""
    lines = [error.reason, *(line for line in error.log_tail if "[E]" in line)]
    return any("timingcache" in line.lower().replace(" ", "") for line in lines)
