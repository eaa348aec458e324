"""CloudFormation resource types and stack operations that MiniStack lacks or has in part."""
