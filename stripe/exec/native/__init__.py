"""The processor that this program runs on: found, measured, and as a hardware model (`--hw native`)."""
