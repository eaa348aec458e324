"""The contract's version. Stacks import this, so it imports nothing."""

from __future__ import annotations

CONTRACT = 1
"""It rises when a field is removed, renamed or gets another type or meaning: readers of the older one would break."""
MINOR = 0
"""It rises when fields are added, which readers of the same contract pass over; with a new contract it is 0 again."""
PARAMETER_BYTES = 4096
"""The longest value of a standard SSM parameter (Systems Manager user guide, "Managing parameter tiers")."""
