"""Own accounts: from posts to vectors, ranks, probabilities and the evidence for them.

This room takes the posts of accounts, as lists of texts or as a file with columns of any name. It
returns one vector per account, a ranking of the accounts that may belong to the same person as
another one, calibrated probabilities, and the words that support each answer. It never trains a
network, shows pseudonyms unless it is told to show names, and never calls an answer a proof.
"""
