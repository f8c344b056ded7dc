"""A bit flipped, a part cut, a pickle instead: found by name, not run, never a wrong answer."""

import hashlib
import io
import pickle
import random
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertModel

from helpers.accounts import reading
from helpers.accounts.encoder import SHIPPED, AuthorEncoder
from helpers.core import artifacts, results
from helpers.core.paths import Run
from helpers.encoders.transformer import model_parts
from helpers.tokens.store import FILES, build_store, list_topics, open_store
from helpers.tokens.tokenizer import load_tokenizer
from helpers.training.experiment import load_trained
from tests.faults import calls
from tests.faults.test_kills import SEED

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


TEXTS = [["I like tea, a lot.", "Tea again!"], ["no semicolons; ever", "well; maybe"]]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The runs of both calls, whole."""
    patch = pytest.MonkeyPatch()
    patch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path_factory.mktemp("damage") / "outputs"))
    patch.setenv("AUTHORBOOK_PSEUDONYM_KEY", "00" * 32)
    runs = {name: Run(name) for name in calls.CALLS}
    for name, run in runs.items():
        calls.CALLS[name](run)
    yield runs
    patch.undo()


def hash_of(*arrays):
    """Return a hash of arrays."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


# what is read of a description; a flip in the word "checksum" itself adds a key that nobody reads
KEYS_READ = (
    "fingerprint encoding vocabulary topics sha256 posts authors tokens seed best_step "
    "best_dev_MRR steps lr rows_read location pseudonymise first last"
).split()


def read_of(description):
    return {key: description[key] for key in KEYS_READ if key in description}


def of_store(runs):
    store = open_store(runs["training"].tokens / "train")
    arrays = [getattr(store, name) for name in FILES]
    return hash_of(*arrays), read_of(store.meta), store.author_names()


def of_tokenizer(runs):
    words = load_tokenizer(runs["training"].tokenizer)
    return words.fingerprint, [ids.tolist() for ids in words.encode(TEXTS[0])]


def of_model(runs):
    run = runs["training"]
    trained = load_trained(run.models / calls.NAME, open_store(run.tokens / "dev"))
    weights = trained.encoder.state_dict().values()
    return hash_of(*weights), trained.history.to_dict(), read_of(trained.summary)


def of_results(runs):
    return results.read_results(runs["training"]).to_csv()


def of_card(runs):
    return read_of(artifacts.read_json(runs["training"].data_card))


def of_posts(runs):
    card = calls.posts(runs["training"])
    return read_of(card), hash_file(runs["training"].folder / "posts.parquet")


def of_parts(runs):
    (runs["training"].folder / "posts.parquet").unlink(missing_ok=True)
    return of_posts(runs)


def of_splits(runs):
    calls.splits(runs["training"])
    return [hash_file(path) for path in sorted(runs["training"].posts.glob("*.parquet"))]


def of_own_posts(runs):
    own = reading.read_posts(runs["accounts"], str(own_file(runs)), calls.shipped())
    return hash_of(own.store.tokens)


def hash_file(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def own_file(runs):
    return runs["accounts"].folder.parent.parent / "own.csv"


# run, files: who reads them and what the answer is
READERS = {
    ("training", "tokens/train/*"): of_store,
    ("training", "tokenizer/*"): of_tokenizer,
    ("training", f"models/{calls.NAME}/best.safetensors"): of_model,
    ("training", f"models/{calls.NAME}/*.json"): of_model,
    ("training", "results/*"): of_results,
    ("training", "data_card.json"): of_card,
    ("training", "posts.parquet*"): of_posts,
    ("training", "collect/*.parquet*"): of_parts,
    ("training", "collect/*.json"): of_parts,
    ("training", "posts/*.parquet*"): of_splits,
    ("accounts", "tokens/own/*"): of_own_posts,
}
SLOW = (of_posts, of_parts, of_splits, of_own_posts)  # they make something again
MOST_FILES = 6  # of a pattern, drawn at random
each_reader = pytest.mark.parametrize("files", READERS, ids=" ".join)


def damage_all(runs, files, kinds, times, most_files=MOST_FILES):
    """Damage the files of a pattern in every way, and ask for what is made of them."""
    run, pattern = files
    ask = READERS[files]
    paths = sorted(path for path in runs[run].folder.glob(pattern) if path.is_file())
    paths = [path for path in paths if not path.name.startswith(".")]
    paths = random.Random(f"{SEED} {pattern}").sample(paths, min(most_files, len(paths)))
    reference = ask(runs)
    for path in paths:
        for words in each_damage(path, kinds, times, SEED):
            outcome = outcome_of(partial(ask, runs), reference, path)
            assert outcome in ("held", "refused"), words
        # what was refused may have left a set of files incomplete: it is made again
        assert outcome_of(partial(ask, runs), reference, path) in ("held", "refused"), path


@each_reader
def test_a_flipped_bit_is_found(made, files):
    damage_all(made, files, ["flip anywhere"], 1, most_files=2)


@pytest.mark.torture
@each_reader
def test_every_damage_is_found(made, files):
    times = 1 if READERS[files] in SLOW else 10
    damage_all(made, files, KINDS, times)


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """The encoder that ships, copied elsewhere."""
    return shutil.copytree(SHIPPED / "open-small", tmp_path_factory.mktemp("copied") / "mine")


def of_encoder(folder):
    return hash_of(AuthorEncoder.load(folder).encode(TEXTS))


def damage_encoder(folder, kinds, times):
    """Damage the files of an encoder, and ask it for vectors."""
    reference = of_encoder(folder)
    for path in sorted(folder.iterdir()):
        if path.suffix == ".md":
            continue
        for words in each_damage(path, kinds, times, SEED):
            outcome = outcome_of(partial(of_encoder, folder), reference, path)
            assert outcome in ("held", "refused"), words


def test_a_flipped_bit_in_shipped_weights_is_found(copied):
    damage_encoder(copied, ["flip anywhere", "half cut"], 1)


@pytest.mark.torture
def test_every_damage_to_shipped_weights_is_found(copied):
    damage_encoder(copied, KINDS, 4)


# ---- pickles in the place of artifacts


class Attack:
    """What writes a file when it is unpickled."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __reduce__(self):
        return (open, (self.mark, "w"))


def plain_pickle(attack):
    return pickle.dumps({"weight": attack}, 2)


def torch_archive(attack):
    buffer = io.BytesIO()
    torch.save({"linear.weight": attack}, buffer)
    return buffer.getvalue()


def numpy_archive(attack):
    buffer = io.BytesIO()
    np.savez(buffer, names=np.array([attack], object), tokens=np.array([attack], object))
    return buffer.getvalue()


PICKLES = [plain_pickle, torch_archive, numpy_archive]
each_pickle = pytest.mark.parametrize(
    "pickled", PICKLES, ids=[pickled.__name__ for pickled in PICKLES]
)


def refused(ask, path, content, mark):
    """Put a pickle in a file's place, ask for what is made of the file, and put the file back."""
    whole = path.read_bytes() if path.exists() else None
    path.write_bytes(content)
    artifacts.write_checksum(path)
    try:
        with pytest.raises(ValueError) as caught:
            ask()
        assert "weights_only=False" not in str(caught.value), "advice to run what the file holds"
    finally:
        if whole is None:
            path.unlink()
        else:
            path.write_bytes(whole)
        Path(f"{path}.sha256").unlink()
    assert not mark.exists(), "the pickle ran"


@each_pickle
def test_a_pickle_in_place_of_an_artifact_is_refused(made, pickled, tmp_path):
    run = made["training"]
    model = run.models / calls.NAME
    dev = open_store(run.tokens / "dev")
    mark = tmp_path / "mark"
    content = pickled(Attack(mark))
    places = {
        model / "best.safetensors": partial(load_trained, model, dev),
        run.tokenizer / "tokenizer.model": partial(load_tokenizer, run.tokenizer),
        run.tokens / "train/tokens.u16": partial(open_store, run.tokens / "train"),
        run.tokens / "train/authors.parquet": partial(open_store, run.tokens / "train"),
    }
    for path, ask in places.items():
        refused(ask, path, content, mark)


@each_pickle
def test_a_pickle_in_place_of_shipped_weights_is_refused_and_not_run(pickled, tmp_path):
    folder = shutil.copytree(SHIPPED / "open-small", tmp_path / "mine")
    mark = tmp_path / "mark"
    content = pickled(Attack(mark))
    for name in ("weights.safetensors", "tokenizer.model", "model.json"):
        refused(partial(AuthorEncoder.load, folder), folder / name, content, mark)


def test_a_pickle_in_place_of_a_part_of_a_store_is_not_run(made, tmp_path):
    """A build that was interrupted left parts, whose checksums anybody can compute."""
    run = made["training"]
    fingerprint = artifacts.read_json(run.tokens / "train/store.json")["fingerprint"]
    mark = tmp_path / "mark"
    for pickled in PICKLES:
        folder = shutil.copytree(run.folder, tmp_path / pickled.__name__) / "tokens/train"
        (folder / "store.json").unlink()
        part = folder / "parts" / fingerprint / "000000.npz"
        part.parent.mkdir(parents=True)
        ask = partial(build_again, run, folder)
        refused(ask, part, pickled(Attack(mark)), mark)


def build_again(run, folder):
    """Build a token store in a folder, with the parts that are there."""
    posts = run.posts / "train.parquet"
    words = load_tokenizer(run.tokenizer)
    encoding = (list_topics(posts), words.fingerprint, words.vocabulary)
    return build_store(posts, folder, words.encode, *encoding)


def test_a_released_transformer_with_a_pickle_or_without_weights_is_refused(tmp_path):
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    BertModel(BertConfig(intermediate_size=48, vocab_size=50, **sizes)).save_pretrained(tmp_path)
    assert model_parts(str(tmp_path))
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    without = {name: tensors[name] for name in tensors if not name.startswith("encoder")}
    save_file(without, path, {"format": "pt"})
    with pytest.raises(ValueError, match=f"{tmp_path.name} lacks the weights 'encoder.layer.0"):
        model_parts(str(tmp_path))
    path.unlink()
    mark = tmp_path / "mark"
    (tmp_path / "pytorch_model.bin").write_bytes(plain_pickle(Attack(mark)))
    with pytest.raises(ValueError, match=tmp_path.name):
        model_parts(str(tmp_path))
    assert not mark.exists(), "the pickle ran"
