"""Training: one loop, its checkpoints, and the one door for experiments.

An encoder, a loss and a sampler of batches come in, as a description that is checked once. A
trained encoder with its best weights and its learning curve goes out, kept in a folder that names
what made it. Training never chooses by test data, and never continues from a damaged file.
"""
