"""An endpoint gets another Triton release: every recorded digest is there for it before it moves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.calls import Callers, body
from tests.e2e.engine_failures import same_answer, tritonstack, versions
from tests.e2e.engines import T4, TINY_ENGINE, EngineProject
from tests.e2e.project import Project
from tritonstack.naming import ArchiveName, Platform, archive_key
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]
NAME, ENDPOINT, ENGINE, PLAIN = "changing", "moving", "moved-engine", "moved-plain"
NEW = Platform(release="24.05", gpu="t4")
"""The same Python as the old one: what needs Python alone is copied."""
EXPORTED = "import pathlib\nwith pathlib.Path({path!r}).open('a') as told: told.write('exported ')\n"


def write(engines: EngineProject, platform: Platform) -> None:
    engines.write({ENDPOINT: (T4, [ENGINE, PLAIN])})
    path = engines.project.root / "environments" / f"{NAME}.yaml"
    path.write_text(path.read_text().replace(f'"{T4.release}"', f'"{platform.release}"'))


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file to which every export of the engine's model adds a word."""
    return tmp_path_factory.mktemp("exports") / "exported"


@pytest.fixture(scope="module")
def engines(project: Project, local_aws: LocalAws, exported: Path) -> EngineProject:
    """Two models, of which a first and then a second release were deployed."""
    made = EngineProject(project, local_aws, NAME)
    for number in (1, 2):
        made.add_model(ENGINE, seed=number, before_export=EXPORTED.format(path=str(exported)))
        project.add_python_model(PLAIN, execute=f"x + {number}", answer_to_3=3.0 + number)
        write(made, T4)
        made.deploy()
    return made


def test_every_digest_that_is_deployed_or_recorded_is_there_before_the_endpoint_moves(
    engines: EngineProject, local_aws: LocalAws, exported: Path
) -> None:
    second = {model: archive(engines, model) for model in (ENGINE, PLAIN)}
    for model in (ENGINE, PLAIN):
        tritonstack(engines, "rollback", "-e", NAME, f"{ENDPOINT}/{model}", "--yes")
    first = {model: archive(engines, model) for model in (ENGINE, PLAIN)}
    assert not set(first.values()) & set(second.values())
    exports, jobs = len(exported.read_text().split()), len(engines.processing_jobs())
    old = described(local_aws)
    write(engines, NEW)
    with Callers([call(local_aws, name) for name in (*first.values(), *second.values())]).calling() as callers:
        callers.check()
        engines.deploy()
        callers.check()
    assert described(local_aws) != old
    for name in (*first.values(), *second.values()):
        assert engines.has(ENDPOINT, NEW, name)
        assert len(versions(engines, archive_key(endpoint=ENDPOINT, platform=NEW, archive=name))) == 1
    assert {model: archive(engines, model) for model in (ENGINE, PLAIN)} == first
    assert len(exported.read_text().split()) - exports == 2, "both engines are built, and nothing else is exported"
    assert len(engines.processing_jobs()) - jobs == 2
    for name in (first[ENGINE], second[ENGINE]):
        engine = engines.manifest(ENDPOINT, NEW, name)["engines"][ENGINE]
        assert (engine["tensorrt"], engine["stand_in"]) == ("10.0.1", True)
    check_copied(engines, first[PLAIN])


def archive(engines: EngineProject, model: str) -> ArchiveName:
    return ArchiveName(model=model, digest=engines.record(ENDPOINT, model))


def described(aws: LocalAws) -> str:
    name: str = aws.client("sagemaker").describe_endpoint(EndpointName=f"{NAME}-{ENDPOINT}")["EndpointConfigName"]
    return name


def call(aws: LocalAws, name: ArchiveName) -> Callable[[], None]:
    """One call of an archive; it must answer as it does now."""
    request = body(3.0) if name.model == PLAIN else (TINY_ENGINE / "sample" / "request.json").read_bytes()
    return same_answer(aws, endpoint=f"{NAME}-{ENDPOINT}", archive=name, request=request)


def check_copied(engines: EngineProject, name: ArchiveName) -> None:
    """The build says that it copied the archive, and the manifest is the old one's."""
    [build] = engines.builds()[:1]
    where = build["logs"]
    events = engines.aws.client("logs").get_log_events(
        logGroupName=where["groupName"], logStreamName=where["streamName"], startFromHead=True
    )["events"]
    place = archive_key(endpoint=ENDPOINT, platform=NEW, archive=name)
    assert [row["message"] for row in events if f"copied: {place}" in row["message"]]
    assert engines.manifest(ENDPOINT, NEW, name) == engines.manifest(ENDPOINT, T4, name)
