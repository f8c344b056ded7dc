"""Own accounts: from posts to vectors, ranks, probabilities and the evidence for them.

In come a person's posts, as lists of texts or as a file with columns of any name. Out go vectors of
accounts, ranked and calibrated answers about who belongs to whom, and the words that speak for
them. It never trains a network, never shows a name that it was not told to show, and never calls an
answer a proof.
"""
