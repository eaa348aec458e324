"""One local AWS for all end-to-end tests, with the real Triton behind each endpoint."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from shutil import copytree

import pytest

from tests.e2e.project import ON_THE_ENDPOINT, REPOSITORY, Project, environment_yaml
from tests.e2e.running import remove_stacks, running
from tritonstack_local.aws import LocalAws

SEED = 20240924
MANY, HELD = 12, 6
"""Models of the endpoint ``many``, and how many of them it holds at once."""


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The repository's own two models, and those that the tests need beside them."""
    project = Project(tmp_path_factory.mktemp("project"))
    copytree(REPOSITORY / "model_repos", project.root / "model_repos")
    copytree(REPOSITORY / "requirements", project.root / "requirements")  # the exporters' lock file is in the digest
    for number in range(MANY):
        # A little time in each answer, so that an unload under a request would be seen.
        execute = f"(time.sleep(0.02), x + {number})[1]"
        project.add_python_model(f"adds-{number:02}", execute=execute, answer_to_3=3.0 + number)
    project.add_python_model("fits", execute="x * 2", answer_to_3=6.0)
    project.add_python_model(
        "too-large",
        # The build's proof is a single-model container, and lets it pass: the endpoint's Triton must say 507.
        initialize=f'assert not {ON_THE_ENDPOINT}, "CUDA out of memory. Tried to allocate 20.00 GiB"',
        execute="x",
        answer_to_3=3.0,
    )
    project.write(
        "environments/local.yaml",
        environment_yaml(
            name="local",
            endpoints=[
                endpoint("digits", ["digits-onnx", "digits-ensemble"], limit=1),  # as in the repository's own file
                endpoint("many", [f"adds-{number:02}" for number in range(MANY)], limit=HELD, verified=2),
                endpoint("memory", ["fits", "too-large", "adds-01"], verified=0),  # one of them does not fit
                endpoint("single", ["digits-onnx"], mode="single-model"),
            ],
        ),
    )
    return project


def endpoint(
    name: str,
    models: list[str],
    *,
    mode: str = "multi-model",
    instance_type: str = "ml.g4dn.xlarge",
    limit: int | None = None,
    verified: int | None = None,
    more: str | None = None,
) -> str:
    """One endpoint of the tests' environment file.

    ``verified``: how many models a deployment calls; ``more``: further settings, as they stand in the file.
    """
    local = f", local: {{max_loaded_models: {limit}}}" if limit else ""
    local += "" if verified is None else f", verification: {{models: {verified}}}"
    local += "" if more is None else f", {more}"
    return (
        f'{{name: {name}, mode: {mode}, release: "24.09", instance_type: {instance_type}, initial_instance_count: 1, '
        f"models: [{', '.join(models)}]{local}}}"
    )


RUNNING = pytest.StashKey[tuple[Project, LocalAws, ExitStack]]()
"""The project and local AWS of this process, once a test has asked for them, and what ends the local AWS."""
SHARED = "local"
"""The environment of ``deployed``."""


@pytest.fixture(scope="session")
def local_aws(project: Project, request: pytest.FixtureRequest) -> Iterator[LocalAws]:
    """A running local AWS on free ports; after this folder's tests it is stopped, and nothing of it may be left."""
    with ExitStack() as end:
        aws = end.enter_context(running(project, denied=["*:assumed-role/calls-* sagemaker:DescribeEndpoint on *"]))
        request.session.stash[RUNNING] = project, aws, end
        yield aws


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End the local AWS with the last test of this folder: session fixtures last until the whole run is over."""
    stash = item.session.stash
    if RUNNING in stash and (nextitem is None or Path(__file__).parent not in nextitem.path.parents):
        stash[RUNNING][2].close()
        del stash[RUNNING]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that call environment ``local`` come first, so that it can go before those that deploy their own."""
    sharing = {item.path for item in items if "deployed" in getattr(item, "fixturenames", ())}
    items.sort(key=lambda item: Path(__file__).parent in item.path.parents and item.path not in sharing)


@pytest.fixture(scope="module", autouse=True)
def environments_end_with_their_file(request: pytest.FixtureRequest) -> Iterator[None]:
    """Remove a file's environments at its end, and ``local`` before the first file that does not call it.

    A deployed endpoint is a Triton and a process a model: kept to the end of a run, they were 18 GB.
    """
    stash, items = request.session.stash, request.session.items
    calls_local = any(item.path == request.path and "deployed" in getattr(item, "fixturenames", ()) for item in items)
    if not calls_local and RUNNING in stash:
        remove_stacks(stash[RUNNING][1])
    yield
    if RUNNING in stash:
        project, aws, _ = stash[RUNNING]
        remove_stacks(aws, but=f"{SHARED}-")
        for file in (project.root / "environments").iterdir():
            if file.stem != SHARED:
                file.unlink()


@pytest.fixture(scope="session")
def deployed(project: Project, local_aws: LocalAws) -> LocalAws:
    """The local AWS with the tests' environment deployed by the real CDK command line."""
    project.run("local", "deploy", "-e", "local", "--concurrency", "4", timeout=600)
    return local_aws


@pytest.fixture
def dice() -> random.Random:
    """Seeded, so that a failure can be had again."""
    return random.Random(SEED)
