"""Bad environment files: lines that replace good ones, the field that is to be named, and words of the message."""

from __future__ import annotations

from typing import NamedTuple

KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"


class Bad(NamedTuple):
    """Lines that replace good ones, the field that is to be named, and words of the message."""

    field: str
    words: tuple[str, ...]
    header: str = ""
    endpoint: str = ""
    without: tuple[str, ...] = ()


LONG = "x" * 1000
SINGLE = "mode: single-model\n"
CASES = {
    # the environment's own fields
    "environment is not the file's name": Bad("environment", ("dev", "local", "Rename"), header="environment: dev"),
    "environment begins with a digit": Bad("environment", ("1a", "a letter first"), header="environment: 1a"),
    "account without quotes": Bad("account", ("a text", "quotes"), header="account: 123456789012"),
    "account that YAML reads as octal": Bad("account", ("001234567012", "quotes"), header="account: 001234567012"),
    "account with eleven digits": Bad("account", ("twelve digits",), header='account: "12345678901"'),
    "unknown region": Bad("region", ("us-east-9", "us-east-1", "Did you mean"), header="region: us-east-9"),
    "production is no truth value": Bad("production", ("true or false",), header='production: "no"'),
    "no production": Bad("production", ("nothing", "a value"), without=("production",)),
    "boundary that is no ARN": Bad("permissions_boundary", ("arn:aws",), header="permissions_boundary: MyPolicy"),
    "boundary of another account": Bad(
        "permissions_boundary",
        ("999999999999", "123456789012"),
        header="permissions_boundary: arn:aws:iam::999999999999:policy/p",
    ),
    "boundary of another partition": Bad(
        "permissions_boundary", ("aws-cn", "us-east-1"), header="permissions_boundary: arn:aws-cn:iam::aws:policy/p"
    ),
    "unknown field": Bad("colour", ("the field colour", "Remove it"), header="colour: red"),
    "field called as pydantic marks keys": Bad("[key]", ("the field [key]", "Remove it"), header="'[key]': red"),
    "misspelt field": Bad(
        "endpoints[0].instance_typ", ("Did you mean instance_type?",), endpoint="instance_typ: ml.g5.xlarge"
    ),
    "tag of AWS": Bad("tags.aws:x", ("does not begin with aws:",), header='tags: {"aws:x": y}'),
    "tag of ours": Bad("tags.tritonstack:x", ("tritonstack:",), header='tags: {"tritonstack:x": y}'),
    "tag with a strange sign": Bad("tags.team", ("a;b", "letters"), header="tags: {team: a;b}"),
    "empty tag key": Bad("tags.", ("1 to 128",), header='tags: {"": y}'),
    "tag value that is a number": Bad("tags.cost", ("7", "quotes"), header="tags: {cost: 7}"),
    "zero days": Bad("artifacts.noncurrent_days", ("0", "1 or more"), header="artifacts: {noncurrent_days: 0}"),
    # names
    "model with a dot": Bad("endpoints[0].models[0]", ("bert.v2", "lower-case"), endpoint="models: [bert.v2]"),
    "model with OOM in its name": Bad("endpoints[0].models[0]", ("zOOM", "507"), endpoint="models: [zOOM]"),
    "model in capital letters": Bad("endpoints[0].models[0]", ("BERT", "lower-case"), endpoint="models: [BERT]"),
    "model twice": Bad("endpoints[0].models", ("a 2 times", "each model once"), endpoint="models: [a, b, a]"),
    "no model": Bad("endpoints[0].models", ("an empty list", "at least 1"), endpoint="models: []"),
    "models is a text": Bad("endpoints[0].models", ("a list",), endpoint="models: digits-onnx"),
    "long name": Bad("endpoints[0].name", ("66 characters", "63"), endpoint=f"name: {'n' * 60}"),
    "name with an underscore": Bad("endpoints[0].name", ("_artifacts", "lower-case"), endpoint="name: _artifacts"),
    # instance type
    "unknown type": Bad("endpoints[0].instance_type", ("ml.g5.xlarge",), endpoint="instance_type: ml.g5.xlarg"),
    "type without a row": Bad(
        "endpoints[0].instance_type", ("ml.g7e.2xlarge", "not read"), endpoint="instance_type: ml.g7e.2xlarge"
    ),
    "CPU type": Bad("endpoints[0].instance_type", ("ml.m5.large", "GPU type"), endpoint="instance_type: ml.m5.large"),
    "no ml. prefix": Bad("endpoints[0].instance_type", ("g5.xlarge",), endpoint="instance_type: g5.xlarge"),
    "type that the region lacks": Bad(
        "endpoints[0].instance_type",
        ("ml.g5.xlarge", "af-south-1", "ml.g4dn.xlarge", "eu-west-1"),
        header="region: af-south-1",
        endpoint="instance_type: ml.g5.xlarge",
    ),
    "several GPUs in multi-model mode": Bad(
        "endpoints[0].instance_type", ("4 GPUs", "one GPU", "single-model"), endpoint="instance_type: ml.g5.12xlarge"
    ),
    "unlisted type in multi-model mode": Bad(
        "endpoints[0].instance_type",
        ("does not list", "accept_unlisted_instance_type"),
        endpoint="instance_type: ml.g6.xlarge",
    ),
    "unlisted type accepted in single-model mode": Bad(
        "endpoints[0].accept_unlisted_instance_type",
        ("single-model",),
        endpoint=SINGLE + "accept_unlisted_instance_type: true",
    ),
    # volume
    "volume size on NVMe": Bad("endpoints[0].volume_size_gb", ("125 GB", "NVMe"), endpoint="volume_size_gb: 30"),
    "volume size out of range": Bad("endpoints[0].volume_size_gb", ("513", "512"), endpoint="volume_size_gb: 513"),
    "key on NVMe": Bad("endpoints[0].volume_key_arn", ("KMS key", "NVMe"), endpoint=f"volume_key_arn: {KEY}"),
    "key of another region": Bad(
        "endpoints[0].volume_key_arn",
        ("eu-west-1", "us-east-1"),
        endpoint=f"volume_key_arn: {KEY.replace('us-east-1', 'eu-west-1')}",
    ),
    "key that is no ARN": Bad("endpoints[0].volume_key_arn", ("arn:aws",), endpoint="volume_key_arn: alias/mine"),
    # release, image, host
    "release without quotes": Bad("endpoints[0].release", ("24.10", "24.1", "quotes"), endpoint="release: 24.10"),
    "unknown release": Bad("endpoints[0].release", ("24.10", "24.09", "set image"), endpoint='release: "24.10"'),
    "release newer than the catalogue": Bad(
        "endpoints[0].release", ("30.01", "26.05", "set image"), endpoint='release: "30.01"'
    ),
    "release older than the catalogue, with an image": Bad(
        "endpoints[0].release",
        ("19.01", "22.12"),
        endpoint='release: "19.01"\nimage: 123456789012.dkr.ecr.us-east-1.amazonaws.com/mine:1',
    ),
    "no release at all": Bad("endpoints[0].release", ("latest", "YY.MM"), endpoint="release: latest"),
    "release whose contents are unknown": Bad(
        "endpoints[0].release", ("22.10", "not read", "23.05"), endpoint='release: "22.10"'
    ),
    "release without an image in the region": Bad(
        "endpoints[0].release",
        ("26.05", "cn-north-1", "25.04", "set image"),
        header="region: cn-north-1",
        endpoint='release: "26.05"',
    ),
    "release of which AWS has no image": Bad(
        "endpoints[0].release", ("24.11", "us-east-1", "24.09"), endpoint='release: "24.11"'
    ),
    "region without any image": Bad(
        "endpoints[0].release", ("24.09", "none", "registry"), header="region: us-gov-west-1"
    ),
    "image outside ECR": Bad(
        "endpoints[0].image", ("nvcr.io", "in ECR"), endpoint="image: nvcr.io/nvidia/tritonserver:24.09-py3"
    ),
    "image of another region": Bad(
        "endpoints[0].image",
        ("eu-west-1", "dkr.ecr.us-east-1.amazonaws.com/"),
        endpoint="image: 123456789012.dkr.ecr.eu-west-1.amazonaws.com/triton:1",
    ),
    "image of China without China's suffix": Bad(
        "endpoints[0].image",
        ("ends in amazonaws.com", "dkr.ecr.cn-north-1.amazonaws.com.cn/"),
        header="region: cn-north-1",
        endpoint="image: 123456789012.dkr.ecr.cn-north-1.amazonaws.com/triton:1",
    ),
    "image with China's suffix outside China": Bad(
        "endpoints[0].image",
        ("ends in amazonaws.com.cn", "dkr.ecr.us-east-1.amazonaws.com/"),
        endpoint="image: 123456789012.dkr.ecr.us-east-1.amazonaws.com.cn/triton:1",
    ),
    "unknown host": Bad(
        "endpoints[0].host_ami", ("gpu-4-1", "Did you"), endpoint="host_ami: al2-ami-sagemaker-inference-gpu-4"
    ),
    "empty host": Bad("endpoints[0].host_ami", ('""', "sagemaker-default"), endpoint='host_ami: ""'),
    "host too old for CUDA 13": Bad(
        "endpoints[0].host_ami",
        ("driver 535", "CUDA 13.0.1", "gpu-4-1"),
        endpoint='release: "25.09"\nhost_ami: al2-ami-sagemaker-inference-gpu-2',
    ),
    # mode
    "no mode": Bad("endpoints[0].mode", ("nothing", "multi-model"), without=("mode",)),
    "unknown mode": Bad("endpoints[0].mode", ("'multi-model' or 'single-model'",), endpoint="mode: multi"),
    "several models on a single-model endpoint": Bad(
        "endpoints[0].models", ("2 models", "exactly one"), endpoint=SINGLE + "models: [a, b]"
    ),
    "model cache on a single-model endpoint": Bad(
        "endpoints[0].model_cache", ("enabled on a single-model",), endpoint=SINGLE + "model_cache: enabled"
    ),
    "model limit on a single-model endpoint": Bad(
        "endpoints[0].local.max_loaded_models", ("single-model",), endpoint=SINGLE + "local: {max_loaded_models: 4}"
    ),
    "one instance in production": Bad(
        "endpoints[0].initial_instance_count",
        ("1", "2 or more"),
        header="production: true",
        endpoint="initial_instance_count: 1",
    ),
    "no instance": Bad("endpoints[0].initial_instance_count", ("0", "1 or more"), endpoint="initial_instance_count: 0"),
    "count in quotes": Bad(
        "endpoints[0].initial_instance_count", ('"2"', "whole number"), endpoint='initial_instance_count: "2"'
    ),
    "timeout too short": Bad(
        "endpoints[0].timeouts.model_download_seconds",
        ("59", "60 or more"),
        endpoint="timeouts: {model_download_seconds: 59}",
    ),
    "timeout too long": Bad(
        "endpoints[0].timeouts.container_startup_seconds",
        ("3601", "3600 or less"),
        endpoint="timeouts: {container_startup_seconds: 3601}",
    ),
    "unknown routing": Bad("endpoints[0].routing", ("RANDOM",), endpoint="routing: random"),
    "routing by prompts' prefixes": Bad(
        "endpoints[0].routing",
        ("PREFIX_AWARE", "'LEAST_OUTSTANDING_REQUESTS' or 'RANDOM'", "ConcurrencyThreshold"),
        endpoint="routing: PREFIX_AWARE",
    ),
    "routing by a cache that Triton does not report": Bad(
        "endpoints[0].routing", ("KV_AWARE", "vLLM"), endpoint="routing: KV_AWARE"
    ),
    "metrics less often than alarms read them": Bad(
        "endpoints[0].metrics.publish_seconds",
        ("300", "10, 30 or 60", "alarms"),
        endpoint="metrics: {publish_seconds: 300}",
    ),
    # the container
    "GPU limit in multi-model mode": Bad(
        "endpoints[0].container.model_load_gpu_limit",
        ("0.8", "400 instead of 507", "evict"),
        endpoint="container: {model_load_gpu_limit: 0.8}",
    ),
    "GPU limit above 1": Bad(
        "endpoints[0].container.model_load_gpu_limit",
        ("80", "1 or less"),
        endpoint=SINGLE + "container: {model_load_gpu_limit: 80}",
    ),
    "default model in multi-model mode": Bad(
        "endpoints[0].container.default_model_name",
        ("multi-model mode", "/invocations"),
        endpoint="container: {default_model_name: ensemble}",
    ),
    "inference type in multi-model mode": Bad(
        "endpoints[0].container.inference_type",
        ("multi-model mode",),
        endpoint='release: "25.04"\ncontainer: {inference_type: infer}',
    ),
    "inference type before 25.03": Bad(
        "endpoints[0].container.inference_type",
        ("24.09", "25.03 or newer"),
        endpoint=SINGLE + "container: {inference_type: infer}",
    ),
    "streamed answers": Bad(
        "endpoints[0].container.inference_type",
        ("generate_stream", "'infer'", "Streamed answers are out of scope"),
        endpoint=SINGLE + 'release: "25.04"\ncontainer: {inference_type: generate_stream}',
    ),
    "answers to other than inference requests": Bad(
        "endpoints[0].container.inference_type",
        ('"generate"', "'infer'", "verification", "lint refuses the decoupled models"),
        endpoint=SINGLE + 'release: "26.05"\ncontainer: {inference_type: generate}',
    ),
    "ping mode before 23.07": Bad(
        "endpoints[0].container.ping_mode",
        ("23.05", "23.07 or newer"),
        endpoint='release: "23.05"\ncontainer: {ping_mode: live}',
    ),
    "namespacing before 23.04": Bad(
        "endpoints[0].container.model_namespacing",
        ("23.03", "23.04 or newer"),
        endpoint='release: "23.03"\ncontainer: {model_namespacing: false}',
    ),
    "unknown ping mode": Bad(
        "endpoints[0].container.ping_mode", ("'live' or 'ready'",), endpoint="container: {ping_mode: alive}"
    ),
    "TensorFlow after 25.02": Bad(
        "endpoints[0].container.tensorflow_version",
        ("25.04", "25.02"),
        endpoint='release: "25.04"\ncontainer: {tensorflow_version: 2}',
    ),
    "TensorFlow 1 after 23.03": Bad(
        "endpoints[0].container.tensorflow_version", ("1", "23.05"), endpoint="container: {tensorflow_version: 1}"
    ),
    "log level is a word": Bad(
        "endpoints[0].container.log_verbose",
        ("debug", "true, false or a level"),
        endpoint="container: {log_verbose: debug}",
    ),
    "log level below zero": Bad(
        "endpoints[0].container.log_verbose", ("-1", "from 0"), endpoint="container: {log_verbose: -1}"
    ),
    "too little shared memory": Bad(
        "endpoints[0].container.shm_default_bytes",
        ("1048576", "4194304 or more"),
        endpoint="container: {shm_default_bytes: 1048576}",
    ),
    "more shared memory than half the instance has": Bad(
        "endpoints[0].container.shm_default_bytes",
        ("17179869184", "8589934592", "half"),
        endpoint="container: {shm_default_bytes: 17179869184}",
    ),
    "growth of shared memory that does not fit": Bad(
        "endpoints[0].container.shm_growth_bytes",
        ("8589934592", "one step of growth"),
        endpoint="container: {shm_growth_bytes: 8589934592}",
    ),
    "argument with a blank": Bad(
        "endpoints[0].container.additional_args[0]",
        ("--cache-config local", "unquoted"),
        endpoint="container: {additional_args: [--cache-config local]}",
    ),
    "argument with quotes": Bad(
        "endpoints[0].container.additional_args[0]",
        ("quote",),
        endpoint="container: {additional_args: ['--a=\"b\"']}",
    ),
    "argument that is no flag": Bad(
        "endpoints[0].container.additional_args[1]",
        ("size=1", "--flag"),
        endpoint="container: {additional_args: [--exit-timeout-secs=1, size=1]}",
    ),
    "argument that a field owns": Bad(
        "endpoints[0].container.additional_args[0]",
        ("container.log_verbose",),
        endpoint="container: {additional_args: [--log-verbose=1]}",
    ),
    "GPU limit by the back door": Bad(
        "endpoints[0].container.additional_args[0]",
        ("container.model_load_gpu_limit",),
        endpoint="container: {additional_args: ['--model-load-gpu-limit=0:0.8']}",
    ),
    "shared memory by the back door": Bad(
        "endpoints[0].container.additional_args[0]",
        ("container.shm_default_bytes",),
        endpoint="container: {additional_args: ['--backend-config=python,shm-default-byte-size=1']}",
    ),
    "argument that SageMaker depends on": Bad(
        "endpoints[0].container.additional_args[0]",
        ("Remove it",),
        endpoint="container: {additional_args: [--allow-sagemaker=false]}",
    ),
    "argument that no release has": Bad(
        "endpoints[0].container.additional_args[0]",
        ("--nope=3", "release 24.09 has", "end at once"),
        endpoint="container: {additional_args: [--nope=3]}",
    ),
    "misspelt argument": Bad(
        "endpoints[0].container.additional_args[0]",
        ("Did you mean --cache-config",),
        endpoint="container: {additional_args: ['--cache-confg=local,size=1']}",
    ),
    "argument shortened as getopt takes it": Bad(
        "endpoints[0].container.additional_args[0]",
        ("release 24.09 has",),
        endpoint="container: {additional_args: [--sagemaker-po=8081]}",
    ),
    "argument newer than the release": Bad(
        "endpoints[0].container.additional_args[0]",
        ("release 23.12 has", "came after release 23.12"),
        endpoint='release: "23.12"\ncontainer: {additional_args: [--model-load-retry-count=1]}',
    ),
    "argument of a front end that is off": Bad(
        "endpoints[0].container.additional_args[0]",
        ("--http-port=8080", "own HTTP front end off"),
        endpoint="container: {additional_args: [--http-port=8080]}",
    ),
    "front end that takes SageMaker's port": Bad(
        "endpoints[0].container.additional_args[0]",
        ("port 8080", "SageMaker's"),
        endpoint="container: {additional_args: [--allow-vertex-ai=true]}",
    ),
    "SageMaker's port by the back door": Bad(
        "endpoints[0].container.additional_args[0]",
        ("Remove it", "SageMaker depends"),
        endpoint="container: {additional_args: [--sagemaker-port=8081]}",
    ),
    "argument that the release's front end does not read": Bad(
        "endpoints[0].container.additional_args[0]",
        ("release 26.03 or newer",),
        endpoint='release: "25.09"\ncontainer: {additional_args: [--http-max-input-size=1]}',
    ),
    "argument without its value": Bad(
        "endpoints[0].container.additional_args[0]",
        ("--strict-readiness=value", "the next flag"),
        endpoint="container: {additional_args: [--strict-readiness]}",
    ),
    "variable that a field owns": Bad(
        "endpoints[0].container.environment.SAGEMAKER_TRITON_LOG_INFO",
        ("container.log_info",),
        endpoint='container: {environment: {SAGEMAKER_TRITON_LOG_INFO: "true"}}',
    ),
    "variable whose name says the opposite": Bad(
        "endpoints[0].container.environment.SAGEMAKER_TRITON_DISABLE_MODEL_NAMESPACING",
        ("container.model_namespacing",),
        endpoint='container: {environment: {SAGEMAKER_TRITON_DISABLE_MODEL_NAMESPACING: "true"}}',
    ),
    "variable that SageMaker sets": Bad(
        "endpoints[0].container.environment.SAGEMAKER_MULTI_MODEL",
        ("sets this one itself",),
        endpoint='container: {environment: {SAGEMAKER_MULTI_MODEL: "true"}}',
    ),
    "variable that never existed": Bad(
        "endpoints[0].container.environment.SAGEMAKER_TRITON_BATCH_SIZE",
        ("no release's serve script reads",),
        endpoint='container: {environment: {SAGEMAKER_TRITON_BATCH_SIZE: "4"}}',
    ),
    "variable with a bad name": Bad(
        "endpoints[0].container.environment.a-b",
        ("the key", "variable's name"),
        endpoint="container: {environment: {a-b: c}}",
    ),
    "variable that is a number": Bad(
        "endpoints[0].container.environment.A", ("quotes",), endpoint="container: {environment: {A: 1}}"
    ),
    "variable longer than 1024 bytes in UTF-8": Bad(
        "endpoints[0].container.environment.A",
        ("1026 bytes", "1024 bytes"),
        endpoint=f"container: {{environment: {{A: {'é' * 513}}}}}",
    ),
    "more than 100 variables": Bad(
        "endpoints[0].container.environment",
        ("104 variables", "100"),
        endpoint=f"container: {{environment: {{{', '.join(f'V{i}: x' for i in range(99))}}}}}",
    ),
    "more than 32 KB of variables": Bad(
        "endpoints[0].container.environment",
        ("bytes in all", "32768"),
        endpoint=f"container: {{environment: {{{', '.join(f'V{i}: {LONG}' for i in range(33))}}}}}",
    ),
    "metrics port without metrics": Bad(
        "endpoints[0].container.metrics_port", ("allow_metrics",), endpoint="container: {metrics_port: 9000}"
    ),
    "metrics on SageMaker's port": Bad(
        "endpoints[0].container.metrics_port",
        ("8080", "SageMaker"),
        endpoint="container: {allow_metrics: true, metrics_port: 8080}",
    ),
    "gRPC on the metrics port": Bad(
        "endpoints[0].container.grpc_port",
        ("8002", "metrics"),
        endpoint="container: {allow_metrics: true, allow_grpc: true, grpc_port: 8002}",
    ),
    "value that YAML reads as a truth value": Bad("endpoints[0].name", ("on", "quotes"), endpoint="name: on"),
    "container is a list": Bad("endpoints[0].container", ("a mapping",), endpoint="container: []"),
    "description that is no tag value": Bad(
        "endpoints[0].description", ("letters, digits, blanks", "team <a>"), endpoint="description: team <a>"
    ),
    # keys, logs, data capture
    "artifacts' key of another region": Bad(
        "artifacts.key_arn",
        ("eu-west-1", "us-east-1"),
        header=f"artifacts: {{key_arn: {KEY.replace('us-east-1', 'eu-west-1')}}}",
    ),
    "artifacts' key that is no ARN": Bad("artifacts.key_arn", ("arn:aws",), header="artifacts: {key_arn: alias/mine}"),
    "role path without slashes": Bad("role_path", ("/team/",), header="role_path: team"),
    "retention that CloudWatch lacks": Bad("logs.endpoint_days", ("30", "60"), header="logs: {endpoint_days: 31}"),
    "retention of no day": Bad("logs.function_days", ("1",), header="logs: {function_days: 0}"),
    "data capture in multi-model mode": Bad(
        "endpoints[0].data_capture", ("multi-model", "captures no data"), endpoint="data_capture: {percentage: 20}"
    ),
    "data capture of nothing": Bad(
        "endpoints[0].data_capture.percentage", ("1 or more",), endpoint=SINGLE + "data_capture: {percentage: 0}"
    ),
    "data capture in a folder of builds": Bad(
        "endpoints[0].data_capture.folder",
        ("archives",),
        endpoint=SINGLE + "data_capture: {percentage: 1, folder: staging}",
    ),
    "data capture of one side twice": Bad(
        "endpoints[0].data_capture.capture",
        ("twice",),
        endpoint=SINGLE + "data_capture: {percentage: 1, capture: [input, input]}",
    ),
    "data capture of no side": Bad(
        "endpoints[0].data_capture.capture",
        ("at least 1",),
        endpoint=SINGLE + "data_capture: {percentage: 1, capture: []}",
    ),
}
