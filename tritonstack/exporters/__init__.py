"""Shared code of export scripts: their command line, pretrained or random weights, ONNX, TorchScript, proofs.

Runs in the environments ``torch``, ``dali`` and ``tensorflow`` and imports nothing of the environment ``main``. Only
the modules that need one of their libraries import it.
"""
