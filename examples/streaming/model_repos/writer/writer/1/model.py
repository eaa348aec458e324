"""Writes on from a prompt: which word follows which two is counted in ``text.txt``, and one of them is drawn.

A word is sent as soon as it is drawn. Requests are answered in threads, so that several streams go on at a time.
"""

import json
import random
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils

MOST_TOKENS = 200
STREAMS = 16


class TritonPythonModel:
    """What Triton's Python backend looks for."""

    def initialize(self, args):
        """Count the words of the text."""
        parameters = json.loads(args["model_config"])["parameters"]
        self.seconds = float(parameters["seconds_a_token"]["string_value"])
        self.every = Path(__file__).with_name("text.txt").read_text(encoding="utf-8").split()
        self.after_two, self.after_one = defaultdict(list), defaultdict(list)
        for before, last, word in zip(["", "", *self.every], ["", *self.every], self.every, strict=False):
            self.after_two[before, last].append(word)
            self.after_one[last].append(word)
        self.threads = ThreadPoolExecutor(STREAMS)

    def execute(self, requests):
        """Begin a stream for each request; a decoupled model returns nothing."""
        for request in requests:
            prompt = pb_utils.get_input_tensor_by_name(request, "PROMPT").as_numpy()[0].decode()
            most = self.number(request, "MAX_TOKENS", default=30)
            sender, seed = request.get_response_sender(), self.number(request, "SEED", default=0)
            self.threads.submit(self.stream, sender, prompt, most, seed)

    @staticmethod
    def number(request, name, *, default):
        """An optional input's value."""
        tensor = pb_utils.get_input_tensor_by_name(request, name)
        return default if tensor is None else int(tensor.as_numpy()[0])

    def stream(self, sender, prompt, most, seed):
        """Send the words, then that there are no more."""
        try:
            for word in self.words(prompt, most, random.Random(seed)):  # noqa: S311  (words, no secrets)
                time.sleep(self.seconds)
                if sender.is_cancelled():  # whoever asked is gone
                    break
                token = pb_utils.Tensor("TOKEN", np.array([f" {word}".encode()], dtype=object))
                sender.send(pb_utils.InferenceResponse(output_tensors=[token]))
        except Exception as error:  # noqa: BLE001  (else nobody sees it, and the stream does not end)
            sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError(str(error))))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def words(self, prompt, most, draw):
        """``most`` words: each follows the last two in the text, else the last one, else it is any."""
        if not 0 < most <= MOST_TOKENS:
            raise ValueError(f"MAX_TOKENS is {most}; allowed: 1 to {MOST_TOKENS}")
        before, last = ["", "", *prompt.split()][-2:]
        for _ in range(most):
            word = draw.choice(self.after_two.get((before, last)) or self.after_one.get(last) or self.every)
            before, last = last, word
            yield word

    def finalize(self):
        """Let the streams under way end."""
        self.threads.shutdown()
