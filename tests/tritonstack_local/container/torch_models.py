"""Writes the TorchScript that the tests serve: ``python torch_models.py FOLDER``, with the interpreter of torch."""

from __future__ import annotations

import sys
from pathlib import Path

import torch  # in an environment of its own


class Scale(torch.nn.Module):  # type: ignore[misc]
    """(x [n, 3], factor [n, 1]) → (x · factor, for each row the number of rows of the call)."""

    def forward(self, x: torch.Tensor, factor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """One call."""
        return x * factor, torch.full([x.shape[0], 1], x.shape[0])


if __name__ == "__main__":
    path = Path(sys.argv[1], "scale", "model.pt")
    path.parent.mkdir(parents=True)
    torch.jit.script(Scale()).save(str(path))
