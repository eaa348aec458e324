"""The published claims as scenarios that are measured on the local Triton."""
