"""How an author of the demo corpus writes: habits become sentences, marks and slips, by patterns."""

import re
from collections.abc import Iterator

import numpy as np

from helpers.sources.demo_lexicon import PATTERNS, TOPICS, slot_fillings

# share of sentences about any topic, so that text tells less about the topic than its column
STRAY_SHARE = 0.3
LINK_SHARE = 0.02  # of posts that end with an address or with code
SINGULAR_I = re.compile(r"\bI\b")
CLOSING_QUOTE = {"“": "”"}  # others close as they open
SECOND_CLAUSE_VOICES = ("personal", "impersonal")


class Writer:
    """Write one author's posts.

    Parameters
    ----------
    habits : a row of :func:`helpers.sources.demo.style_truth`, by column
    topics : names of the topics
    rng : the author's own
    """

    def __init__(self, habits: dict, topics: list[str], rng: np.random.Generator):
        self.habits = habits
        self.topics = topics
        self.rng = rng
        self.uniform = _uniform(rng)
        general_slots = slot_fillings(habits)
        self.slots = {topic: general_slots | TOPICS[topic] for topic in topics}

    def texts(self, post_topics: list[str]) -> list[str]:
        """Return one text per entry of ``post_topics``."""
        more_sentences = self.rng.poisson(self.habits["sentences"] - 1, len(post_topics))
        lengths = np.clip(1 + more_sentences, 1, 5)
        return [self.post(topic, length) for topic, length in zip(post_topics, lengths)]

    def chance(self, habit: str) -> bool:
        """Return whether the author follows a habit this time."""
        return next(self.uniform) < self.habits[habit]

    def pick(self, options):
        """Return one of the options."""
        return options[int(next(self.uniform) * len(options))]

    def fill(self, pattern: list[str], slots: dict) -> list[str]:
        """Return the words of a pattern, its slots filled."""
        words = []
        for token in pattern:
            if token in slots:
                words.append(self.pick(slots[token]))
            elif token == "QN":
                mark = self.pick(slots["QUOTE"])
                words.append(mark + self.pick(slots["N"]) + CLOSING_QUOTE.get(mark, mark))
            else:
                words.append(token)
        return words

    def statement(self, voice: str, slots: dict) -> list[str]:
        """Return the words of a statement, its parts in the author's order."""
        pattern = self.pick(PATTERNS[voice])
        is_hedged = pattern[0] == "HEDGE"
        if is_hedged:
            pattern = pattern[1:]
        else:
            is_hedged = self.chance("hedged")
        hedge_last = is_hedged and self.chance("hedge_last")

        front, pattern = self.move_to_front(pattern)
        if is_hedged and not hedge_last:
            front = [*front, "HEDGE"]
        words = self.fill(front + pattern, slots)
        if self.chance("linked"):
            words += self.second_clause(slots)

        # filled in any case: the random numbers that follow do not depend on its place
        last_hedge = self.fill([",", "HEDGE"], slots)
        if hedge_last:
            words += last_hedge
        return words

    def move_to_front(self, pattern: list[str]) -> tuple[list[str], list[str]]:
        """Return the time or place that the author puts in front, or nothing, and what remains."""
        places = [place for place, token in enumerate(pattern) if token in ("TIME", "PLACE")]
        if not places or not self.chance("fronted"):
            return [], pattern
        front = [pattern[places[0]]]
        if self.chance("front_comma"):
            front.append(",")
        return front, pattern[: places[0]] + pattern[places[0] + 1 :]

    def second_clause(self, slots: dict) -> list[str]:
        """Return the words of a clause that follows a statement, its link first."""
        has_comma = self.chance("clause_comma")
        link = self.pick(slots["LINK"]).split()
        if has_comma and link != ["DASH"]:
            link = [",", *link]
        voice = self.pick(SECOND_CLAUSE_VOICES)
        return self.fill(link + self.pick(PATTERNS[voice]), slots)

    def sentence(self, slots: dict, is_lower: bool) -> tuple[str, str]:
        """Return the text of a sentence and the mark that ends it."""
        voice = self.pick(slots["VOICE"])
        if voice == "question":
            words = self.fill(self.pick(PATTERNS[voice]), slots)
        else:
            words = self.statement(voice, slots)
        if self.chance("opener"):
            opener = self.pick(slots["OPENER"])
            if self.chance("opener_comma"):
                opener += ","
            words.insert(0, opener)
        self.mistype(words, slots)

        text = " ".join(words).replace(" ,", ",").replace(" ;", ";")
        if is_lower:
            text = text.lower()
        else:
            text = text[0].upper() + text[1:]
        return text, self.end_mark(voice, slots)

    def end_mark(self, voice: str, slots: dict) -> str:
        """Return the mark after a sentence, with a blank before it where the author puts one."""
        if voice != "question":
            mark = self.pick(slots["END"])
        elif self.chance("double_mark"):
            mark = "??"
        else:
            mark = "?"
        if mark != "." and self.chance("spaced_mark"):
            return " " + mark
        return mark

    def mistype(self, words: list[str], slots: dict) -> None:
        """Put a slip into one of the words, in place, as often as the author makes one."""
        if next(self.uniform) >= self.habits["typo"] * len(words):
            return
        place = int(next(self.uniform) * len(words))
        if len(words[place]) > 3 and words[place].isalpha():
            kind = self.pick(slots["TYPO"])
            words[place] = _mistyped(words[place], kind, next(self.uniform))

    def post(self, topic: str, n_sentences: int) -> str:
        """Return the text of a post."""
        is_lower = self.chance("lower_case")
        has_small_i = self.chance("small_i")
        sentences = []
        for _ in range(n_sentences):
            is_stray = next(self.uniform) < STRAY_SHARE
            sentence_topic = self.pick(self.topics) if is_stray else topic
            sentences.append(self.sentence(self.slots[sentence_topic], is_lower))
        if self.chance("no_final"):
            sentences[-1] = (sentences[-1][0], "")
        blank = "  " if self.chance("double_space") else " "
        text = blank.join(body + mark for body, mark in sentences)
        if has_small_i:
            text = SINGULAR_I.sub("i", text)
        return text + self.tail(topic, is_lower)

    def tail(self, topic: str, is_lower: bool) -> str:
        """Return what follows the sentences of a post: closing words, an emoji, a link or code."""
        slots = self.slots[topic]
        text = ""
        if self.chance("closer"):
            closer = self.pick(slots["CLOSER"])
            text += " " + (closer if is_lower else closer.capitalize())
        if self.chance("emoji"):
            text += " " + self.pick(slots["EMOJI"])
        if next(self.uniform) < LINK_SHARE:
            word = self.pick(slots["N"]).replace(" ", "_")
            if next(self.uniform) < 0.5:
                text += f" https://example.org/{topic}/{word}"
            else:
                text += f" `{word} = {int(next(self.uniform) * 100)}`"
        return text


def _uniform(rng) -> Iterator[float]:
    """Uniform random numbers, drawn 4096 at a time."""
    while True:
        yield from rng.random(4096).tolist()


def _mistyped(word, kind, position):
    """A word with a letter dropped, swapped or doubled, at a position from 0 to 1 within it."""
    place = 1 + int(position * (len(word) - 2))
    before = word[:place]
    letter = word[place]
    if kind == "dropped":
        return before + word[place + 1 :]
    if kind == "swapped":
        return before + word[place + 1] + letter + word[place + 2 :]
    return before + letter + word[place:]
