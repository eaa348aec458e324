"""Calls that fetch weights: which are found, and which are none."""

from __future__ import annotations

import ast

import pytest

from tritonstack.models.lint.python_model import Fetch, fetches


def _found(program: str) -> list[Fetch]:
    return list(fetches(ast.parse(program)))


@pytest.mark.parametrize(
    "program",
    [
        "from transformers import AutoModel\nAutoModel.from_pretrained('google-t5/t5-small')",
        "import transformers as t\nt.AutoTokenizer.from_pretrained('bert-base-uncased', use_fast=True)",
        "from transformers import T5Model\nT5Model.from_pretrained(pretrained_model_name_or_path='t5-small')",
        "from huggingface_hub import hf_hub_download as get\nget('a/b', 'c')",
        "import huggingface_hub\nhuggingface_hub.snapshot_download('a/b')",
        "import torch\ntorch.hub.load('pytorch/vision', 'resnet50')",
        "import torch\ntorch.hub.load_state_dict_from_url(url)",
        "from urllib.request import urlopen\nurlopen(url)",
        "import urllib.request\nurllib.request.urlretrieve(url)",
        "import requests\nrequests.get(url)",
        "import boto3\nboto3.client('s3').download_file(a, b, c)",
        "import torchvision\ntorchvision.models.resnet50(weights='DEFAULT')",
        "from torchvision.models import resnet50\nresnet50(pretrained=True)",
        "from transformers import pipeline\npipeline('translation', model='t5-small')",
        "from transformers import pipeline\npipeline('translation')",
    ],
)
def test_what_fetches_is_found_in_its_line(program: str) -> None:
    (found,) = _found(program)
    assert found.line == 2


@pytest.mark.parametrize(
    "program",
    [
        "from transformers import AutoModel\nAutoModel.from_pretrained(folder)",
        "from transformers import AutoModel\nAutoModel.from_pretrained('./weights')",
        "from transformers import AutoModel\nAutoModel.from_pretrained('/opt/ml/weights/t5')",
        "from transformers import AutoModel\nAutoModel.from_pretrained('t5-small', local_files_only=True)",
        "import torch\ntorch.hub.load(folder, 'resnet50', source='local')",
        "import torch\ntorch.load(path)",
        "import torchvision\ntorchvision.models.resnet50(weights=None)",
        "from torchvision.models import resnet50\nresnet50()",
        "from transformers import pipeline\npipeline('translation', model=model)",
        "def get(url):\n    return url\nget('https://example.org')",
        "self.requests.get_nowait()",
    ],
)
def test_what_reads_files_of_the_archive_is_let_pass(program: str) -> None:
    assert _found(program) == []
