"""One module a command of the group; each defines ``command``."""
