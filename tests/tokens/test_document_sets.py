"""Documents of a run: made once, opened as they were, rows of tables and stores in one order."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from helpers.core.paths import Run
from helpers.tokens.batch import Samples, chunk_documents
from helpers.tokens.document_sets import DocumentConfig, make_documents, open_documents
from helpers.tokens.tokenizer import prepare_text


@pytest.fixture
def files(tmp_path, monkeypatch, write_posts):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path))
    run = Run("some")
    run.posts.mkdir(parents=True)
    for split, authors in (("train", "ab"), ("dev", "cd"), ("test", "ef")):
        rows = [
            (author, 10 * number, "xy"[number % 2], f"{author} says {number}")
            for author in authors
            for number in range(8)
        ]
        write_posts(rows, f"some/posts/{split}.parquet")
    prepare_text(run.tokenizer, "bytes", 0, run.posts / "train.parquet")
    return run


def test_a_row_of_a_table_is_a_post_of_its_store(files):
    documents = make_documents(files, DocumentConfig(max_chars=18, min_chars=10))
    for split, store in documents.stores.items():
        table = documents.tables[split]
        assert store.posts == len(table) == 2 * 2 * 2
        names = np.repeat(store.author_names(), store.posts_per_author())
        assert names.tolist() == table.author.tolist()
        texts = [
            documents.tokenizer.decode(part)
            for part in np.split(store.tokens, store.post_offsets[1:-1])
        ]
        assert all(
            text.count("says") == 2 and text[0] == author
            for text, author in zip(texts, table.author)
        )


def test_they_are_opened_as_they_were_made(files):
    with pytest.raises(ValueError, match="no documents of the split 'given'"):
        open_documents(files)
    made = make_documents(files, DocumentConfig(max_chars=0))
    opened = open_documents(files)
    assert all(opened.tables[split].equals(made.tables[split]) for split in made.tables)
    assert opened.stores["dev"].meta == made.stores["dev"].meta and opened.stores["dev"].posts == 16
    joined = make_documents(files, DocumentConfig(max_chars=18, min_chars=1))
    assert open_documents(files).stores["dev"].posts == joined.stores["dev"].posts == 8


def test_pieces_of_a_text_are_its_characters_in_order(files):
    """The posts of a sample, decoded, are the slices of the document's text."""
    made = make_documents(files, DocumentConfig(max_chars=18, min_chars=10))
    texts = pq.read_table(made.paths["test"])["text"].to_pylist()
    samples = made.in_pieces(7, "characters").stores["test"]
    assert samples.authors.tolist() == Samples.of_posts(made.stores["test"]).authors.tolist()
    for text, first, count in zip(texts, samples.first, samples.count, strict=True):
        ends = samples.store.post_offsets[first : first + count + 1]
        tokens = samples.store.tokens[ends[0] : ends[-1]]
        pieces = [made.tokenizer.decode(part) for part in np.split(tokens, ends[1:-1] - ends[0])]
        assert pieces == [text[begin : begin + 7] for begin in range(0, len(text), 7)]
    whole = made.in_pieces(1000, "characters").stores["test"]
    assert set(whole.count) == {1}
    of_tokens = chunk_documents(made.stores["test"], 7)
    in_tokens = made.in_pieces(7).stores
    assert in_tokens["test"].count.tolist() == of_tokens.count.tolist() and "train" not in in_tokens
    assert np.array_equal(whole.store.tokens, made.stores["test"].tokens)


def test_raw_texts_are_kept_beside_the_tokens_to_the_last_byte(files, write_posts):
    assert make_documents(files, DocumentConfig(max_chars=0)).raw is None
    texts = ["É  LA\u00a0Mode,\n\tdon't!", "\U0001f642 e\u0301 İ", "plain text"]
    for author, split in zip("ace", ("train", "dev", "test")):
        rows = [(author, number, "x", text) for number, text in enumerate(texts)]
        write_posts(rows, f"some/posts/{split}.parquet")
    make_documents(files, DocumentConfig(max_chars=0, raw_texts=True))
    raw = open_documents(files).raw
    assert list(raw.stores) == ["train", "dev", "test"] and raw.tables["dev"].author[0] == "c"
    store = raw.stores["test"]
    parts = np.split(store.tokens, store.post_offsets[1:-1])
    assert [bytes(part.astype("u1")).decode() for part in parts] == texts
    assert [raw.tokenizer.decode(part) for part in parts] == texts
    assert raw.longest == max(len(text.encode()) for text in texts)
