"""A bit flipped, a part cut, a pickle instead: found by name, not run, never a wrong answer."""

import hashlib
import io
import pickle
import random
import shutil
from functools import partial
from pathlib import Path
from typing import NamedTuple

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

KINDS = ("a flipped bit", "half cut", "a byte added", "zeros", "a folder")
OF_EMPTY = ("a byte added", "a folder")  # what an empty file can suffer


def damage(path, kind, rng):
    """Damage a file in a way of KINDS, and return where a bit was flipped, 0 for other kinds."""
    content = bytearray(path.read_bytes())
    place = 0
    if kind == "a folder":
        path.unlink()
        path.mkdir()
        return place
    if kind == "a flipped bit":
        place = rng.randrange(len(content))
        content[place] ^= 1 << rng.randrange(8)
    changed = {
        "a flipped bit": content,
        "half cut": content[: len(content) // 2],
        "a byte added": content + b"\0",
        "zeros": bytes(len(content)),
    }
    path.write_bytes(changed[kind])
    return place


def outcome_of(answer, reference, path):
    """Ask for an answer made of a damaged file; return "held", "refused", or what is wrong.

    An error must name the file, or the folder whose files belong together.
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
    A flip is made so many times, a cut once.
    """
    rng = random.Random(f"{seed} {path.name}")
    content = path.read_bytes()
    if not content:
        kinds = [kind for kind in kinds if kind in OF_EMPTY]
    for kind in kinds:
        for _ in range(times if kind == "a flipped bit" else 1):
            place = damage(path, kind, rng)
            try:
                yield f"{path.name}, {kind} ({place})"
            finally:
                if path.is_dir():
                    path.rmdir()
                path.write_bytes(content)


TEXTS = [["I like tea, a lot.", "Tea again!"], ["no semicolons; ever", "well; maybe"]]


class Shipped(NamedTuple):
    """A copy of the encoder that ships, beside the runs."""

    folder: Path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    folder = tmp_path_factory.mktemp("damage") / "outputs"
    patch.setenv("AUTHORBOOK_OUTPUTS", str(folder))
    patch.setenv("AUTHORBOOK_PSEUDONYM_KEY", "00" * 32)
    runs = {name: Run(name) for name in calls.CALLS}
    for name, run in runs.items():
        calls.CALLS[name](run)
    shutil.copytree(SHIPPED / "open-small", folder.parent / "mine")
    yield runs | {"shipped": Shipped(folder.parent / "mine")}
    patch.undo()


def hash_of(*arrays):
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


def of_encoder(runs):
    return hash_of(AuthorEncoder.load(runs["shipped"].folder).encode(TEXTS))


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
    ("shipped", "*[!d]"): of_encoder,  # all but its page in Markdown
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
    damage_all(made, files, ["a flipped bit"], 1, most_files=2)


@pytest.mark.torture
@each_reader
def test_every_damage_is_found(made, files):
    times = 1 if READERS[files] in SLOW else 10
    damage_all(made, files, KINDS, times)


# ---- pickles in the place of artifacts


class Attack:
    """What writes a file when it is unpickled."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __reduce__(self):
        return (open, (self.mark, "w"))


def pickles(mark):
    """Return pickles as each library writes them, by the name of its file."""
    attack = Attack(mark)
    archive = io.BytesIO()
    torch.save({"linear.weight": attack}, archive)
    arrays = io.BytesIO()
    np.savez(arrays, names=np.array([attack], object), tokens=np.array([attack], object))
    plain = pickle.dumps({"weight": attack}, 2)
    return [plain, archive.getvalue(), arrays.getvalue()]


def check_refused(ask, path, mark):
    """Put pickles in a file's place, and ask for what is made of the file: none is run."""
    whole = path.read_bytes() if path.exists() else None
    for content in pickles(mark):
        path.write_bytes(content)
        artifacts.write_checksum(path)
        with pytest.raises(ValueError) as caught:
            ask()
        assert "weights_only=False" not in str(caught.value), "advice to run what the file holds"
        assert not mark.exists(), "the pickle ran"
        Path(f"{path}.sha256").unlink()
    path.unlink()
    if whole is not None:
        path.write_bytes(whole)


def test_a_pickle_in_place_of_an_artifact_is_refused(made, tmp_path):
    run = made["training"]
    copied = made["shipped"].folder
    model = run.models / calls.NAME
    places = {
        model / "best.safetensors": partial(load_trained, model, open_store(run.tokens / "dev")),
        run.tokenizer / "tokenizer.model": partial(load_tokenizer, run.tokenizer),
        run.tokens / "train/tokens.u16": partial(open_store, run.tokens / "train"),
        run.tokens / "train/authors.parquet": partial(open_store, run.tokens / "train"),
    }
    for name in ("weights.safetensors", "tokenizer.model", "model.json"):
        places[copied / name] = partial(AuthorEncoder.load, copied)
    # a build that was interrupted left parts, whose checksums anybody can compute
    fingerprint = artifacts.read_json(run.tokens / "train/store.json")["fingerprint"]
    folder = shutil.copytree(run.folder, tmp_path / "run") / "tokens/train"
    (folder / "store.json").unlink()
    part = folder / "parts" / fingerprint / "000000.npz"
    part.parent.mkdir(parents=True)
    places[part] = partial(build_again, run, folder)
    for path, ask in places.items():
        check_refused(ask, path, tmp_path / "mark")


def build_again(run, folder):
    """Build a token store in a folder, with the parts that are there."""
    posts = run.posts / "train.parquet"
    words = load_tokenizer(run.tokenizer)
    encoding = (list_topics(posts), words.fingerprint, words.vocabulary)
    return build_store(posts, folder, words.encode, *encoding)


def test_a_released_transformer_without_weights_is_refused(tmp_path):
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
    (tmp_path / "pytorch_model.bin").write_bytes(pickles(tmp_path / "mark")[0])
    with pytest.raises(ValueError, match=tmp_path.name):
        model_parts(str(tmp_path))
    assert not (tmp_path / "mark").exists(), "the pickle ran"
