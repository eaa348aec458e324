"""What export scripts of model folders share: their protocol, random or pretrained weights, ONNX, TorchScript, proofs.

Runs in the environment ``torch`` and imports nothing of the environment ``main``.
"""
