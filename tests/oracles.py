"""Naive versions of definitions, one element at a time, that tests compare with."""

import numpy as np
import pytest
import torch


def slow_distance(left, right, distance):
    """The distance of two vectors, as tyo2021 equations 4 and 5 define it on unit vectors.

    "raw" is the Euclidean distance of the vectors as they are.
    """
    if distance == "raw":
        return (left - right).norm().item()
    left = left / left.norm()
    right = right / right.norm()
    if distance == "euclidean":
        return (left - right).norm().item()
    return (1 - left @ right).item()


def same_value_and_gradient(function, oracle, points):
    """Assert that two functions of points have one value, above 0, and one gradient."""
    inputs = [points.clone().requires_grad_() for _ in range(2)]
    values = [function(inputs[0]), oracle(inputs[1])]
    assert values[0].item() == pytest.approx(values[1].item(), rel=1e-6) and values[0] > 0
    gradients = [torch.autograd.grad(value, at)[0] for value, at in zip(values, inputs)]
    torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-8)


def equal_batches(left, right):
    """Whether two batches of posts hold the same."""
    return all(torch.equal(getattr(left, name), getattr(right, name)) for name in vars(left))


def array(parameter):
    return parameter.detach().numpy()


def layer_norm(norm, values):
    """LayerNorm of one vector."""
    centred = values - values.mean()
    return array(norm.weight) * centred / np.sqrt((centred**2).mean() + norm.eps) + array(norm.bias)


def normed_projection(projection, vector):
    """LayerNorm, linear, ReLU, linear, LayerNorm, unit length."""
    before, linear1, _, linear2, after = projection
    hidden = np.maximum(array(linear1.weight) @ layer_norm(before, vector), 0)
    result = layer_norm(after, array(linear2.weight) @ hidden)
    return result / np.linalg.norm(result)


GRID = 2**20  # equal scores are those that are equal when rounded to 1/GRID


def slow_ranks(queries, targets, query_authors, target_authors):
    """One and the other authors' targets that score as high as the author's best one.

    Scores are in double precision.
    """
    ranks = []
    for query, author in zip(queries.astype(np.float64), query_authors):
        scores = [round(float(query @ target) * GRID) for target in targets.astype(np.float64)]
        of_author = [score for score, name in zip(scores, target_authors) if name == author]
        of_others = [score for score, name in zip(scores, target_authors) if name != author]
        ranks.append(1 + sum(score >= max(of_author) for score in of_others))
    return ranks


def slow_errors(queries, targets, authors, topics):
    """What is nearest to each query; authors and topics: of queries and of targets."""
    kinds = []
    for query, author, topic in zip(queries.astype(np.float64), authors[0], topics[0]):
        scores = [round(float(query @ target) * GRID) for target in targets.astype(np.float64)]
        of_author = []
        of_others = []
        for score, target_author, target_topic in zip(scores, authors[1], topics[1]):
            if target_author == author:
                of_author.append(score)
            else:
                of_others.append((score, target_topic))
        nearest = max(score for score, _ in of_others)
        if nearest < max(of_author):
            kinds.append("right")
        elif (nearest, topic) in of_others:
            kinds.append("same_topic_error")
        else:
            kinds.append("other_topic_error")
    return kinds


def slow_answer(score, definition):
    """1 for one author, 0 for two; how a definition takes 0.5, no answer, in F_0.5u."""
    if score > 0.5:
        return 1
    if score < 0.5:
        return 0
    return 0.5 if definition == "pan21" else 1


def slow_auc(scores, same):
    """The share of comparisons that a pair of one author wins against a pair of two authors."""
    positives = [score for score, truth in zip(scores, same) if truth]
    negatives = [score for score, truth in zip(scores, same) if not truth]
    wins = 0
    for positive in positives:
        for negative in negatives:
            wins += (positive > negative) + (positive == negative) / 2
    return wins / (len(positives) * len(negatives))


def slow_pan_metrics(scores, same, definition):
    """Every metric of PAN, one pair at a time."""
    n = len(same)
    right = unanswered = error = 0
    tp = fp = fn = strict_tp = strict_fp = strict_fn = doubtful = 0
    for score, truth in zip(scores, same):
        error += (score - truth) ** 2
        if score == 0.5:
            unanswered += 1
        else:
            right += (score > 0.5) == truth
            tp += score > 0.5 and truth
            fp += score > 0.5 and not truth
            fn += score < 0.5 and truth
        answer = slow_answer(score, definition)
        strict_tp += answer == 1 and truth
        strict_fp += answer == 1 and not truth
        strict_fn += answer == 0 and truth
        doubtful += answer == 0.5
    metrics = {
        "AUC": slow_auc(scores, same),
        "F1": 2 * tp / (2 * tp + fp + fn) if tp else 0,
        "c@1": (right + unanswered * right / n) / n,
        "F_0.5u": 1.25 * strict_tp / (1.25 * strict_tp + 0.25 * (strict_fn + doubtful) + strict_fp),
        "Brier": 1 - error / n,
    }
    names = ["AUC", "F1", "c@1", "F_0.5u"]
    if definition == "pan21":
        names.append("Brier")
    overall = sum(metrics[name] for name in names) / len(names)
    return metrics | {"overall": overall, "n_unanswered": unanswered}


def slow_match(scores, config, overlap, rounds=50):
    """The probabilities of Sinkhorn's algorithm, in log space, one account at a time.

    ``scores`` are (Q, T), -inf of pairs that are none. The result (Q + 1, T + 1) has nobody in the
    last row and column; what is left of a target after the last scaling is not given to nobody.
    """
    queries, targets = scores.shape
    weights = np.full((queries + 1, targets + 1), -np.inf)
    weights[:-1, :-1] = config.slope * scores + config.intercept
    for size, nobody in ((queries, weights[:-1, -1]), (targets, weights[-1, :-1])):
        share = overlap * min(queries, targets) / size
        if share < 1:
            nobody[:] = np.log(1 - share) - np.log(share) / 2
    of_queries = np.zeros(queries + 1)
    of_targets = np.zeros(targets + 1)
    for number in range(2 * rounds + 1):
        if number % 2 == 0:
            for query in range(queries):
                of_queries[query] = -np.logaddexp.reduce(weights[query] + of_targets)
        else:
            for target in range(targets):
                of_targets[target] = -np.logaddexp.reduce(weights[:, target] + of_queries)
    return np.exp(of_queries[:, None] + weights + of_targets)


def slow_candidates(scores, best):
    """The pairs above -inf than which fewer than ``best`` of a row or a column are higher."""
    pairs = []
    for query, target in np.ndindex(scores.shape):
        score = scores[query, target]
        above = min((scores[query] > score).sum(), (scores[:, target] > score).sum())
        if score > -np.inf and above < best:
            pairs.append((query, target))
    return pairs


def slow_answers(pairs, values, partners, targets):
    """Rank, value and right of each query, by a loop; ``partners`` has -1 where there is none.

    The rank is None without a partner.
    """
    answers = []
    for query, partner in enumerate(partners):
        value_of = {t: value for (q, t), value in zip(pairs, values) if q == query}
        best = max(value_of.values(), default=-np.inf)
        rank = None
        if partner >= 0:
            rank = targets
            if partner in value_of:
                rank = sum(value >= value_of[partner] for value in value_of.values())
        answers.append((rank, best))
    return answers


def slow_list_metrics(answers):
    """MRR, R@1, A@P90, A@P99 of (rank, value) of each query, by a loop over thresholds."""
    ranks = [rank for rank, _ in answers if rank is not None]
    metrics = [sum(1 / rank for rank in ranks) / len(ranks), ranks.count(1) / len(ranks)]
    for precision in (0.9, 0.99):
        most = 0
        for _, threshold in answers:
            above = [rank == 1 for rank, value in answers if value >= threshold]
            if sum(above) >= precision * len(above):
                most = max(most, sum(above))
        metrics.append(most / len(ranks))
    return metrics
