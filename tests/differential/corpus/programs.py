"""Programs of Python models: the forms of the class and of its methods, and the code around them.

Mistakes that only running a program shows, as the import of a missing package, are not drawn: no linter finds them.
"""

from __future__ import annotations

import random

from tests.differential.corpus.repository import Files, drawn_name, plain_model, seldom

_IMPORT = "import triton_python_backend_utils as pb_utils\n"
_HEADS = [
    _IMPORT,
    f'"""A model."""\n\nfrom __future__ import annotations\n\nimport json\n\n{_IMPORT}',
    f"# -*- coding: utf-8 -*-\n{_IMPORT}\nGRÖSSE = 'ß'\n",
    f"import os, sys\nsys.path.append(os.path.dirname(__file__))\n{_IMPORT}",
    f"try:\n    import no_such_package\nexcept ImportError:\n    no_such_package = None\n{_IMPORT}",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import no_such_package\n",
    f"from helper import *\n{_IMPORT}",
    f"import helper\nfrom helper import factor as times\n{_IMPORT}",
    f"#!/usr/bin/env python3\r\n{_IMPORT}".replace("\n", "\r\n").replace("\r\r", "\r"),
    f"\ufeff{_IMPORT}",
]

_CLASSES = [
    "class TritonPythonModel:\n%s",
    "class TritonPythonModel(object):\n%s",
    "class TritonPythonModel():\n%s",
    "class Base:\n%s\n\nclass TritonPythonModel(Base):\n    pass\n",
    "class Model:\n%s\n\nTritonPythonModel = Model\n",
    "import abc\n\n\nclass TritonPythonModel(metaclass=abc.ABCMeta):\n%s",
    "class Meta(type):\n    pass\n\n\nclass TritonPythonModel(metaclass=Meta):\n%s",
    "import dataclasses\n\n\n@dataclasses.dataclass\nclass TritonPythonModel:\n%s",
    "class TritonPythonModel:\n%s\n\nif __name__ == '__main__':\n    TritonPythonModel().initialize({})\n",
    "class TritonPythonModel:\n    pass\n\n\nclass TritonPythonModel:\n%s",
    "Model = type('Model', (), {'execute': lambda self, requests: []})\n\n\nclass TritonPythonModel(Model):\n%s",
]
_OTHER_CLASSES = [
    "class TritonPythonmodel:\n%s",
    "class Model:\n%s",
    "def make():\n    class TritonPythonModel:\n        pass\n\n\nclass Other:\n%s",
    "class Outer:\n    class TritonPythonModel:\n        pass\n%s",
]

_INITIALIZE = [
    "(self, args)", "(self, args, **more)", "(self, *args)", "(self, args=None)", "(self, args, /)",
    "(self, args, n=1)", "(self, args: dict) -> None", "(self, args, *, n=1)", "(model, config, *more)",
]  # fmt: skip
_OTHER_INITIALIZE = ["(self)", "(self, args, other)", "(self, *, args)", "(self, **args)", "()"]
_COMPLETE = ["(config)", "(auto_complete_model_config)", "(config, *more)", "(config=None)", "(config, n=1)"]
_OTHER_COMPLETE = ["()", "(self, config)", "(*, config)", "(cls, config)"]

_MISTAKES = [
    ("def execute(self, requests):", "def execute(self, requests)"),
    ("        return []", "\treturn []"),
    ("        return []", "       return []"),
    ("        return []", "        return [)"),
    ("        return []", "        print 'done'"),
    ("        return []", "        return f'{requests!}'"),
    ("        return []", "        await requests"),
    ("        return []", "        return = []"),
    ("    def execute", "    def execute(self):\n\n    def execute"),
    ("import", "import import"),
    ("requests):", "requests, requests):"),
    ("        return []", "        return []\n    return []"),
]


def programs(draw: random.Random) -> Files:
    """A program of one of many forms, seldom with a mistake that reading it shows."""
    initialize = seldom(draw, draw.choice(_INITIALIZE), *_OTHER_INITIALIZE, chance=0.08)
    complete = seldom(draw, draw.choice(_COMPLETE), *_OTHER_COMPLETE, chance=0.08)
    methods = {
        "__init__": seldom(draw, "    def __init__(self):\n        self.n = 1\n",
                           "    def __init__(self, args):\n        self.n = args\n", chance=0.08),
        "initialize": draw.choice([
            f"    def initialize{initialize}:\n        pass\n",
            f"    async def initialize{initialize}:\n        pass\n",
            "    @staticmethod\n    def initialize(args):\n        pass\n",
            "    @classmethod\n    def initialize(cls, args):\n        pass\n",
            "    initialize = lambda self, args: None\n",
        ]),
        "complete": draw.choice([
            f"    @staticmethod\n    def auto_complete_config{complete}:\n        return {_first(complete)}\n",
            f"    def auto_complete_config{complete}:\n        return {_first(complete)}\n",
            "    @classmethod\n    def auto_complete_config(cls, config):\n        return config\n",
        ]),
        "finalize": "    def finalize(self):\n        pass\n",
        "helper": "    @property\n    def size(self) -> int:\n        return len(self.__dict__)\n",
    }  # fmt: skip
    chosen = draw.sample(list(methods), draw.randint(0, 3))
    execute = draw.choice(["def execute(self, requests):", "async def execute(self, requests):"])
    body = "\n".join([*(methods[each] for each in chosen), f"    {execute}\n        return []\n"])
    form = seldom(draw, draw.choice(_CLASSES), *_OTHER_CLASSES, chance=0.06)
    program = f"{draw.choice(_HEADS)}\n\n{form % body}"
    if draw.random() < 0.12:
        right, wrong = draw.choice(_MISTAKES)
        program = program.replace(right, wrong, 1)
    name = drawn_name(draw)
    return plain_model(name, {"max_batch_size": 4}, program=program) | {f"{name}/1/helper.py": "factor = 2\n"}


def _first(signature: str) -> str:
    """What a function with this signature can return of what it is given."""
    names = [each.strip("()*, ").partition("=")[0] for each in signature.split(",")]
    return next((each for each in reversed(names) if "config" in each), "None")
