"""What CloudFormation says of its own resource types. Standard library only: the local AWS reads it, too."""
