"""The file that the Python backend imports: its name, and what it binds."""

from __future__ import annotations

from tests.differential.bases import DOUBLE, MODEL
from tests.differential.repository import Mutation, drop, folder, more, move, write

MODULES = (
    Mutation(
        "module-in-a-sub-folder",
        DOUBLE,
        (more('default_model_filename: "sub/model.py"'), move("double/1/model.py", "double/1/sub/model.py")),
    ),
    Mutation(
        "module-above-its-version",
        DOUBLE,
        (
            more('default_model_filename: "../model.py"'),
            move("double/1/model.py", "double/model.py"),
            folder("double/1"),
        ),
        "python-file-name",
        "No module named '.'",
    ),
    Mutation(
        "module-without-an-ending",
        DOUBLE,
        (more('default_model_filename: "program"'), move("double/1/model.py", "double/1/program")),
        "python-file-name",
        "Model name must end with '.py'",
    ),
    Mutation("module-name-empty", DOUBLE, more('default_model_filename: ""')),
    Mutation(
        "module-with-a-dash",
        DOUBLE,
        (more('default_model_filename: "my-model.py"'), move("double/1/model.py", "double/1/my-model.py")),
    ),
    Mutation(
        "module-with-two-dots",
        DOUBLE,
        (more('default_model_filename: "model.v2.py"'), move("double/1/model.py", "double/1/model.v2.py")),
        "python-file-name",
        "No module named '1.model'",
    ),
    Mutation("module-by-compute-capability", DOUBLE, more('cc_model_filenames { key: "7.5" value: "other.py" }')),
    Mutation(
        "module-that-is-a-folder",
        DOUBLE,
        (drop("double/1/model.py"), write("double/1/model.py/__init__.py", MODEL)),
        "model-file",
        "No module named '1.model'",
    ),
    Mutation(
        "module-beside-a-package-of-its-name",
        DOUBLE,
        write("double/1/model/__init__.py", ""),
        "python-class",
        "has no attribute 'TritonPythonModel'",
    ),
    Mutation("module-beside-broken-bytecode", DOUBLE, write("double/1/__pycache__/model.cpython-311.pyc", "x")),
    Mutation(
        "class-by-a-star-import",
        DOUBLE,
        (write("double/1/other.py", MODEL), write("double/1/model.py", "from other import *\n")),
    ),
    Mutation(
        "return-outside-of-a-function",
        DOUBLE,
        more("return 1", file="double/1/model.py"),
        "python-syntax",
        "'return' outside function",
    ),
    Mutation(
        "await-outside-of-a-function",
        DOUBLE,
        more("await x", file="double/1/model.py"),
        "python-syntax",
        "'await' outside function",
    ),
    Mutation("encoding-of-latin-1", DOUBLE, write("double/1/model.py", "# -*- coding: latin-1 -*-\n" + MODEL)),
    Mutation(
        "encoding-unknown",
        DOUBLE,
        write("double/1/model.py", "# -*- coding: nothing -*-\n" + MODEL),
        "python-syntax",
        "unknown encoding: nothing",
    ),
    Mutation(
        "class-by-globals",
        DOUBLE,
        write(
            "double/1/model.py",
            MODEL.replace("class TritonPythonModel", "class M") + "globals()['TritonPythonModel'] = M\n",
        ),
    ),
    Mutation(
        "class-deleted-again",
        DOUBLE,
        more("del TritonPythonModel", file="double/1/model.py"),
        "python-class",
        "has no attribute 'TritonPythonModel'",
    ),
    Mutation(
        "class-that-is-a-function",
        DOUBLE,
        write("double/1/model.py", "def TritonPythonModel():\n    return object()\n"),
    ),
    Mutation(
        "import-that-may-fail",
        DOUBLE,
        write("double/1/model.py", "try:\n    import nothing_at_all\nexcept ImportError:\n    pass\n" + MODEL),
    ),
    Mutation(
        "class-inside-of-a-function",
        DOUBLE,
        write("double/1/model.py", "def f():\n    class TritonPythonModel:\n        pass\n"),
        "python-class",
        "has no attribute 'TritonPythonModel'",
    ),
    Mutation(
        "class-only-annotated",
        DOUBLE,
        write("double/1/model.py", "TritonPythonModel: type\n"),
        "python-class",
        "has no attribute 'TritonPythonModel'",
    ),
    Mutation(
        "class-by-an-assignment-expression",
        DOUBLE,
        write("double/1/model.py", MODEL.replace("class TritonPythonModel", "class M") + "(TritonPythonModel := M)\n"),
    ),
    Mutation(
        "nonlocal-at-module-level",
        DOUBLE,
        more("nonlocal x", file="double/1/model.py"),
        "python-syntax",
        "nonlocal declaration not allowed at module level",
    ),
    Mutation(
        "future-import-at-the-end",
        DOUBLE,
        more("from __future__ import annotations", file="double/1/model.py"),
        "python-syntax",
        "must occur at the beginning of the file",
    ),
)
