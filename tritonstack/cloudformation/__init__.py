"""CloudFormation's resource types. Standard library only: the local AWS reads it, too."""
