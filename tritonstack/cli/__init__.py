"""One module a command of the command line; each defines ``command``."""
