"""Own accounts: from posts to vectors, ranks, probabilities and the evidence for them.

This room takes the posts of accounts, as lists of texts or as a file with columns of any name. It
returns one vector per account, a ranking of the accounts that may belong to the same person as
another one, calibrated probabilities, and the words that support each answer. It never trains a
network, shows pseudonyms unless it is told to show names, and never calls an answer a proof.
"""

from ..core.rooms import front_door

__getattr__, __dir__ = front_door(
    __name__,
    {
        ".decisions": ["read_decisions"],
        ".encoder": ["AuthorEncoder"],
        ".gallery": ["LINK_COSTS", "NOBODY", "AccountGallery"],
        ".answers": ["LINKED", "Question", "match"],
        ".reading": ["QUERIES", "read_posts", "tokenise_posts"],
        ".page": ["sentences"],
        ".samples": [
            "halves",
            "last_posts",
            "samples_of",
            "spread_posts",
            "texts_of",
            "whole_accounts",
            "without_passages",
        ],
        ".signs": [
            "NOT_WORDS",
            "contributions",
            "evidence",
            "highlight",
            "part_of_words",
            "scores_by_member",
            "topic_words",
        ],
    },
)
