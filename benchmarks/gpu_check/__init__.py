"""``make gpu-check``: what a machine's NVIDIA GPU shows of the published claims, with its own Python and PyTorch.

Needs Python 3.10, NumPy and PyTorch of the machine, and none of the project's environments. Where they are installed it
uses ONNX Runtime with its CUDA provider, too, and the driver's NVML. No network, and one file: the JSON document.
"""
