"""What we decide: pure functions and their state. No I/O, no clock, no randomness; time is an argument."""
