"""Stand-ins for trtexec and nvidia-smi where there is no GPU: ``trtexec-stand-in`` and ``nvidia-smi-stand-in``.

They build no engine, as every line of their output states. ``launchers.py`` makes the programs, which run with the
Python of ``.envs/backends``: the other modules import the standard library, NumPy and ONNX Runtime only.
"""
