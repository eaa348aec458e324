"""What only running a program shows, so that no linter can know it: the build's proof of an archive finds it."""

from __future__ import annotations

from tests.differential.bases import CHAIN, DOUBLE
from tests.differential.repository import Mutation, swap

_PROGRAM = "double/1/model.py"
_INITIALIZE = "        self.factor = 2\n"
_STEP = "two/1/model.py"

RUNNING = (
    Mutation(
        "initialize-raises",
        DOUBLE,
        swap(_INITIALIZE, '        raise RuntimeError("no weights")\n', file=_PROGRAM),
        server_says="RuntimeError: no weights",
    ),
    Mutation(
        "initialize-without-arguments",
        DOUBLE,
        swap("def initialize(self, args)", "def initialize(self)", file=_PROGRAM),
        server_says="takes 1 positional argument but 2 were given",
    ),
    Mutation(
        "import-of-a-missing-package",
        DOUBLE,
        swap("import triton", "import no_such_package\nimport triton", file=_PROGRAM),
        server_says="No module named 'no_such_package'",
    ),
    Mutation(
        "module-raises",
        DOUBLE,
        swap("class Triton", 'raise ValueError("too early")\n\n\nclass Triton', file=_PROGRAM),
        server_says="ValueError: too early",
    ),
    Mutation(
        "step-initialize-raises",
        CHAIN,
        swap(_INITIALIZE, '        raise RuntimeError("no weights")\n', file=_STEP),
        server_says="RuntimeError: no weights",
    ),
)
