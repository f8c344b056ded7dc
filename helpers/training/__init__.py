"""One loop, its checkpoints, and the one door for experiments."""
