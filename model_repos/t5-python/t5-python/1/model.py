"""T5 for Triton's Python backend: token ids in, token ids out; tokenising is the client's work.

All requests that Triton hands over in one call are generated in one batch. The weights lie in the archive beside this
file; nothing is fetched.
"""

import gc
import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils
from batching import Limits, Question, RequestError, merge, split

# Read when transformers is imported. A weight file that is missing must be an error at once, not a download.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_OFFLINE"] = "1"

WEIGHTS = Path(__file__).resolve().parent / "model"
NUMBERS = {"max_input_tokens", "intra_op_thread_count", "inter_op_thread_count"}
"""The parameters of config.pbtxt that are read here."""


class TritonPythonModel:
    """The class that the Python backend looks for."""

    def initialize(self, args: dict[str, str]) -> None:
        """Load the weights. ``args``: the instance's kind and device, and the configuration as JSON."""
        given = json.loads(args["model_config"])["parameters"]
        parameters = {name: int(one["string_value"]) for name, one in given.items() if name in NUMBERS}
        threads = limit_threads(parameters["intra_op_thread_count"], parameters["inter_op_thread_count"])
        self.translator = Translator(
            WEIGHTS,
            kind=args["model_instance_kind"],
            device_id=args["model_instance_device_id"],
        )
        self.limits = Limits(
            vocabulary=self.translator.vocabulary,
            input_tokens=parameters["max_input_tokens"],
        )
        where = f"{self.translator.device}, CPU threads within and across operators: {threads[0]} and {threads[1]}"
        pb_utils.Logger.log_info(f"{args['model_instance_name']}: T5 on {where}")

    def execute(self, requests: list) -> list:
        """Answer requests, all in one batch. A request that cannot be answered gets an error, the others an answer."""
        responses: list = [None] * len(requests)
        questions: dict[int, Question] = {}
        for index, request in enumerate(requests):
            try:
                questions[index] = question_of(request, self.limits)
            except RequestError as error:
                responses[index] = refusal(error)
        if questions:
            answers = self.answer(list(questions.values()))
            for index, answer in zip(questions, answers, strict=True):
                responses[index] = pb_utils.InferenceResponse([pb_utils.Tensor("output", answer)])
        return responses

    def answer(self, questions: Sequence[Question]) -> list[np.ndarray]:
        """The answers to questions, in their order."""
        ids, mask = merge(questions, padding=self.translator.padding)
        return split(self.translator.generate(ids, mask), questions, ends=self.translator.ends)

    def finalize(self) -> None:
        """Give the memory back: the model cache of a multi-model endpoint counts on it."""
        self.translator.close()


def question_of(request: "pb_utils.InferenceRequest", limits: Limits) -> Question:
    """A request's rows, checked. Raises RequestError."""
    tensors = [pb_utils.get_input_tensor_by_name(request, name) for name in ("input_ids", "attention_mask")]
    ids, mask = (tensor.as_numpy() for tensor in tensors)
    question = Question(ids=ids, mask=mask)
    question.check(limits)
    return question


def refusal(error: RequestError) -> "pb_utils.InferenceResponse":
    """The response to a request that is wrong in itself."""
    return pb_utils.InferenceResponse(error=pb_utils.TritonError(str(error), pb_utils.TritonError.INVALID_ARG))


class Translator:
    """T5 with its weights, on one device. PyTorch and transformers are imported here, from the execution environment.

    Attributes:
        device: where it runs.
        vocabulary: how many ids there are.
        padding: the id that fills rows up.
        ends: the ids that end an answer.
    """

    def __init__(self, folder: Path, *, kind: str, device_id: str) -> None:
        """Load the weights in ``folder``, which must hold all of them, and a bound for the answers' length."""
        import torch  # noqa: PLC0415  see the class
        from transformers import T5ForConditionalGeneration  # noqa: PLC0415

        self.device = torch.device(device_of(kind, device_id, gpus=torch.cuda.device_count()))
        model = T5ForConditionalGeneration.from_pretrained(folder, local_files_only=True, use_safetensors=True)
        self.model = model.to(self.device).eval()
        settings = model.generation_config
        if settings.max_new_tokens is None:
            raise ValueError(f"{folder / 'generation_config.json'} has no max_new_tokens: an answer might never end")
        ends = settings.eos_token_id
        self.ends = tuple(ends) if isinstance(ends, list) else (ends,)
        self.padding = settings.pad_token_id
        self.vocabulary = model.config.vocab_size

    def generate(self, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Greedy answers. ``ids`` and ``mask``: INT64 [rows, tokens]. Returns INT64 [rows, at most max_new_tokens + 1].

        A GPU that is out of memory fails the whole batch with PyTorch's own words ("CUDA out of memory"): they are what
        tells SageMaker to unload another model.
        """
        import torch  # noqa: PLC0415  see the class

        with torch.inference_mode():
            answers = self.model.generate(
                input_ids=torch.from_numpy(ids).to(self.device),
                attention_mask=torch.from_numpy(mask).to(self.device),
                do_sample=False,
                num_beams=1,
            )
        return answers.cpu().numpy()

    def close(self) -> None:
        """Let go of the weights and give the GPU's memory back to the driver."""
        import torch  # noqa: PLC0415  see the class

        del self.model
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()


def limit_threads(intra_op: int, inter_op: int) -> tuple[int, int]:
    """Limit this process's CPU threads in PyTorch, which has one process for each instance; 0 leaves its own number.

    Before anything is computed: later PyTorch refuses to change those across operators. Returns what holds.
    """
    import torch  # noqa: PLC0415  see Translator

    if intra_op:
        torch.set_num_threads(intra_op)
    if inter_op:
        torch.set_num_interop_threads(inter_op)
    return torch.get_num_threads(), torch.get_num_interop_threads()


def device_of(kind: str, device_id: str, *, gpus: int) -> str:
    """PyTorch's name of the device that an instance is placed on: Triton says where, the code has to follow.

    Args:
        kind: the instance's kind (``GPU`` or ``CPU``, with or without ``KIND_``).
        device_id: the GPU's number.
        gpus: how many GPUs PyTorch sees.
    """
    if kind.removeprefix("KIND_") != "GPU":
        return "cpu"
    if int(device_id) >= gpus:
        pb_utils.Logger.log_warn(f"the instance is placed on GPU {device_id}, PyTorch sees {gpus}: T5 runs on the CPU")
        return "cpu"
    return f"cuda:{device_id}"
