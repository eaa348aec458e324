"""Models that a change adds, rebuilds, rolls back or moves, their engines, and releases of Triton."""
