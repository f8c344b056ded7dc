"""Words of a common topic are the room's."""

import numpy as np

from helpers.accounts.gallery import AccountGallery
from helpers.accounts.signs import topic_words
from helpers.sources import demo_writer


def gallery_of_rooms(encoder, count=24):
    """Accounts of two rooms; the first speaks of kilns, and two accounts say "forsooth" alike."""
    rng = np.random.default_rng(0)
    words = (
        "the a some never always green red two three want like well so but then maybe old new"
    ).split()
    posts = []
    rooms = []
    for account in range(count):
        texts = [rng.choice(words, 6).tolist() for _ in range(16)]
        rooms.append(["clay" if account % 2 == 0 or post % 8 == 0 else "tea" for post in range(16)])
        for post in range(16):
            if rooms[-1][post] == "clay" and post % 4 == 0:
                texts[post].insert(3, "kiln")
            if account < 2 and post % 2 == 0:
                texts[post].insert(3, "forsooth")
            if post % 5 == 0:
                texts[post].insert(3, "yonder")
        posts.append([" ".join(of_post) for of_post in texts])
    names = [f"account {number}" for number in range(count)]
    return AccountGallery.of(encoder, posts, names, topics=rooms)


def test_topic_words_are_of_the_room_and_of_neither_account(encoder):
    """kiln is the room's; forsooth, as often there, is theirs; yonder is everybody's everywhere."""
    gallery = gallery_of_rooms(encoder)
    query = gallery.accounts(["account 0"])
    assert topic_words(gallery, query, "account 1", "account 0") == ["kiln"]
    assert topic_words(gallery, query, "account 2", "account 0") == ["kiln"]
    alone = AccountGallery(encoder, gallery.accounts(["account 1"]), ["account 1"])
    assert topic_words(alone, query, "account 1") == [], "nobody else to say what is the room's"


def test_topic_words_of_the_demo_are_those_that_were_planted(gallery):
    planted = {
        word
        for topic in demo_writer.TOPICS.values()
        for kind in topic.values()
        for name in kind
        for word in name.split()
    }
    words = topic_words(gallery, gallery.accounts(["newcomer"]), "demo-0003", "newcomer")
    assert words and set(words) <= planted
