"""Shared code of export scripts: their command line, pretrained or random weights, ONNX, TorchScript, proofs.

Builds run export scripts with the parent folder on PYTHONPATH, in the environments ``torch``, ``dali`` and
``tensorflow``. Only the modules that need a framework import it; nothing here imports ``tritonstack``.
"""
