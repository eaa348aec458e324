"""Rules about Python models, and the reading of their programs; nothing of a program is run."""
