"""Formats of model files, read as far as needed, whoever made them: ONNX, forests, plans of trtexec's stand-in."""
