"""Formats of model files from any source, read as far as needed: ONNX, forests, plans of trtexec's stand-in."""
