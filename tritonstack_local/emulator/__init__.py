"""The local AWS: MiniStack, plus what this project needs of AWS and MiniStack lacks or checks too leniently.

Runs in an environment of its own (``.envs/emulator``), as ``python -m tritonstack_local.emulator``, and imports only
the standard library, botocore, boto3, MiniStack, itself, and those parts of this project that need no more than the
standard library. Every refusal names its source. What is *not* emulated is listed in ``tritonstack_local/fidelity.md``.
"""
