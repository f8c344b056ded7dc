"""Own accounts: from posts to vectors, ranks, probabilities and the evidence for them, with weights that ship."""
