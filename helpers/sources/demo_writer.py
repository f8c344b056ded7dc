"""Texts of the demo corpus: sentence patterns, filled by an author's habits, with typing slips.

Words, patterns and distributions of habits are read from ``demo_lexicon.yaml``, whose comments say
what each table holds. Words in capitals, such as "N" or "INTENSIFIER", are slots of the patterns.
"""

import re
from itertools import chain, repeat
from pathlib import Path

import numpy as np
import yaml

LEXICON = yaml.safe_load(Path(__file__).with_name("demo_lexicon.yaml").read_text("utf-8"))

TOPICS = LEXICON["topics"]
PAIRS = LEXICON["pairs"]
TRAITS = LEXICON["traits"]
CHOICES = LEXICON["choices"]
PATTERNS = {
    voice: [pattern.split() for pattern in patterns]
    for voice, patterns in LEXICON["patterns"].items()
}

# approximate length of the list that stands for a habit: with a share of 0.25, 32 of 128 entries
HABIT_LENGTH = 128

# share of sentences on a topic chosen at random, so that the text of a post tells less about its
# topic than the column ``topic`` does
STRAY_SHARE = 0.3
LINK_SHARE = 0.02  # share of posts that end with a web address or with inline code
SINGULAR_I = re.compile(r"\bI\b")
CLOSING_QUOTE = {"“": "”"}  # every other quotation mark closes as it opens
# a question does not stand in a second clause
SECOND_CLAUSE_VOICES = ("personal", "impersonal")


class Writer:
    """Write one author's posts.

    Parameters
    ----------
    habits : dict
        the author's row of :func:`helpers.sources.demo.style_truth`, by column
    topics : list of str
        names of all topics of the corpus
    rng : numpy Generator
        source of all random choices of this author's texts
    """

    def __init__(self, habits: dict, topics: list[str], rng: np.random.Generator):
        self.habits = habits
        self.topics = topics
        self.rng = rng
        # uniform numbers without end, 4096 at a time for speed
        self.uniform = chain.from_iterable(rng.random(4096).tolist() for _ in repeat(None))
        general_slots = slot_fillings(habits)
        self.slots = {topic: general_slots | TOPICS[topic] for topic in topics}

    def texts(self, post_topics: list[str]) -> list[str]:
        """Return one text per entry of ``post_topics``, the topics of the author's posts."""
        more_sentences = self.rng.poisson(self.habits["sentences"] - 1, len(post_topics))
        lengths = np.clip(1 + more_sentences, 1, 5)
        return [self._post(topic, length) for topic, length in zip(post_topics, lengths)]

    def _chance(self, habit):
        """Return at random whether the author follows a habit this time."""
        return next(self.uniform) < self.habits[habit]

    def _pick(self, options):
        """Return one of the options at random, all equally likely."""
        return options[int(next(self.uniform) * len(options))]

    def _fill(self, pattern, slots):
        """Return the words of a pattern with its slots filled; "QN" is a quoted noun."""
        words = []
        for token in pattern:
            if token in slots:
                words.append(self._pick(slots[token]))
            elif token == "QN":
                mark = self._pick(slots["QUOTE"])
                words.append(mark + self._pick(slots["N"]) + CLOSING_QUOTE.get(mark, mark))
            else:
                words.append(token)
        return words

    def _statement(self, voice, slots):
        """Return the words of a statement, its parts in the author's order."""
        pattern = self._pick(PATTERNS[voice])
        is_hedged = pattern[0] == "HEDGE"
        if is_hedged:
            pattern = pattern[1:]
        else:
            is_hedged = self._chance("hedged")
        hedge_last = is_hedged and self._chance("hedge_last")

        front, pattern = self._move_to_front(pattern)
        if is_hedged and not hedge_last:
            front = [*front, "HEDGE"]
        words = self._fill(front + pattern, slots)
        if self._chance("linked"):
            words += self._second_clause(slots)

        # filled even if unused, so that later random numbers do not depend on the hedge's place
        last_hedge = self._fill([",", "HEDGE"], slots)
        if hedge_last:
            words += last_hedge
        return words

    def _move_to_front(self, pattern):
        """Return the tokens moved to the front (a time or place, or none), and the others."""
        places = [place for place, token in enumerate(pattern) if token in ("TIME", "PLACE")]
        if not places or not self._chance("fronted"):
            return [], pattern
        front = [pattern[places[0]]]
        if self._chance("front_comma"):
            front.append(",")
        return front, pattern[: places[0]] + pattern[places[0] + 1 :]

    def _second_clause(self, slots):
        """Return the words of a clause that follows a statement, its link first."""
        has_comma = self._chance("clause_comma")
        link = self._pick(slots["LINK"]).split()
        if has_comma and link != ["DASH"]:
            link = [",", *link]
        voice = self._pick(SECOND_CLAUSE_VOICES)
        return self._fill(link + self._pick(PATTERNS[voice]), slots)

    def _sentence(self, slots, is_lower):
        """Return the text of a sentence, and the mark that ends it, apart."""
        voice = self._pick(slots["VOICE"])
        if voice == "question":
            words = self._fill(self._pick(PATTERNS[voice]), slots)
        else:
            words = self._statement(voice, slots)
        if self._chance("opener"):
            opener = self._pick(slots["OPENER"])
            if self._chance("opener_comma"):
                opener += ","
            words.insert(0, opener)
        self._mistype(words, slots)

        text = " ".join(words).replace(" ,", ",").replace(" ;", ";")
        if is_lower:
            text = text.lower()
        else:
            text = text[0].upper() + text[1:]
        return text, self._end_mark(voice, slots)

    def _end_mark(self, voice, slots):
        """Return the mark after a sentence, with a blank before it where the author puts one."""
        if voice != "question":
            mark = self._pick(slots["END"])
        elif self._chance("double_mark"):
            mark = "??"
        else:
            mark = "?"
        if mark != "." and self._chance("spaced_mark"):
            return " " + mark
        return mark

    def _mistype(self, words, slots):
        """Mistype one of the words, in place, as often as the author does; short words stay."""
        if next(self.uniform) >= self.habits["typo"] * len(words):
            return
        place = int(next(self.uniform) * len(words))
        if len(words[place]) > 3 and words[place].isalpha():
            kind = self._pick(slots["TYPO"])
            words[place] = _mistyped(words[place], kind, next(self.uniform))

    def _post(self, topic, n_sentences):
        """Return the text of a post of some sentences on a topic."""
        is_lower = self._chance("lower_case")
        has_small_i = self._chance("small_i")
        sentences = []
        for _ in range(n_sentences):
            is_stray = next(self.uniform) < STRAY_SHARE
            sentence_topic = self._pick(self.topics) if is_stray else topic
            sentences.append(self._sentence(self.slots[sentence_topic], is_lower))
        if self._chance("no_final"):
            sentences[-1] = (sentences[-1][0], "")
        blank = "  " if self._chance("double_space") else " "
        text = blank.join(body + mark for body, mark in sentences)
        if has_small_i:
            text = SINGULAR_I.sub("i", text)
        return text + self._tail(topic, is_lower)

    def _tail(self, topic, is_lower):
        """Return what follows the sentences of a post: closing words, an emoji, a link or code."""
        slots = self.slots[topic]
        text = ""
        if self._chance("closer"):
            closer = self._pick(slots["CLOSER"])
            if not is_lower:
                closer = closer.capitalize()
            text += " " + closer
        if self._chance("emoji"):
            text += " " + self._pick(slots["EMOJI"])
        if next(self.uniform) < LINK_SHARE:
            word = self._pick(slots["N"]).replace(" ", "_")
            if next(self.uniform) < 0.5:
                text += f" https://example.org/{topic}/{word}"
            else:
                text += f" `{word} = {int(next(self.uniform) * 100)}`"
        return text


def _mistyped(word, kind, position):
    """Return a word with a letter dropped, swapped with the next, or doubled.

    ``kind`` says which of the three. ``position``, 0 to 1, says where; the first letter stays.
    """
    place = 1 + int(position * (len(word) - 2))
    before = word[:place]
    letter = word[place]
    if kind == "dropped":
        return before + word[place + 1 :]
    if kind == "swapped":
        return before + word[place + 1] + letter + word[place + 2 :]
    return before + letter + word[place:]


def slot_fillings(habits: dict[str, float]) -> dict[str, list[str]]:
    """Return, by slot, the list of words from which an author fills it, each entry equally likely.

    Parameters
    ----------
    habits : dict
        the author's row of :func:`helpers.sources.demo.style_truth`, by column
    """
    slots = dict(LEXICON["general"])
    for slot, forms in PAIRS.items():
        slots[slot] = _by_chance(forms, habits[slot.lower()])
    for slot, forms in LEXICON["abbreviations"].items():
        slots[slot] = _by_chance(forms, habits["abbreviation"])

    contracted = habits["contraction"]
    bare = habits["no_apostrophe"]
    for slot, (full_form, short_form) in LEXICON["contractions"].items():
        forms = [full_form, short_form, short_form.replace("'", "")]
        shares = [1 - contracted, contracted * (1 - bare), contracted * bare]
        slots[slot] = _in_shares(forms, shares)

    for slot, words in LEXICON["spelling"].items():
        slots[slot] = []
        for british_form, american_form in words.items():
            shares = [habits["british"], 1 - habits["british"]]
            slots[slot] += _in_shares([british_form, american_form], shares)
    slots["NUM"] = []
    for forms in LEXICON["numbers"].items():
        slots["NUM"] += _by_chance(forms, habits["digits"])

    for choice, options in CHOICES.items():
        shares = [habits[f"{choice}_{option}"] for option in options]
        slots[choice.upper()] = _in_shares(options, shares)
    _shout(slots["INTENSIFIER"], habits["shout"])
    return slots


def _by_chance(forms, chance):
    """Return a list of about HABIT_LENGTH entries, with the given share of the second form."""
    return _in_shares(forms, [1 - chance, chance])


def _in_shares(forms, shares):
    """Return a list of about HABIT_LENGTH entries in which each form has its share."""
    counts = np.rint(np.asarray(shares) * HABIT_LENGTH).astype(int)
    return np.repeat(np.array(forms, object), counts).tolist()


def _shout(words, share):
    """Put a share of the words in capitals, in place.

    37 and HABIT_LENGTH have no common divisor, so steps of 37 spread the capitals over all words.
    """
    shouted = int(share * HABIT_LENGTH)
    for place, word in enumerate(words):
        if 37 * place % HABIT_LENGTH < shouted:
            words[place] = word.upper()
