"""Names in greetings and signatures of a post."""

import pytest

from helpers.cleaning.salutations import mask_salutations


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hi Jane,\nit works.\n\nCheers,\nBob", "Hi @user,\nit works.\n\nCheers,\n@self"),
        (
            "Dear Prof. Doe and Jack, it works. Best regards, Bob Lee",
            "Dear @user, it works. Best regards, @self",
        ),
        ("Thanks Jane. It works.\n\n-Bob", "Thanks @user. It works.\n\n-@self"),
        ("Jane,\nit works.\n\nBob", "@user,\nit works.\n\n@self"),
        ("It works\n\nyours sincerely\njane\n----", "It works\n\nyours sincerely\n@self\n----"),
        ("It works.\n\nJane\n\nP.S. Ok?\n\nBob", "It works.\n\n@self\n\nP.S. Ok?\n\n@self"),
        ("Yeah -- it works. Sure, and Hmm", "Yeah -- it works. Sure, and Hmm"),
        ("It works. -- Jane", "It works. -- Jane"),
        ("It works.\n-- Jane\n", "It works.\n-- @self\n"),
        ("It works\nMy 2c,\nJane", "It works\nMy 2c,\n@self"),
        ("It works, thanks for your help, Jane", "It works, thanks for your help, @self"),
        ("It works.\n\nregards, otto m.", "It works.\n\nregards, @self"),
        (
            "It works.\n\nThanks for any ideas!\n\nOtto\n\nHere is the log:\n\nall of it",
            "It works.\n\nThanks for any ideas!\n\n@self\n\nHere is the log:\n\nall of it",
        ),
        (
            "Ok.\nBest regards,\nOtto M.\n\nOne more thing",
            "Ok.\nBest regards,\n@self\n\nOne more thing",
        ),
        ("Thanks for all.\nLinux works\n\nso far", "Thanks for all.\nLinux works\n\nso far"),
        ("It runs on Linux and\nWindows", "It runs on Linux and\nWindows"),
        ("Hello World, it works, thanks", "Hello World, it works, thanks"),
        (
            "Thanks for this.\nIt is the best\nsolution",
            "Thanks for this.\nIt is the best\nsolution",
        ),
    ],
)
def test_greetings_and_signatures(text, expected):
    assert mask_salutations(text)[0] == expected


def test_whom_a_letter_names():
    _, names = mask_salutations("Hi Jane and Jack,\nok.\n\nCheers, Bob Lee")
    assert names == ["Jane", "Jack", "Bob Lee"]
