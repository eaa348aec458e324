"""The local AWS: MiniStack, plus what this project needs of AWS and MiniStack lacks.

Runs in an environment of its own (``.envs/emulator``), as ``python -m tritonstack.local.emulator``, and imports only
the standard library, botocore, boto3, MiniStack and itself. What it adds:

* the SageMaker hosting API (models, endpoint configs, endpoints, tags) and Application Auto Scaling's, each request
  checked against botocore's service model;
* the CloudFormation types of both, composite alarms, and the bucket properties that MiniStack drops; property names,
  required properties, enumerations and what replaces a resource come from CloudFormation's resource schemas;
* InvokeEndpoint, handed on to the local runtime.

Every refusal says on whose word it refuses. What is *not* mended stands in ``docs/fidelity.md``.
"""
