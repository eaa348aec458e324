"""Every mutation, a table a noun."""

from __future__ import annotations

from tests.differential.repository import Mutation
from tests.differential.tables.completed import COMPLETED
from tests.differential.tables.ensembles import ENSEMBLES
from tests.differential.tables.environments import ENVIRONMENTS
from tests.differential.tables.graphs import GRAPHS
from tests.differential.tables.instances import INSTANCES
from tests.differential.tables.models import MODELS
from tests.differential.tables.modules import MODULES
from tests.differential.tables.names import NAMES
from tests.differential.tables.numbers import NUMBERS
from tests.differential.tables.programs import PROGRAMS
from tests.differential.tables.sequences import SEQUENCES
from tests.differential.tables.soundness import SOUND
from tests.differential.tables.steps import STEPS
from tests.differential.tables.strings import STRINGS
from tests.differential.tables.stuck import STUCK
from tests.differential.tables.tensors import TENSORS
from tests.differential.tables.text import TEXT
from tests.differential.tables.versions import VERSION_FOLDERS
from tests.differential.tables.warmups import WARMUPS

ANSWERED: tuple[Mutation, ...] = (
    *SOUND,
    *MODELS,
    *TENSORS,
    *TEXT,
    *INSTANCES,
    *SEQUENCES,
    *VERSION_FOLDERS,
    *PROGRAMS,
    *ENSEMBLES,
    *GRAPHS,
    *WARMUPS,
    *STEPS,
    *ENVIRONMENTS,
    *MODULES,
    *STRINGS,
    *NUMBERS,
    *NAMES,
    *COMPLETED,
)
"""Those that the server loads or refuses."""

ALL: tuple[Mutation, ...] = (*ANSWERED, *STUCK)
"""Those too that it neither loads nor answers."""
