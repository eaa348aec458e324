"""The command line: a file a group of commands, with their arguments, requests and output."""
