"""What columns of a table say about its rows: posts of programs, and posts of other people."""

import re

import pandas as pd

# columns that tell posts of bots, in lower case and without marks: "is_bot", "author.isBot"
TRUTH_OF_BOT = set(
    "bot isbot accountbot authorbot authorisbot userbot userisbot senderisbot".split()
)
ID_OF_BOT = set("botid viabot".split())  # the same, with the bot's name or number
# columns that are filled, or true, where somebody passed on another's post: "forwarded_from" of
# Telegram, "reblog.id" of Mastodon, "retweeted_status_id" of Twitter
REPOST = set(
    "forwardedfrom forwardedfromid forwardfrom forwardorigin isforwarded fwdfrom reblog reblogid "
    "reblogofid retweetedstatus retweetedstatusid isretweet".split()
)
TRUE_WORDS = set("true t yes y 1 1.0".split())
FALSE_WORDS = set("false f no n 0 0.0 none null nan".split()) | {""}


def marks_rows(column: str) -> bool:
    """Return whether a column is called as those that mark posts of bots, or of others."""
    return _bare_name(column) in TRUTH_OF_BOT | ID_OF_BOT | REPOST


def marked_rows(texts: dict[str, pd.Series], n_rows: int) -> tuple[pd.Series, pd.Series]:
    """Return which rows are posts of bots, and which are posts that somebody passed on.

    Parameters
    ----------
    texts : dict
        name of a column that :func:`marks_rows` -> its values as text, (N,)
    n_rows : int
        N

    Returns
    -------
    Two columns (N,) bool
    """
    is_of_bot = pd.Series(False, range(n_rows))
    is_repost = is_of_bot.copy()
    for column, values in texts.items():
        words = values.fillna("").str.strip().str.casefold()
        name = _bare_name(column)
        if name in TRUTH_OF_BOT:
            is_of_bot |= words.isin(TRUE_WORDS)
        elif name in ID_OF_BOT:
            is_of_bot |= ~words.isin(FALSE_WORDS)
        else:
            is_repost |= ~words.isin(FALSE_WORDS)
    return is_of_bot, is_repost


def _bare_name(column):
    """Return the name of a column in lower case, letters only."""
    return re.sub(r"[\W_]+", "", column).casefold()
