"""Say which addresses of the authors of commits are one person's. No encoder may see that."""

import re
from collections import defaultdict
from itertools import chain

import pandas as pd
from scipy.cluster.hierarchy import DisjointSet

from helpers.cleaning.authors import is_placeholder
from helpers.cleaning.text import FIRST_NAMES, USER_NUMBER, is_bot, normalise_unicode
from helpers.sources.git import address_of, commits, repositories

# words of names and of addresses that stand for a task or a machine, not for a person
ROLES = set(
    "account admin administrator backup build centos ci cloud contact debian default demo dev "
    "devel developer developers devstack docker ec2 email fedora git github gitlab hello home info "
    "jenkins linux localhost mail me name office openstack ops owner postgres public release "
    "releases root security server service stack staff super support sys system team test tester "
    "ubuntu user username vagrant web webmaster work zuul".split()
)
MIN_LOCAL_PART = 5  # letters and digits: "jd@a.org" and "jd@b.org" are often two people


def find_people(location: str | list[str]) -> pd.DataFrame:
    """Say which addresses of some histories are one person's.

    Two addresses are one person's where a ``.mailmap`` says so, where both were used with one full
    name, or where they agree before the @ in more than a first name, a last name or a role. Names
    such as "Your Name" and "root", and addresses such as root@localhost, join nobody. Who shares a
    last name and nothing else is undecided: such pairs are neither one person nor two.

    Parameters
    ----------
    location : str or list of str
        as in :func:`helpers.sources.git.parts`; all histories are joined

    Returns
    -------
    One row per address, sorted, with the columns ``author`` (the address as in the posts table),
    ``person`` (a number) and ``surname`` (the last name in lower case, "" where there is none).
    """
    people = DisjointSet()
    names = defaultdict(set)  # of each address, in lower case
    for root in repositories(location).values():
        for commit in commits(root):
            address = address_of(commit["address"])
            mapped_address = address_of(commit["mapped_address"])
            name = normalise_unicode(commit["mapped_name"]).casefold()
            if address:
                names[address].add(" ".join(name.split()))
                _join(people, address, mapped_address)

    full_names = {address: set(filter(_is_full_name, names[address])) for address in names}
    words_of_names = set(" ".join(chain.from_iterable(full_names.values())).split())
    for address, names_of_address in full_names.items():
        if _is_shared(address, names_of_address):
            continue
        for name in names_of_address:
            _join(people, address, f"{name}\0name")
        local_part = _local_part(address)
        if local_part and local_part not in words_of_names:
            _join(people, address, f"{local_part}\0local")

    table = pd.DataFrame({"author": sorted(names)})
    table["person"], _ = pd.factorize(table["author"].map(people.__getitem__))
    table["surname"] = table["author"].map(names).map(_surname)
    return table


def _join(people, address, key):
    """Make an address one person's with all that have the key, in place."""
    people.add(address)
    people.add(key)
    people.merge(address, key)


def _is_shared(address, full_names):
    """Return whether an address stands for a task or a machine, or for a bot."""
    is_role = address.partition("@")[0] in ROLES
    return is_role and len(full_names) > 1 or is_bot(address) or is_placeholder(address)


def _is_full_name(name):
    """Return whether a name in lower case has several words, and is one person's."""
    words = set(name.split())
    return len(words) > 1 and not words <= ROLES and not is_placeholder(name) and not is_bot(name)


def _local_part(address):
    """Return what stands before the @, without dots, where few people share it; else None."""
    name = USER_NUMBER.sub("", address).partition("@")[0].partition("+")[0]
    local_part = re.sub(r"[\W_]", "", name)
    if len(local_part) < MIN_LOCAL_PART or local_part in ROLES | FIRST_NAMES:
        return None
    return local_part


def _surname(names):
    """Return the last word of the longest of an address's names, "" where it has one word."""
    words = max(sorted(names), key=len).split()
    return words[-1] if len(words) > 1 else ""
