"""Rules about what a backend reads: its configuration, its model files, its libraries."""
