"""SageMaker's InvokeEndpoint on this machine, for every endpoint that was deployed to the local AWS."""
