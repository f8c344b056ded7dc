"""Damage to files: a bit flipped, a part cut off, bytes added, nothing left, a folder in its place.

And what became of it: an answer is compared with that of the whole file.
"""

import random

FLIPS = ("flip anywhere", "flip at the start", "flip at the end")
CUTS = ("last byte cut", "half cut", "empty", "a byte added", "zeros", "a folder")
KINDS = (*FLIPS, *CUTS)
OF_EMPTY = ("a byte added", "a folder")  # what an empty file can suffer
NEAR = 64  # bytes that count as start or end


def damage(path, kind, rng):
    """Damage a file, and return where: a byte for a flip, else the new size.

    Parameters
    ----------
    path : the file
    kind : one of KINDS
    rng : random.Random
    """
    content = bytearray(path.read_bytes())
    if kind == "a folder":
        path.unlink()
        path.mkdir()
        return 0
    if kind in FLIPS:
        place = rng.randrange(len(content))
        if kind == "flip at the start":
            place = rng.randrange(min(NEAR, len(content)))
        if kind == "flip at the end":
            place = len(content) - 1 - rng.randrange(min(NEAR, len(content)))
        content[place] ^= 1 << rng.randrange(8)
        path.write_bytes(content)
        return place
    changed = {
        "last byte cut": content[:-1],
        "half cut": content[: len(content) // 2],
        "empty": b"",
        "a byte added": content + b"\0",
        "zeros": bytes(len(content)),
    }
    path.write_bytes(changed[kind])
    return len(changed[kind])


def outcome_of(answer, reference, path):
    """Ask for an answer made of a damaged file; return "held", "refused", or what is wrong.

    Parameters
    ----------
    answer : a function without parameters
    reference : the answer of the whole file
    path : the file; an error must name it, or the folder whose files belong together
    """
    try:
        found = answer()
    except (ValueError, OSError) as error:
        if path.name in str(error) or path.parent.name in str(error):
            return "refused"
        return f"an error that does not name it: {error!r:.300}"
    except Exception as error:
        return f"{error!r:.300}"
    if found == reference:
        return "held"
    return f"another answer: {found!r:.100}, not {reference!r:.100}"


def each_damage(path, kinds, times, seed):
    """Yield words for each damage, which is there while they are looked at, and mended after.

    A damage that an empty file cannot suffer, because it holds no bit to flip or cut, is left out.

    Parameters
    ----------
    path : the file
    kinds : of damage
    times : how often each flip is made; a cut is made once
    seed : of places and bits
    """
    rng = random.Random(f"{seed} {path.name}")
    content = path.read_bytes()
    if not content:
        kinds = [kind for kind in kinds if kind in OF_EMPTY]
    for kind in kinds:
        for _ in range(times if kind in FLIPS else 1):
            place = damage(path, kind, rng)
            try:
                yield f"{path.name}, {kind} ({place})"
            finally:
                if path.is_dir():
                    path.rmdir()
                path.write_bytes(content)
