"""The local AWS: MiniStack, plus what this project needs of AWS and MiniStack lacks.

Runs in an environment of its own (``.envs/emulator``), as ``python -m tritonstack_local.emulator``, and imports only
the standard library, botocore, boto3, MiniStack, itself, and those parts of this project that need no more than the
standard library (the catalogue, a container's namespaces, the stand-ins' maker). What it adds:

* the SageMaker hosting API (models, endpoint configs, endpoints, tags) and Application Auto Scaling's, each request
  checked against botocore's service model;
* the CloudFormation types of both, composite alarms, and the bucket properties that MiniStack drops; property names,
  required properties, enumerations and what replaces a resource come from CloudFormation's resource schemas;
* InvokeEndpoint, handed on to the local runtime;
* SageMaker Processing, whose jobs run as processes of this machine, and one clock for all time-outs, which tests move;
* CodeBuild, whose builds run as processes of this machine, and the events of the services themselves, which reach
  Lambdas through EventBridge rules and are tried again where one fails;
* what CloudFormation does about time: an hour for custom resources, wait conditions, cancelled and deleted operations.

Every refusal names its source. What is *not* emulated is listed in ``tritonstack_local/fidelity.md``.
"""
