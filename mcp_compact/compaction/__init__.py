"""The algorithms: pure functions from values to plans. Nothing here reads a clock, a file or the environment."""
