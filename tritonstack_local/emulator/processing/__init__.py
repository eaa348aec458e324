"""SageMaker Processing: a job's entrypoint as a subprocess of the emulator, its inputs and outputs in the local S3."""
