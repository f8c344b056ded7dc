"""Planted bugs: each is put into a copy of what is staged, where a test of its room must catch it.

    python tests/planted_bugs.py [WORD ...]     those whose file holds one of the words

Prints a line for each bug: the first test that failed, or MISSED. The exit code is 1 if one was
missed. A bug is code that still runs and gives wrong results; its right code stands in its file
once.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

ROOT = Path(__file__).resolve().parents[1]
TIME_LIMIT = 600  # seconds
FIRST_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.M)


class Bug(NamedTuple):
    """Wrong code in place of right code.

    Attributes
    ----------
    file : below ``helpers/``
    tests : file or folder below ``tests/``
    right, wrong : the code before and after
    """

    file: str
    tests: str
    right: str
    wrong: str


BUGS = [
    Bug(
        "core/parameters.py", "core/test_parameters.py", "low <= element <= high", "low <= element"
    ),
    Bug("core/parameters.py", "faults/test_parameters.py", "< len(elements):", "< 0:"),
    Bug("core/messages.py", "core/test_messages.py", "if character.isprintable()", "if character"),
    Bug(
        "core/messages.py", "core/test_messages.py", "len(folders) > 1 and", "len(folders) > 9 and"
    ),
    Bug(
        "core/files.py", "core/test_files.py", '["truncated_file"] += 1', '["truncated_file"] += 0'
    ),
    Bug(
        "core/artifacts.py", "core/test_artifacts.py", "_checksum_path(path))  # it", "path)  # it"
    ),
    Bug("core/artifacts.py", "core", "not in (None, fingerprint_of(value))", "is None"),
    Bug(
        "core/results.py",
        "core/test_results.py",
        "frame[is_current]",
        "frame[is_current == is_current]",
    ),
    Bug("core/results.py", "core/test_results.py", 'name != "split" for', 'name == "split" for'),
    Bug("runs/stages.py", "runs", "path.is_file() and (", "not path.is_file() or ("),
    Bug("runs/stages.py", "runs", "isdisjoint(stage.needs)", "issuperset(())"),
    Bug("runs/stages.py", "runs", "stage.record.unlink(missing_ok=True)", "stage.record.exists()"),
    Bug("runs/stages.py", "runs", "waiting.clear()", "waiting.copy()"),
    Bug("cleaning/text.py", "cleaning/test_text.py", "not in EVERYDAY:", "not in ():"),
    Bug("cleaning/email.py", "cleaning/test_text.py", "(?![:=.(<_]).*$", ".*$"),
    Bug("cleaning/text.py", "cleaning/test_text.py", "is_named or LIST_ADDRESS", "LIST_ADDRESS"),
    Bug("cleaning/text.py", "cleaning/test_text.py", ' and "(" in address', ""),
    Bug("cleaning/salutations.py", "cleaning/test_salutations.py", "ends[-2:]", "ends[-1:]"),
    Bug(
        "cleaning/email.py",
        "cleaning/test_email.py",
        "len(block) > MAX_SIGNATURE_LINES",
        "len(block) > 1",
    ),
    Bug("sources/pipermail.py", "sources", 'value.replace(match[0], " ")', "value"),
    Bug(
        "cleaning/authors.py", "cleaning/test_authors.py", "if ID_WITH_CASE", "if not ID_WITH_CASE"
    ),
    Bug("sources/table_columns.py", "sources/test_table_columns.py", "range(2)", "range(1)"),
    Bug("sources/pan.py", "sources/test_pan.py", "digests.clear()", "digests.copy()"),
    Bug(
        "sources/table_columns.py",
        "sources/test_table.py",
        "EXACT_FLOATS = 2**53",
        "EXACT_FLOATS = 2**63",
    ),
    Bug("sources/table_columns.py", "sources/test_table.py", "FULL_SHARE = 0.2", "FULL_SHARE = 1"),
    Bug("sources/pushshift.py", "sources/test_pushshift.py", ', "[removed]")', ",)"),
    Bug("corpus/steps.sql", "corpus", "ORDER BY time, post) > 1", "ORDER BY time DESC, post) > 1"),
    Bug("corpus/steps.sql", "corpus", "e.shingles) >= getv", "e.shingles) > 1 + getv"),
    Bug("corpus/steps.sql", "corpus", "priors >= getvariable('min_posts')", "priors >= 1"),
    Bug("corpus/personal_names.py", "corpus", "count >= MIN_SALUTATIONS)", "count)"),
    Bug(
        "corpus/loss_lines.py",
        "corpus/test_loss_lines.py",
        "MAX_SILENT_SHARE = 0.05",
        "MAX_SILENT_SHARE = 0.5",
    ),
    Bug(
        "sources/table_columns.py",
        "sources/test_table_columns.py",
        "if isinstance(value, str) and SHORTENED",
        "if value is None and SHORTENED",
    ),
    Bug(
        "accounts/reading.py",
        "accounts/test_reading.py",
        "np.gcd.reduce(store.time) > HOUR_SECONDS",
        "np.gcd.reduce(store.time) > 10**9",
    ),
    Bug("accounts/reading.py", "accounts/test_reading.py", "len(names) > 1:", "len(names) > 9:"),
    Bug("tokens/tokenizer.py", "tokens/test_tokenizer.py", "character not in known and sp", "sp"),
    Bug(
        "evaluation/document_pairs.py",
        "evaluation/test_document_pairs.py",
        "weights / np.maximum(pairs_of_author, 1), 0)",
        "1.0, 0)",
    ),
    Bug(
        "tokens/samplers.py",
        "tokens/test_samplers.py",
        "np.minimum(sizes, available // samples)",
        "np.minimum(sizes, available)",
    ),
    Bug(
        "evaluation/matching.py",
        "evaluation/test_matching.py",
        "if expected_slope is not None:  # far",
        "if expected_slope is Ellipsis:  # far",
    ),
    Bug(
        "accounts/gallery.py",
        "accounts/test_unjudged.py",
        'of_judged[np.ix_(problems == "", self.problems != "")] = NOT_COMPARED',
        "of_judged[:, []] = NOT_COMPARED",
    ),
    Bug(
        "accounts/answers.py",
        "accounts/test_answers.py",
        "if question.accounts and len(posts.names)",
        "if question.k == 0 and len(posts.names)",
    ),
    Bug(
        "corpus/personal_names.py",
        "corpus/test_personal_names.py",
        ">= MIN_MENTIONED_SHARE * (low + high)",
        ">= 2 * (low + high)",
    ),
    Bug(
        "evaluation/scores.py",
        "evaluation/test_ranking.py",
        "return 1 + ((scores >= best) & ~is_own).sum(1)",
        "return 1 + ((scores > best) & ~is_own).sum(1)",
    ),
    Bug(
        "evaluation/scores.py",
        "evaluation/test_score_norm.py",
        "compared[row] = max(scores.shape[1] - 1, 1)",
        "compared[row] = max(scores.shape[1], 1)",
    ),
    Bug(
        "evaluation/scores.py",
        "evaluation/test_score_norm.py",
        "np.minimum(scale, largest_scale)",
        "np.maximum(scale, largest_scale)",
    ),
    Bug(
        "evaluation/detection.py",
        "evaluation/test_verification.py",
        "below = np.cumsum(negatives, -1) - negatives / 2",
        "below = np.cumsum(negatives, -1)",
    ),
    Bug(
        "evaluation/detection.py",
        "evaluation/test_detection.py",
        "right >= precision * accepted",
        "right > precision * accepted",
    ),
    Bug(
        "evaluation/detection.py",
        "evaluation/test_detection.py",
        "return np.interp(0, p_fa - p_miss, p_fa)",
        "return p_fa[(p_fa >= p_miss).argmax()]",
    ),
    Bug(
        "evaluation/calibration.py",
        "evaluation/test_calibration.py",
        "- slope @ scaler.mean_ - logit(prior)",
        "- slope @ scaler.mean_",
    ),
    Bug(
        "evaluation/calibration.py",
        "evaluation/test_calibration.py",
        "np.logaddexp(0, -llr[same]).mean()",
        "np.logaddexp(0, -llr[same]).sum()",
    ),
    Bug(
        "evaluation/bootstrap.py",
        "evaluation/test_bootstrap.py",
        "INTERVAL_ENDS = (0.025, 0.975)",
        "INTERVAL_ENDS = (0.05, 0.95)",
    ),
    Bug(
        "evaluation/ranking.py",
        "evaluation/test_ranking.py",
        "store.author_offsets[author + 1] - posts",
        "store.author_offsets[author + 1] - 2 * posts",
    ),
    Bug(
        "evaluation/ranking.py",
        "evaluation/test_ranking.py",
        "number_within_author < texts[author] // 2",
        "number_within_author <= texts[author] // 2",
    ),
    Bug(
        "accounts/scoring.py",
        "accounts/test_scoring.py",
        "share_below.mean() > 0.5 + CHANCE_ERRORS",
        "share_below.mean() > 0.5 - CHANCE_ERRORS",
    ),
    Bug(
        "accounts/scoring.py",
        "accounts",
        "log_nobody = np.log1p(-prior)",
        "log_nobody = np.log(prior)",
    ),
    Bug(
        "accounts/samples.py",
        "accounts/test_samples.py",
        "is_kept = own_lengths >= MIN_OWN_SHARE * lengths",
        "is_kept = own_lengths > 0",
    ),
    Bug(
        "accounts/gallery.py",
        "accounts/test_gallery.py",
        "np.minimum(written, plain + HABIT_MARGIN)",
        "np.maximum(written, plain + HABIT_MARGIN)",
    ),
    Bug(
        "accounts/habits.py",
        "accounts/test_gallery.py",
        "is_own = ~(is_habit & is_rare[own.store.tokens])",
        "is_own = ~is_habit | True",
    ),
    Bug(
        "accounts/unjudged.py",
        "accounts/test_unjudged.py",
        "of_letters) < limit",
        "of_letters) < 0",
    ),
    Bug(
        "sources/table.py",
        "sources/test_table.py",
        "for column, value in record.items():",
        "for column, value in ():",
    ),
    Bug(
        "accounts/habits.py",
        "accounts/test_gallery.py",
        "np.minimum(mean_likeness - UNLIKE, 0)",
        "np.maximum(mean_likeness - UNLIKE, 0)",
    ),
    Bug(
        "accounts/habits.py",
        "accounts/test_gallery.py",
        "return term - DOUBT_OF_OUTSIDERS * are_both",
        "return term - DOUBT_OF_OUTSIDERS * ~are_both",
    ),
    Bug(
        "accounts/unjudged.py",
        "accounts/test_unjudged.py",
        "if count < max(2, MIN_SECOND_SHARE * len(long_enough)):",
        "if count <= len(long_enough):",
    ),
    Bug(
        "accounts/unjudged.py",
        "accounts/test_unjudged.py",
        "elif shares[row] > limit:",
        "elif shares[row] > 9 * limit:",
    ),
    Bug(
        "topic/remedies.py",
        "topic",
        "spread = np.sqrt(variances[varies])",
        "spread = variances[varies]",
    ),
    Bug("topic/remedies.py", "topic", "by_frequency[:k]", "by_frequency[: k + 1]"),
    Bug(
        "encoders/parts.py",
        "encoders",
        "real = mask[:, None, :, None]",
        "real = torch.ones_like(mask)[:, None, :, None]",
    ),
    Bug("encoders/parts.py", "encoders", "(batch.times - MONDAY) % WEEK", "batch.times % WEEK"),
    Bug("encoders/parts.py", "encoders", "(2 * math.pi)", "math.pi"),
    Bug(
        "losses/pairwise.py",
        "losses/test_pairwise.py",
        "negative.sum(1, keepdim=True) - 1",
        "negative.sum(1, keepdim=True) - 2",
    ),
    Bug(
        "losses/pairwise.py",
        "losses/test_pairwise.py",
        "return (_mean(pull, positives) + _mean(push, negatives)) / 4",
        "return (_mean(pull, positives) + _mean(push, negatives)) / 2",
    ),
    Bug(
        "losses/pairwise.py",
        "losses/test_pairwise.py",
        "(farthest - nearest + margin)[anchors]",
        "(farthest - nearest + margin)",
    ),
    Bug(
        "training/loop.py",
        "training",
        "return self.lr * (step + 1) / self.warmup",
        "return self.lr * step / self.warmup",
    ),
    Bug(
        "training/loop.py",
        "training",
        "torch.manual_seed(hash((seed, step, accelerator.process_index)))",
        "torch.manual_seed(seed)",
    ),
    Bug(
        "training/loop.py", "training", 'return max(state["history"]', 'return min(state["history"]'
    ),
    Bug(
        "splits/by_time.py",
        "splits/test_by_time.py",
        "CASE WHEN second < t1 THEN 'train'",
        "CASE WHEN second <= t1 THEN 'train'",
    ),
    Bug(
        "splits/by_time.py",
        "splits/test_by_time.py",
        "AND (to_dev OR after < {self.eval_posts}) THEN 'dev'",
        "AND to_dev THEN 'dev'",
    ),
    Bug(
        "corpus/personal_names.py",
        "corpus/test_privacy.py",
        "is_no_word = nicks.get(name.lower())",
        "is_no_word = nicks.get(name)",
    ),
]


def plant(bug: Bug, tree: Path) -> str:
    """Return the name of the first test of a tree that fails by a bug, or "MISSED"."""
    path = tree / "helpers" / bug.file
    code = path.read_text("utf-8")
    if code.count(bug.right) != 1:
        raise ValueError(f"{bug.file} holds {bug.right!r} {code.count(bug.right)} times, not once")
    path.write_text(code.replace(bug.right, bug.wrong), "utf-8")
    command = [sys.executable, "-m", "pytest", f"tests/{bug.tests}", "-x", "-q", "--tb=no", "-rfE"]
    environment = os.environ | {
        "AUTHORBOOK_OUTPUTS": str(tree / "outputs" / "test"),
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(tree),
        "TQDM_DISABLE": "1",
    }
    try:
        done = subprocess.run(
            [*command, "-p", "no:cacheprovider"],
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
        )
    finally:
        path.write_text(code, "utf-8")
    failed = FIRST_FAILED.search(done.stdout)
    return failed[1] if failed else "MISSED"


def main() -> int:
    """Plant the bugs whose files hold a word of the command line; return 1 if one was missed."""
    words = sys.argv[1:] or [""]
    chosen = [bug for bug in BUGS if any(word in bug.file for word in words)]
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        subprocess.run(["git", "checkout-index", "-a", f"--prefix={tree}/"], cwd=ROOT, check=True)
        for bug in tqdm(chosen, unit="bug"):
            failed = plant(bug, tree)
            missed += failed == "MISSED"
            print(f"{bug.file}: {bug.wrong!r}: {failed}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} bugs were caught")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
