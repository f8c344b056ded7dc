"""How an author of the demo corpus writes: habits turned into sentences, marks and slips, by patterns."""

import re
from itertools import chain, repeat

import numpy as np

from helpers.sources.demo_lexicon import PATTERNS, TOPICS, slot_fillings

STRAY = 0.3  # share of sentences about any topic, so that text tells less about the topic than its column
ONESELF = re.compile(r"\bI\b")
CLOSING = {"“": "”"}
LINKED = ("personal", "impersonal")  # voices of a second clause


class Writer:
    """Writes one author's posts.

    row : habits, one of :func:`helpers.sources.demo.style_truth`. names : of the topics. rng : the author's own.
    """

    def __init__(self, row, names, rng):
        self.row, self.names, self.rng = row, names, rng
        self.u = chain.from_iterable(
            rng.random(4096).tolist() for _ in repeat(None)
        ).__next__  # uniform numbers
        self.habits = slot_fillings(row)
        self.slots = {name: self.habits | TOPICS[name] for name in names}

    def texts(self, topics) -> list[str]:
        """One text per entry of ``topics``."""
        lengths = np.clip(
            1 + self.rng.poisson(self.row["sentences"] - 1, len(topics)), 1, 5
        ).tolist()
        return [self.post(topic, length) for topic, length in zip(topics, lengths)]

    def chance(self, habit) -> bool:
        return bool(self.u() < self.row[habit])

    def pick(self, options):
        return options[int(self.u() * len(options))]

    def fill(self, tokens, slot) -> list[str]:
        words = []
        for token in tokens:
            if token in slot:
                words.append(self.pick(slot[token]))
            elif token == "QN":
                mark = self.pick(slot["QUOTE"])
                words.append(mark + self.pick(slot["N"]) + CLOSING.get(mark, mark))
            else:
                words.append(token)
        return words

    def statement(self, voice, slot) -> list[str]:
        """Words of a statement, its parts in the author's order."""
        tokens, when, hedge = self.pick(PATTERNS[voice]), [], []
        if tokens[0] == "HEDGE":
            tokens, hedge = tokens[1:], ["HEDGE"]
        elif self.chance("hedged"):
            hedge = ["HEDGE"]
        late = bool(hedge) and self.chance("hedge_last")
        place = next((at for at, token in enumerate(tokens) if token in ("TIME", "PLACE")), None)
        if place is not None and self.chance("fronted"):
            when = [tokens[place], ","] if self.chance("front_comma") else [tokens[place]]
            tokens = tokens[:place] + tokens[place + 1 :]
        words = self.fill(when + (hedge * (not late)) + tokens, slot)
        if self.chance("linked"):
            comma = [","] if self.chance("clause_comma") else []
            link = self.pick(slot["LINK"]).split()
            words += self.fill(
                comma * (link != ["DASH"]) + link + self.pick(PATTERNS[self.pick(LINKED)]), slot
            )
        return words + self.fill([",", "HEDGE"], slot) * late

    def sentence(self, slot, lower) -> tuple[str, str]:
        """Text and the mark that ends it."""
        voice = self.pick(slot["VOICE"])
        asks = voice == "question"
        words = self.fill(self.pick(PATTERNS[voice]), slot) if asks else self.statement(voice, slot)
        if self.chance("opener"):
            words = [
                self.pick(slot["OPENER"]) + ("," if self.chance("opener_comma") else "")
            ] + words
        if self.u() < self.row["typo"] * len(words):
            at = int(self.u() * len(words))
            if len(words[at]) > 3 and words[at].isalpha():
                words[at] = _typo(words[at], self.pick(slot["TYPO"]), self.u())
        text = " ".join(words).replace(" ,", ",").replace(" ;", ";")
        text = text.lower() if lower else text[0].upper() + text[1:]
        mark = ("??" if self.chance("double_mark") else "?") if asks else self.pick(slot["END"])
        return text, " " * (mark != "." and self.chance("spaced_mark")) + mark

    def post(self, name, length) -> str:
        slots, habits = self.slots, self.habits
        lower, small = self.chance("lower_case"), self.chance("small_i")
        sentences = [
            self.sentence(slots[self.pick(self.names) if self.u() < STRAY else name], lower)
            for _ in range(length)
        ]
        if self.chance("no_final"):
            sentences[-1] = (sentences[-1][0], "")
        text = ("  " if self.chance("double_space") else " ").join(
            body + mark for body, mark in sentences
        )
        if small:
            text = ONESELF.sub("i", text)
        if self.chance("closer"):
            closer = self.pick(habits["CLOSER"])
            text += " " + (closer if lower else closer.capitalize())
        if self.chance("emoji"):
            text += " " + self.pick(habits["EMOJI"])
        if self.u() < 0.02:
            word = self.pick(slots[name]["N"]).replace(" ", "_")
            text += (
                f" https://example.org/{name}/{word}"
                if self.u() < 0.5
                else f" `{word} = {int(self.u() * 100)}`"
            )
        return text


def _typo(word, kind, u):
    at = 1 + int(u * (len(word) - 2))
    if kind == "dropped":
        return word[:at] + word[at + 1 :]
    if kind == "swapped":
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return word[:at] + word[at] + word[at:]
