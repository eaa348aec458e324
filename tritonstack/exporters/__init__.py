"""What export scripts of model folders share: their protocol, random or pretrained weights, ONNX, TorchScript, proofs.

Runs in the environments ``torch``, ``dali`` and ``tensorflow`` and imports nothing of the environment ``main``. Only
the modules that need one of their libraries import it.
"""
