"""LUAR from a folder as it is released, against transformers on one post at a time, and loops."""

import json
import pickle
import shutil

import numpy as np
import pytest
import torch

from helpers.core import paths
from helpers.encoders import transformer
from helpers.encoders.base import embed
from helpers.encoders.baselines import BASELINES, check_installed, fit_baseline
from helpers.encoders.stream import build_stream_encoder, stream_config
from helpers.tokens import tokenizer as tokenizers
from helpers.tokens.batch import Samples
from helpers.tokens.tokenizer import Bytes, HuggingFace
from tests.factories import store_in_memory

POSTS = [
    "a cat sat on the mat",
    "no!",
    "the cat and the mat and the cat and the mat sat " * 5,
    "",
    "w07 w31  w07...",
    "Unknown letters: żółw 漢字",
    "the rat",
    "A cat? THE cat.",
]
EPISODES = [(0, 1), (0, 4), (3, 1), (4, 3), (1, 7), (7, 1)]  # first post and number of posts
SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "vocab_size": 400,
}
# what config.json of rrivera1849/LUAR-MUD says
PUBLISHED = {
    "architectures": ["LUAR"],
    "auto_map": {"AutoConfig": "config.LUARConfig", "AutoModel": "model.LUAR"},
    "embedding_size": 512,
    "k_bucket_size": 1024,
    "model_type": "LUAR",
    "q_bucket_size": 512,
    "torch_dtype": "float32",
    "transformers_version": "4.33.2",
    "use_memory_efficient_attention": False,
}
STREAM = {"preset": "luar", "features": "T", "post": "transformer", "max_tokens": 40}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(transformer, "LUAR_BODY", transformer.LUAR_BODY | SMALL)


@pytest.fixture(scope="module")
def made():
    """A tiny RoBERTa of transformers' own, with a pooler, and a linear layer.

    Weights are so large that posts differ.
    """
    from transformers import RobertaConfig, RobertaModel

    torch.manual_seed(0)
    shape = SMALL | {"max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5}
    body = RobertaModel(RobertaConfig(initializer_range=0.3, **shape)).eval()
    for module in body.modules():
        if isinstance(module, torch.nn.LayerNorm | torch.nn.Linear):
            torch.nn.init.normal_(module.bias, std=0.3)
    return body, torch.nn.Linear(32, 512)


def tensors_of(made):
    body, linear = (
        {key: value.clone() for key, value in part.state_dict().items()} for part in made
    )
    released = {f"transformer.{key}": value for key, value in body.items()}
    # as older releases of transformers kept
    released["transformer.embeddings.position_ids"] = torch.arange(514)[None]
    return released | {f"linear.{key}": value for key, value in linear.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, made):
    """The files of the release: configuration, tokenizer of RoBERTa's kind, weights."""
    from safetensors.torch import save_file
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaTokenizerFast

    folder = tmp_path_factory.mktemp("LUAR")
    bpe = ByteLevelBPETokenizer()
    words = [" ".join(f"w{number:02d}" for number in range(60)), *POSTS]
    bpe.train_from_iterator(
        words, SMALL["vocab_size"], 1, False, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    )
    bpe.save_model(str(folder))
    merges = [tuple(line.split()) for line in (folder / "merges.txt").read_text().splitlines()[1:]]
    vocabulary = json.loads((folder / "vocab.json").read_text())
    RobertaTokenizerFast(vocab=vocabulary, merges=merges).save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(PUBLISHED))
    save_file(tensors_of(made), folder / "model.safetensors", {"format": "pt"})
    return folder


def own_tokens(folder):
    return HuggingFace(tokenizers.tokenizer_file(str(folder)))


def samples_of(tokenizer, posts=POSTS, episodes=EPISODES):
    ids = tokenizer.encode(posts)
    store = store_in_memory([len(posts)], lengths=[len(post) for post in ids])
    store.tokens[:] = np.concatenate(ids)
    store.meta["vocabulary"] = tokenizer.vocabulary
    first, count = np.array(episodes).T
    return Samples(store, first, count, np.arange(len(first)))


@torch.no_grad()
def by_hand(folder, made, pool=max, root=32**0.5, special=True, max_tokens=40):
    """(episodes, 512): each post alone, then loops over the posts of an episode."""
    from transformers import AutoTokenizer

    tokenizer, (body, linear) = AutoTokenizer.from_pretrained(folder), made
    posts = []
    for text in POSTS:
        given = {"truncation": True, "max_length": max_tokens, "add_special_tokens": special}
        ids = tokenizer(text, **given)["input_ids"]
        states = body(torch.tensor([ids or [1]])).last_hidden_state[0].double().numpy()
        posts.append(sum(states) / len(states))
    rows = []
    for first, count in EPISODES:
        episode, attended = posts[first : first + count], []
        for query in episode:
            weights = np.exp([query @ key / root for key in episode])
            attended.append(weights / weights.sum() @ np.stack(episode))
        pooled = np.array([pool([row[entry] for row in attended]) for entry in range(32)])
        row = linear.weight.double().numpy() @ pooled + linear.bias.double().numpy()
        rows.append(row / sum(row**2) ** 0.5)
    return np.array(rows)


@pytest.mark.parametrize(
    "tokens", [own_tokens, lambda _: Bytes()], ids=["own tokens", "other tokens"]
)
def test_it_is_the_released_computation(folder, made, tokens):
    tokenizer = tokens(folder)
    encoder = build_stream_encoder(
        stream_config(**STREAM, model=str(folder)), tokenizer.vocabulary, 1, tokenizer=tokenizer
    )
    vectors, expected = embed(encoder, samples_of(tokenizer), 300), by_hand(folder, made)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    # the comparison can tell these apart
    for wrong in ({"pool": np.mean}, {"root": 1}, {"special": False}, {"max_tokens": 512}):
        assert np.abs(by_hand(folder, made, **wrong) - expected).max() > 1e-2, wrong


class Code:
    """What runs when it is unpickled without care."""

    def __reduce__(self):
        return print, ("run",)


DEEP = "transformer.encoder.layer.1.output.dense.weight"


def test_other_weights_are_refused(folder, made, tmp_path, capsys):
    from safetensors.torch import save_file

    (tmp_path / "config.json").write_text(json.dumps(PUBLISHED))
    with pytest.raises(ValueError, match="pytorch_model.bin is missing"):
        transformer.load_luar(str(tmp_path))
    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps({"linear.weight": Code()}, 2))
    with pytest.raises(ValueError, match="pytorch_model.bin is damaged"):
        transformer.load_luar(str(tmp_path))
    assert "run" not in capsys.readouterr().out
    tensors = tensors_of(made)
    for wrong, message in (
        ({"linear.weight": torch.ones(512, 31)}, "does not hold the weights of this network"),
        ({"linear.bias": torch.full((512,), torch.nan)}, "'linear.bias' that are not finite"),
    ):
        save_file(tensors | wrong, tmp_path / "model.safetensors")
        with pytest.raises(ValueError, match=f"model.safetensors .*{message}: look at it"):
            transformer.load_luar(str(tmp_path))
    del tensors[DEEP]
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="does not hold the weights"):
        transformer.load_luar(str(tmp_path))
    # a clone without LFS
    (tmp_path / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(ValueError, match="model.safetensors is damaged"):
        transformer.load_luar(str(tmp_path))


def test_by_name_it_is_a_baseline_like_any_other(folder, made, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    with pytest.raises(
        ValueError, match="hf download rrivera1849/LUAR-CRUD --local-dir data/LUAR-CRUD"
    ):
        check_installed(["tfidf_word", "luar_crud"])
    shutil.copytree(folder, tmp_path / "data" / "LUAR-CRUD")
    check_installed(["luar_crud"])
    samples = samples_of(Bytes())
    assert {"luar_mud", "luar_crud"} <= set(BASELINES)
    expected = by_hand(folder, made, max_tokens=512)
    encoder = fit_baseline("luar_crud", samples.store, Bytes(), 32)
    np.testing.assert_allclose(embed(encoder, samples, 300), expected, atol=1e-5)


def test_the_last_layer_is_that_of_the_release_where_one_is_asked_for(folder, made):
    given = STREAM | {"model": str(folder)}
    _, linear = made
    encoder = build_stream_encoder(stream_config(**given), 400, 1)
    assert torch.equal(encoder.projection[0].weight, linear.weight)
    with pytest.raises(ValueError, match=r"ends in \(512, 32\) weights, not \(.*: features, dim"):
        build_stream_encoder(stream_config(**given | {"dim": 16}), 400, 1)
