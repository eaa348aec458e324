"""CloudFormation resource types that MiniStack lacks or only half keeps."""
