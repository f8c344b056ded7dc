"""Names in greetings and signatures of a post."""

import pytest

from helpers.cleaning.salutations import mask_salutations
from tests.cleaning.examples import EXAMPLES


@pytest.mark.parametrize(("text", "expected"), EXAMPLES["salutations"])
def test_greetings_and_signatures(text, expected):
    assert mask_salutations(text)[0] == expected


def test_whom_a_letter_names():
    _, names = mask_salutations("Hi Jane and Jack,\nok.\n\nCheers, Bob Lee")
    assert names == ["Jane", "Jack", "Bob Lee"]
