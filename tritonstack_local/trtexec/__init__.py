"""Stand-ins for trtexec and nvidia-smi where there is no GPU: ``trtexec-stand-in`` and ``nvidia-smi-stand-in``.

They build no engine and say so in every line. They are programs that ``launchers.py`` makes, which run with the Python
of ``.envs/backends``: modules here import the standard library, NumPy and ONNX Runtime only, ``launchers.py`` apart.
"""
