"""What a pipeline's stacks, commands and tests share, without the CDK: names, commands, bootstrap."""
