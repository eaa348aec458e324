"""Application Auto Scaling of endpoint variants, by the emulator's clock."""
