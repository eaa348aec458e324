"""TensorRT engines: which ones an environment needs, which machine builds each, and with which options.

``engine_builds``: the engines and their machines; ``trtexec``: the options and what they refuse; ``engine_step``: the
program that runs trtexec on a machine with the GPU. ``tritonstack.preparation`` builds them.
"""
