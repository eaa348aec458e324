"""What a dashboard consists of: sections of graphs, each under a title and a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tritonstack.monitoring.metric import Series

Needs = Literal["gpu", "codebuild", "unloading"]
"""What must be there for a graph to have data: a GPU, builds in CodeBuild, models that are unloaded."""


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A level that a graph is read against."""

    label: str
    value: float


@dataclass(frozen=True, kw_only=True)
class Graph:
    """Lines over time.

    Attributes:
        key: unique in its section.
        title: what is shown.
        unit: of the vertical axis (``ms``, ``% of one GPU``).
        series: the lines.
        maximum: the axis' end, where it has one (100 for percent); it begins at 0.
        limits: levels drawn across.
        needs: what must be there for it to have data, besides an endpoint that is called.
    """

    key: str
    title: str
    unit: str
    series: tuple[Series, ...]
    maximum: float | None = None
    limits: tuple[Limit, ...] = ()
    needs: Needs | None = None


@dataclass(frozen=True, kw_only=True)
class Section:
    """The graphs of one endpoint, or of the builds.

    Attributes:
        key: unique in the dashboard (an endpoint's name).
        title: of the section.
        notes: sentences under the title; what is not shown is said here, with the reason.
        graphs: in the order of reading.
    """

    key: str
    title: str
    notes: tuple[str, ...]
    graphs: tuple[Graph, ...]


@dataclass(frozen=True, kw_only=True)
class Dashboard:
    """Everything that is shown of one environment."""

    name: str
    region: str
    sections: tuple[Section, ...]

    def graphs(self) -> Iterator[tuple[Section, Graph]]:
        """Every graph with its section."""
        for section in self.sections:
            for graph in section.graphs:
                yield section, graph
