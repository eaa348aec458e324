"""Requests of one ``execute`` call become as few runs as their shapes allow, and the results are handed back apart.

NumPy only: this runs inside Triton's Python backend, in the interpreter of the backends' environment.
"""

import itertools

import numpy as np


class RequestError(Exception):
    """What is wrong with one request; the others of the call are not affected."""


def grouped(requests, *, batched):
    """Requests that may be one run: the same inputs, with equal types and shapes beyond the batch dimension."""
    if not batched:
        return [[index] for index in range(len(requests))]
    groups = {}
    for index, inputs in enumerate(requests):
        key = tuple(sorted((name, array.dtype.str, array.shape[1:]) for name, array in inputs.items()))
        groups.setdefault(key, []).append(index)
    return list(groups.values())


def run_together(requests, run, *, batched):
    """Run all requests, each group as one run.

    Where the run of a group fails, its requests run one by one, so that only those that fail get the error.
    """
    results = [None] * len(requests)
    for group in grouped(requests, batched=batched):
        members = [requests[index] for index in group]
        try:
            outcome = _run_group(members, run) if len(members) > 1 else [run(members[0])]
        except RequestError as error:
            outcome = [error] if len(members) == 1 else [_run_alone(member, run) for member in members]
        for index, outputs in zip(group, outcome, strict=True):
            results[index] = outputs
    return results


def _run_alone(inputs, run):
    try:
        return run(inputs)
    except RequestError as error:
        return error


def _run_group(members, run):
    """One run for several requests. Returns the outputs of each."""
    sizes = [len(next(iter(inputs.values()))) for inputs in members]
    joined = {name: np.concatenate([inputs[name] for inputs in members]) for name in members[0]}
    outputs = run(joined)
    ends = list(itertools.accumulate(sizes))
    for name, array in outputs.items():
        if array.ndim == 0 or len(array) != ends[-1]:
            raise RequestError(
                f"output '{name}' has shape {list(array.shape)} for a batch of {ends[-1]}: "
                "its first dimension must be the batch, since max_batch_size is not 0"
            )
    parts = {name: np.split(array, ends[:-1]) for name, array in outputs.items()}
    return [{name: parts[name][index] for name in outputs} for index in range(len(members))]
