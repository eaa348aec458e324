"""model.py and what stands beside it: what the Python backend makes of a model's program."""

from __future__ import annotations

from tests.differential.bases import DOUBLE, MODEL
from tests.differential.repository import Mutation, more, swap, write

_PROGRAM = "double/1/model.py"
_ENVIRONMENT = 'parameters {{ key: "EXECUTION_ENV_PATH" value {{ string_value: "{}" }} }}'


_AUTO_COMPLETE = """\
    @staticmethod
    def auto_complete_config(auto_complete_model_config):
        return auto_complete_model_config

    def initialize"""

PROGRAMS = (
    Mutation("program-empty", DOUBLE, write(_PROGRAM, ""), "python-class", "TritonPythonModel"),
    Mutation(
        "program-without-class",
        DOUBLE,
        swap("class TritonPythonModel", "class Model", file=_PROGRAM),
        "python-class",
        "TritonPythonModel",
    ),
    Mutation(
        "program-class-by-assignment",
        DOUBLE,
        (
            swap("class TritonPythonModel", "class Model", file=_PROGRAM),
            more("TritonPythonModel = Model", file=_PROGRAM),
        ),
    ),
    Mutation(
        "program-class-imported",
        DOUBLE,
        (write("double/1/other.py", MODEL), write(_PROGRAM, "from other import TritonPythonModel\n")),
    ),
    Mutation(
        "program-class-inherits",
        DOUBLE,
        (
            swap("class TritonPythonModel", "class Base", file=_PROGRAM),
            more("class TritonPythonModel(Base):\n    pass", file=_PROGRAM),
        ),
    ),
    Mutation(
        "program-class-under-a-condition",
        DOUBLE,
        write(
            _PROGRAM,
            "if True:\n    class TritonPythonModel:\n        def execute(self, requests):\n            return []\n",
        ),
    ),
    Mutation("program-without-execute", DOUBLE, swap("def execute", "def run", file=_PROGRAM)),
    Mutation("program-with-asynchronous-execute", DOUBLE, swap("def execute", "async def execute", file=_PROGRAM)),
    Mutation("program-without-initialize", DOUBLE, swap("def initialize", "def prepare", file=_PROGRAM)),
    Mutation(
        "program-syntax-error",
        DOUBLE,
        swap("def execute(self, requests):", "def execute(self, requests)", file=_PROGRAM),
        "python-syntax",
        "SyntaxError",
    ),
    Mutation(
        "program-tabs-and-spaces",
        DOUBLE,
        swap("        self.factor", "\tself.factor", file=_PROGRAM),
        "python-syntax",
        "TabError",
    ),
    Mutation(
        "program-of-a-newer-python",
        DOUBLE,
        more("type Number = int | float", file=_PROGRAM),
        "python-syntax",
        "SyntaxError",
    ),
    Mutation("program-of-python-2", DOUBLE, more('print "loaded"', file=_PROGRAM), "python-syntax", "SyntaxError"),
    Mutation("program-with-pattern-matching", DOUBLE, more("match 1:\n    case _:\n        pass", file=_PROGRAM)),
    Mutation(
        "program-with-null-byte",
        DOUBLE,
        more("\0", file=_PROGRAM),
        "python-syntax",
        "source code string cannot contain null bytes",
    ),
    Mutation("program-with-byte-order-mark", DOUBLE, swap("import triton", "\ufeffimport triton", file=_PROGRAM)),
    Mutation("program-not-ascii", DOUBLE, more("größe = 'ß'", file=_PROGRAM)),
    Mutation("program-with-windows-line-ends", DOUBLE, swap("\n", "\r\n", count=8, file=_PROGRAM)),
    Mutation(
        "program-with-auto-complete",
        DOUBLE,
        swap(
            "    def initialize",
            _AUTO_COMPLETE,
            file=_PROGRAM,
        ),
    ),
    Mutation("program-with-finalize", DOUBLE, more("    def finalize(self):\n        pass", file=_PROGRAM)),
    Mutation(
        "environment-missing",
        DOUBLE,
        more(_ENVIRONMENT.format("$$TRITON_MODEL_DIRECTORY/env.tar.gz")),
        "execution-environment",
        "Failed to get the canonical path",
    ),
    Mutation(
        "environment-outside-of-the-model",
        DOUBLE,
        more(_ENVIRONMENT.format("$$TRITON_MODEL_DIRECTORY/../env.tar.gz")),
        "execution-environment",
        "Failed to get the canonical path",
    ),
    Mutation(
        "environment-beside-the-model",
        DOUBLE,
        (more(_ENVIRONMENT.format("$$TRITON_MODEL_DIRECTORY/../env")), write("env/bin/activate", "")),
    ),
    Mutation(
        "environment-no-archive",
        DOUBLE,
        (more(_ENVIRONMENT.format("$$TRITON_MODEL_DIRECTORY/env.tar.gz")), write("double/env.tar.gz", "not one")),
        "execution-environment",
        "archive_read_open_filename() failed",
    ),
    Mutation(
        "environment-a-folder-without-activate",
        DOUBLE,
        (more(_ENVIRONMENT.format("$$TRITON_MODEL_DIRECTORY/env")), write("double/env/bin/python", "")),
        "execution-environment",
        "bin/activate",
    ),
    Mutation(
        "environment-a-folder",
        DOUBLE,
        (more(_ENVIRONMENT.format("$$TRITON_MODEL_DIRECTORY/env")), write("double/env/bin/activate", "")),
    ),
    Mutation("environment-empty", DOUBLE, more(_ENVIRONMENT.format(""))),
    Mutation(
        "cpu-tensors-forced",
        DOUBLE,
        more('parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "no" } }'),
    ),
    Mutation(
        "cpu-tensors-forced-with-a-wrong-word",
        DOUBLE,
        more('parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "false" } }'),
        "python-parameter",
        "Incorrect value for FORCE_CPU_ONLY_INPUT_TENSORS",
    ),
    Mutation(
        "module-beside-the-program",
        DOUBLE,
        (
            write("double/1/helper.py", "factor = 3\n"),
            swap("import triton", "import helper\nimport triton", file=_PROGRAM),
        ),
    ),
)
