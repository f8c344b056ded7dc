"""Words, sentence patterns and distributions of habits of the demo corpus.

They are read from ``demo_lexicon.yaml``, whose comments say what each table holds. Words in
capitals, such as "N" or "INTENSIFIER", are slots of the sentence patterns.
"""

from pathlib import Path

import numpy as np
import yaml

LEXICON = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))

TOPICS = LEXICON["topics"]
GENERAL = LEXICON["general"]
SPELLING = LEXICON["spelling"]
PAIRS = LEXICON["pairs"]
CONTRACTIONS = LEXICON["contractions"]
ABBREVIATIONS = LEXICON["abbreviations"]
CHOICES = LEXICON["choices"]
CONCENTRATION = LEXICON["concentration"]
TRAITS = LEXICON["traits"]
PAIR_TRAIT = LEXICON["pair_trait"]
END_PRIOR = LEXICON["end_prior"]
PATTERNS = {
    voice: [pattern.split() for pattern in patterns]
    for voice, patterns in LEXICON["patterns"].items()
}

# approximate length of the list that stands for a habit: with a share of 0.25, 32 of 128 entries
HABIT_LENGTH = 128


def slot_fillings(habits: dict[str, float]) -> dict[str, list[str]]:
    """Return, by slot, the list of words from which an author fills it, each entry equally likely.

    Parameters
    ----------
    habits : dict
        the author's row of :func:`helpers.sources.demo.style_truth`, by column
    """
    slots = dict(GENERAL)
    for slot, forms in PAIRS.items():
        slots[slot] = _by_chance(forms, habits[slot.lower()])
    for slot, forms in ABBREVIATIONS.items():
        slots[slot] = _by_chance(forms, habits["abbreviation"])

    contracted = habits["contraction"]
    bare = habits["no_apostrophe"]
    for slot, (full_form, short_form) in CONTRACTIONS.items():
        forms = [full_form, short_form, short_form.replace("'", "")]
        shares = [1 - contracted, contracted * (1 - bare), contracted * bare]
        slots[slot] = _in_shares(forms, shares)

    for slot, words in SPELLING.items():
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
