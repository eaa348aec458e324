"""Bytes in words."""

from __future__ import annotations

_KIB = 1024


def bytes_text(count: int) -> str:
    """Bytes by powers of 1024: ``17 bytes``, ``90.2 MiB``."""
    if count < _KIB:
        return f"{count} byte{'' if count == 1 else 's'}"
    value = float(count)
    for unit in ("KiB", "MiB", "GiB"):
        value /= _KIB
        if value < _KIB:
            return f"{value:.1f} {unit}"
    return f"{value / _KIB:.1f} TiB"
