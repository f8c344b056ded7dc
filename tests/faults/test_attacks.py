"""Attacks by files: pickles in place of weights run nothing, YAML gets an answer within seconds."""

import io
import os
import pickle
import resource
import shutil
import signal
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from helpers.accounts.encoder import SHIPPED, AuthorEncoder
from helpers.core import artifacts
from helpers.encoders.transformer import load_luar
from helpers.runs.stages import read_stages
from helpers.tokens.store import build_store, list_topics, open_store
from helpers.tokens.tokenizer import load_tokenizer
from helpers.training.experiment import load_trained
from tests.faults import calls
from tests.faults.test_damage import made  # noqa: F401  a fixture


class Attack:
    """What writes a file when it is unpickled."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __reduce__(self):
        return (open, (self.mark, "w"))


def plain_pickle(attack):
    return pickle.dumps({"weight": attack}, 2)


def newest_pickle(attack):
    return pickle.dumps(attack, pickle.HIGHEST_PROTOCOL)


def torch_archive(attack):
    buffer = io.BytesIO()
    torch.save({"linear.weight": attack}, buffer)
    return buffer.getvalue()


def old_torch_file(attack):
    buffer = io.BytesIO()
    torch.save({"linear.weight": attack}, buffer, _use_new_zipfile_serialization=False)
    return buffer.getvalue()


def numpy_archive(attack):
    buffer = io.BytesIO()
    np.savez(buffer, names=np.array([attack], object), tokens=np.array([attack], object))
    return buffer.getvalue()


PICKLES = [plain_pickle, newest_pickle, torch_archive, old_torch_file, numpy_archive]
each_pickle = pytest.mark.parametrize(
    "pickled", PICKLES, ids=[pickled.__name__ for pickled in PICKLES]
)


def refused(ask, path, content, mark, tries):
    """Put a pickle in a file's place, ask for what is made of the file, and put the file back."""
    whole = path.read_bytes() if path.exists() else None
    path.write_bytes(content)
    artifacts.write_checksum(path)
    try:
        ask()
    except ValueError as error:
        assert "weights_only=False" not in str(error), "advice to run what the file holds"
        tries.refused()
    else:
        tries.defect(f"{path.name} is read")
    finally:
        if whole is None:
            path.unlink()
        else:
            path.write_bytes(whole)
        Path(f"{path}.sha256").unlink()
    assert not mark.exists(), "the pickle ran"


@each_pickle
def test_a_pickle_in_place_of_an_artifact_is_refused_and_not_run(
    made,  # noqa: F811
    pickled,
    tmp_path,
    tries,
):
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
        refused(ask, path, content, mark, tries)


@each_pickle
def test_a_pickle_in_place_of_shipped_weights_is_refused_and_not_run(pickled, tmp_path, tries):
    folder = shutil.copytree(SHIPPED / "open-small", tmp_path / "mine")
    mark = tmp_path / "mark"
    content = pickled(Attack(mark))
    for name in ("weights.safetensors", "tokenizer.model", "model.json"):
        refused(partial(AuthorEncoder.load, folder), folder / name, content, mark, tries)


@pytest.mark.torture
@each_pickle
@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.safetensors"])
def test_a_pickle_in_place_of_luar_is_refused_and_not_run(pickled, name, tmp_path, tries):
    artifacts.write_json(tmp_path / "config.json", {"model_type": "LUAR", "embedding_size": 8})
    mark = tmp_path / "mark"
    content = pickled(Attack(mark))
    refused(partial(load_luar, str(tmp_path)), tmp_path / name, content, mark, tries)


def test_a_pickle_in_place_of_a_part_of_a_store_is_not_run(made, tmp_path, tries):  # noqa: F811
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
        refused(ask, part, pickled(Attack(mark)), mark, tries)


def build_again(run, folder):
    """Build a token store in a folder, with the parts that are there."""
    posts = run.posts / "train.parquet"
    words = load_tokenizer(run.tokenizer)
    encoding = (list_topics(posts), words.fingerprint, words.vocabulary)
    return build_store(posts, folder, words.encode, *encoding)


def aliases(levels, width=10):
    """Return YAML that grows by a factor with each level."""
    lines = ["options:", f"  a0: &a0 [{', '.join(['x'] * width)}]"]
    for level in range(1, levels):
        repeated = ", ".join([f"*a{level - 1}"] * width)
        lines.append(f"  a{level}: &a{level} [{repeated}]")
    return "\n".join(lines)


def merges(levels, width=10):
    """Return YAML that merges mappings of mappings."""
    lines = ["options:", "  m0: &m0 {a: 1}"]
    for level in range(1, levels):
        repeated = ", ".join([f"*m{level - 1}"] * width)
        lines.append(f"  m{level}: &m{level} {{<<: [{repeated}], b{level}: *m{level - 1}}}")
    return "\n".join(lines)


YAML = {
    "aliases": aliases(9),
    "many aliases of a long list": (
        f"options:\n  a: &a [{', '.join(['x'] * 5000)}]\n  b: [{', '.join(['*a'] * 5000)}]"
    ),
    "merged aliases": merges(9),
    "itself": "options: &a {b: *a}",
    "a list of itself": "options: {a: &a [*a]}",
    "3,000 levels of lists": f"options: {{a: {'[' * 3000}{']' * 3000}}}",
    "3,000 levels of mappings": f"options: {'{a: ' * 3000}1{'}' * 3000}",
    "100,000 open brackets": f"options: {'[' * 100_000}",
    "1,500 levels of blocks": "options:\n" + "\n".join(f"{' ' * n}a:" for n in range(1, 1500)),
    "20,000 dashes": f"options: {{a: 1}}\nb:\n  {'- ' * 20_000}x",
    "an integer of 5,000 digits": f"size: {'9' * 5000}",
    "a hexadecimal number of 10^6 digits": f"size: 0x{'f' * 10**6}",
    "a number in base 60": f"size: {'1:' * 50_000}1",
    "an underscored number": f"size: 1{'_' * 200_000}",
    "1e999": "rate: 1.0e+999",
    "NaN": "rate: .nan",
    "a command": "options: !!python/object/apply:os.system ['touch owned']",
    "a module": "options: !!python/module:os",
    "bytes": "options: {a: !!binary '////'}",
    "a set": "options: {a: !!set {x, y}}",
    "an impossible date": "options: {a: 2020-99-99}",
    "a date": "options: {a: 2020-01-01}",
    "a list as a key": "options: {[1, 2]: 3}",
    "a key that is a number": "1: 2",
    "keys twice": "size: 1\nsize: 2",
    "10 MB of text": f"options: {{a: {'x' * 10**7}}}",
    "a mark of UTF-16": "\ufeff\0size: 1",
    "NUL": "size: 1\n\0",
    "tabs": "\tsize: 1",
    "two documents": "size: 1\n---\nsize: 2",
    "an open quote": 'options: {a: "' + "x" * 100_000,
    "20,000 anchors": "options: {" + ", ".join(f"a{n}: &a{n} 1" for n in range(20_000)) + "}",
}
SLOW = ("10 MB of text", "20,000 anchors", "merged aliases", "many aliases of a long list")
SECONDS = 5  # of the processor, so that a busy machine is no failure
MEMORY = 2 << 30  # bytes beyond what this process has


def answer_in_time(ask):
    """Return what a function's process printed: within SECONDS of the processor, else "".

    Parameters
    ----------
    ask : a function that returns a text
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        used = int(time.process_time()) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (used + SECONDS, hard))
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
        try:
            words = ask()
        except BaseException as error:
            words = f"{type(error).__name__}: {error!s:.500}"
        os.write(writing, words.encode("utf-8", "replace")[:4000])
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        words = pipe.read()
    os.waitpid(child, 0)
    return words


def read_demo():
    """Read the parameters of the run demo, and return what came of it."""
    try:
        read_stages("demo")
    except ValueError as error:
        return f"refused: {error!s:.500}"
    return "read"


def attacks():
    """Return the names of the attacks, with marks."""
    parameters = []
    for name in YAML:
        marks = []
        if name in SLOW:
            marks.append(pytest.mark.torture)
        parameters.append(pytest.param(name, marks=marks))
    return parameters


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("attack", attacks())
def test_yaml_gets_an_answer_that_names_the_file(attack, toy, tries):
    (toy / "params/demo/01_a.yaml").write_bytes(YAML[attack].encode())

    words = answer_in_time(read_demo)
    assert words.startswith(("refused: ", "read")), words or f"no answer within {SECONDS} s"
    assert not words.startswith("refused") or "params/demo/01_a.yaml" in words, words
    assert len(words) < 600, "an error that repeats the attack"
    assert not Path("owned").exists()
    if words == "read":
        tries.held()
    else:
        tries.refused()
