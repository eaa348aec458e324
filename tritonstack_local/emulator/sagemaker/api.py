"""SageMaker's operations by name."""

from __future__ import annotations

from tritonstack_local.emulator.json_service import JsonService, Operation
from tritonstack_local.emulator.processing.jobs import ProcessingJobs
from tritonstack_local.emulator.processing.request import PROCESSING_JOB
from tritonstack_local.emulator.recommender.jobs import RecommendationJobs
from tritonstack_local.emulator.recommender.packages import ModelPackages
from tritonstack_local.emulator.sagemaker.endpoints import Endpoints
from tritonstack_local.emulator.sagemaker.models import EndpointConfigs, Models
from tritonstack_local.emulator.sagemaker.records import ENDPOINT, ENDPOINT_CONFIG, MODEL
from tritonstack_local.emulator.sagemaker.state import SageMakerState, Tags, listing


def sagemaker_service(state: SageMakerState, endpoints: Endpoints, jobs: ProcessingJobs) -> JsonService:
    """SageMaker as far as hosting, processing and Inference Recommender go."""
    models, configs, tagging = Models(state), EndpointConfigs(state), Tags(state)
    packages = ModelPackages(state)
    recommendations = RecommendationJobs(state, packages)
    operations: dict[str, Operation] = {
        "CreateModel": models.create,
        "DescribeModel": models.describe,
        "DeleteModel": models.delete,
        "ListModels": lambda request: listing(MODEL, state.models, request),
        "CreateEndpointConfig": configs.create,
        "DescribeEndpointConfig": configs.describe,
        "DeleteEndpointConfig": configs.delete,
        "ListEndpointConfigs": lambda request: listing(ENDPOINT_CONFIG, state.endpoint_configs, request),
        "CreateEndpoint": endpoints.create,
        "UpdateEndpoint": endpoints.update,
        "UpdateEndpointWeightsAndCapacities": endpoints.scale,
        "DescribeEndpoint": endpoints.describe,
        "DeleteEndpoint": endpoints.delete,
        "ListEndpoints": lambda request: listing(ENDPOINT, state.endpoints, request),
        "CreateProcessingJob": jobs.create,
        "DescribeProcessingJob": jobs.describe,
        "StopProcessingJob": jobs.stop,
        "ListProcessingJobs": lambda request: listing(PROCESSING_JOB, state.processing_jobs, request),
        "CreateModelPackageGroup": packages.create_group,
        "DescribeModelPackageGroup": packages.describe_group,
        "DeleteModelPackageGroup": packages.delete_group,
        "CreateModelPackage": packages.create,
        "DescribeModelPackage": packages.describe,
        "DeleteModelPackage": packages.delete,
        "ListModelPackages": packages.list,
        "CreateInferenceRecommendationsJob": recommendations.create,
        "DescribeInferenceRecommendationsJob": recommendations.describe,
        "StopInferenceRecommendationsJob": recommendations.stop,
        "AddTags": tagging.add,
        "DeleteTags": tagging.delete,
        "ListTags": tagging.list,
    }

    def forget() -> None:
        jobs.end_all()
        recommendations.clear()
        packages.clear()
        state.clear()

    return JsonService(service="sagemaker", target_prefix="SageMaker", operations=operations, forget=forget)
