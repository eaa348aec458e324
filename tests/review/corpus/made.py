"""The sides of a case, synthesised: one app in this process for each, and every side once."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from tests.constructs_lib.templates import new_app
from tests.review.corpus.case import ENVIRONMENT, Case, Edit, Side, environment_file
from tests.review.corpus.facts import facts
from tritonstack.review.assembly import read_assembly
from tritonstack.review.change import EnvironmentChange
from tritonstack.review.compare import compare
from tritonstack.review.costs.price_book import Prices, price_book
from tritonstack.review.document import BaseEntry, ReviewDocument
from tritonstack.review.model_changes.models import EarlierReleases, ModelFolders, sets_of
from tritonstack.review.report import Known, document_of
from tritonstack.review.snapshot import EnvironmentSnapshot, Snapshots


class ReleasedBefore:
    """A history in which one environment was deployed."""

    def __init__(self, environment: EnvironmentSnapshot) -> None:
        """``environment``: what was deployed."""
        self._sets = {name: list(sets_of(stack)) for name, stack in environment.stacks.items()}

    def __call__(self, stack: str, endpoint: str, model: str, digest: str) -> str | None:
        """Where the environment served the digest."""
        for each in self._sets.get(stack, ()):
            if each.endpoint == endpoint and each.models.get(model) == digest:
                return "the snapshots of an earlier commit"
        return None


class Made:
    """What was synthesised.

    Each side is made of files, as an app is: an environment's file and model folders.
    """

    def __init__(self, folder: Path) -> None:
        """In ``folder``, with nothing yet."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._assemblies: dict[str, Path] = {}
        self._snapshots: dict[Path, Snapshots] = {}

    def change(self, case: Case) -> EnvironmentChange:
        """What a review reports of the change."""
        sides = (self.snapshots(self.assembly(side)) for side in (case.before, case.after))
        [environment] = compare(*sides)
        return environment

    def document(self, case: Case) -> ReviewDocument:
        """The report of the change, as data; inputs besides the templates are the case's own."""
        sides = self.assembly(case.before), self.assembly(case.after)
        old, new = (self.snapshots(side) for side in sides)
        texts = (environment_file(side.parent).read_text() for side in sides)
        books = [price_book(text, file="dev.yaml") for text in texts]
        known = Known(
            prices=lambda _environment: Prices(before=books[0], after=books[1]),
            earlier=lambda _environment: self._earlier(case),
            folders=lambda environment: ModelFolders.of(environment, project=sides[1].parent),
        )
        return document_of(old, new, base=BaseEntry(ref="main", commit="0" * 40, chosen=False), known=known)

    def _earlier(self, case: Case) -> EarlierReleases:
        """The case's base was deployed before, and nothing else was."""
        base = self.snapshots(self.assembly(Side(base=case.after.base, edit=Edit())))
        return ReleasedBefore(base.environments[ENVIRONMENT])

    def snapshots(self, assembly: Path) -> Snapshots:
        """The snapshots of an assembly."""
        if assembly not in self._snapshots:
            self._snapshots[assembly] = read_assembly(assembly)
        return self._snapshots[assembly]

    def assembly(self, side: Side) -> Path:
        """The cloud assembly of one side of a case."""
        key = repr(side)
        if key not in self._assemblies:
            self._assemblies[key] = self._synthesised(side)
        return self._assemblies[key]

    def _synthesised(self, side: Side) -> Path:
        folder = Path(mkdtemp(dir=self._folder))
        side.written(folder)
        app = new_app(outdir=str(folder / "cdk.out"))
        side.stage(app, folder)
        return Path(app.synth().directory)


def facts_of(made: Made, case: Case) -> dict[str, Any]:
    """The facts of a case's report."""
    [environment] = made.document(case).environments
    return facts(environment)
