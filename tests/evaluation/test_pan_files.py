"""PAN's files: written and read with all digits, matched by id, and what is no answer."""

import json

import numpy as np
import pandas as pd
import pytest

from helpers.evaluation.pan_files import (
    evaluate_answers,
    read_answers,
    read_truth,
    truth_of,
    write_answers,
    write_truth,
)
from helpers.evaluation.verification import pan_metrics


def lines(path, *records):
    path.write_text(
        "".join(
            (record if isinstance(record, str) else json.dumps(record)) + "\n" for record in records
        )
    )
    return path


class TestFiles:
    def test_there_and_back_with_all_digits(self, tmp_path):
        scores = [0.1, np.nextafter(0.5, 1), 1, np.float32(0.3)]
        write_answers(tmp_path / "answers.jsonl", "abcd", scores)
        answers = read_answers(tmp_path / "answers.jsonl")
        assert answers.index.tolist() == list("abcd") and answers.tolist() == scores
        pairs = pd.DataFrame(
            {
                "id": ["p", "q"],
                "same": [True, False],
                "author_a": ["1", "1"],
                "author_b": ["1", "2"],
            }
        )
        write_truth(tmp_path / "truth.jsonl", pairs)
        assert read_truth(tmp_path / "truth.jsonl").to_dict() == {"p": True, "q": False}
        assert json.loads((tmp_path / "truth.jsonl").read_text().splitlines()[1])["authors"] == [
            "1",
            "2",
        ]

    def test_answers_are_matched_by_id_and_missing_ones_counted(self, tmp_path):
        rows = [
            {"id": str(number), "same": number % 2 == 0, "authors": ["a", "b"]}
            for number in range(6)
        ]
        truth = lines(tmp_path / "truth.jsonl", *rows)
        given = {"4": 0.9, "3": 0.2, "1": 0.6, "0": 0.7}
        answers = lines(
            tmp_path / "answers.jsonl",
            *({"id": key, "value": value} for key, value in given.items()),
        )
        wanted = pan_metrics([0.7, 0.6, 0.5, 0.2, 0.9, 0.5], [1, 0, 1, 0, 1, 0])
        assert evaluate_answers(truth, answers).value.to_dict() == wanted | {
            "n_pairs": 6,
            "n_missing": 2,
        }
        assert wanted["n_unanswered"] == 2

    @pytest.mark.parametrize(
        "line",
        ['{"id": "a"', '{"id": "a"}', '{"id": 1, "value": 0.2}', "[]", '{"value": 0.2}']
        + [
            f'{{"id": "a", "value": {value}}}'
            for value in ("1.1", "-0.1", "NaN", "Infinity", "true", '"0.2"', "null")
        ],
    )
    def test_what_is_no_answer_is_named(self, tmp_path, line):
        with pytest.raises(ValueError, match="answers.jsonl, line 2: need an id and a number"):
            read_answers(lines(tmp_path / "answers.jsonl", {"id": "b", "value": 1}, line))

    def test_other_errors(self, tmp_path):
        with pytest.raises(ValueError, match="line 2: 'a' is there twice"):
            read_answers(lines(tmp_path / "a", {"id": "a", "value": 1}, {"id": "a", "value": 1}))
        with pytest.raises(ValueError, match="true or false as same"):
            read_truth(lines(tmp_path / "a", {"id": "a", "same": 1}))
        with pytest.raises(ValueError, match="holds no pair"):
            read_truth(lines(tmp_path / "a", ""))
        truth = lines(tmp_path / "a", {"id": "a", "same": True})
        answers = lines(tmp_path / "b", {"id": "a", "value": 0.2}, {"id": "c", "value": 0.3})
        with pytest.raises(ValueError, match="1 answers are for unknown pairs, the first is 'c'"):
            evaluate_answers(truth, answers)
        answers.unlink()
        wrong = (
            ("ab", [1], "for 1 scores"),
            ("aa", [1, 0], "1 differ"),
            ("a", [2], "the first is 2"),
        )
        for ids, scores, message in wrong:
            with pytest.raises(ValueError, match=message):
                write_answers(tmp_path / "b", ids, scores)
        with pytest.raises(ValueError, match="1 ids are there twice"):
            write_truth(tmp_path / "b", pd.DataFrame({"id": ["p", "p"]}))
        assert not (tmp_path / "b").exists()

    def test_the_truth_of_pairs_of_documents(self, tmp_path):
        documents = pd.DataFrame({"author": ["x", "y", "y"], "topic": "t"})
        pairs = pd.DataFrame({"first": [2, 0], "second": [1, 2], "same": [True, False]})
        truth = truth_of(pairs, documents)
        write_truth(tmp_path / "truth", truth)
        assert read_truth(tmp_path / "truth").to_dict() == {"2-1": True, "0-2": False}
        assert truth[["author_a", "author_b"]].to_numpy().tolist() == [["y", "y"], ["x", "y"]]
