"""Graphs of the builds that deployments start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tritonstack import aws_names
from tritonstack.monitoring.graph import Graph
from tritonstack.monitoring.metric import Metric, Series


@dataclass(frozen=True, kw_only=True)
class BuildProjects:
    """The names of an environment's CodeBuild projects.

    Attributes:
        build: the project that is given orders.
        engines: the project of the GPU machine; None where CodeBuild builds no engine.
    """

    build: str
    engines: str | None = None

    def named(self) -> Iterator[tuple[str, str, str]]:
        """A key, what the project builds, and its name."""
        yield "archives", "archives", self.build
        if self.engines is not None:
            yield "engines", "engines", self.engines


def project_metric(project: str, name: str, statistic: str) -> Metric:
    """A metric that CodeBuild writes about one project."""
    return Metric(
        namespace=aws_names.CODEBUILD, name=name, dimensions=((aws_names.PROJECT_NAME, project),), statistic=statistic
    )


def build_graphs(projects: BuildProjects) -> Iterator[Graph]:
    """How builds ended, and how long they took."""
    for key, what, project in projects.named():
        yield Graph(
            key=f"{key}_ends",
            title=f"Builds of {what}",
            unit="builds",
            series=(
                Series.of("succeeded", "succeeded", project_metric(project, aws_names.SUCCEEDED_BUILDS, "Sum")),
                Series.of("failed", "failed", project_metric(project, aws_names.FAILED_BUILDS, "Sum")),
            ),
            needs="codebuild",
        )
        yield Graph(
            key=f"{key}_minutes",
            title=f"Duration of builds of {what}",
            unit="minutes",
            series=(
                Series(
                    key="minutes",
                    label="average",
                    metrics={"seconds": project_metric(project, aws_names.BUILD_DURATION, "Average")},
                    expression="seconds / 60",
                ),
            ),
            needs="codebuild",
        )
