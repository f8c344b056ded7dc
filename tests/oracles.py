"""Naive versions of definitions, one element at a time, that more than one test or a notebook compares with."""

import numpy as np
import pytest
import torch


def slow_distance(one, other, distance):
    """Of two vectors, as tyo2021 equations 4 and 5 define it on unit vectors, or as they are ("raw")."""
    if distance == "raw":
        return (one - other).norm().item()
    one, other = one / one.norm(), other / other.norm()
    return ((one - other).norm() if distance == "euclidean" else 1 - one @ other).item()


def same_value_and_gradient(one, other, points):
    """Assert that two functions of points have one value, above 0, and one gradient."""
    inputs = [points.clone().requires_grad_() for _ in range(2)]
    values = [function(at) for function, at in zip((one, other), inputs)]
    assert values[0].item() == pytest.approx(values[1].item(), rel=1e-6) and values[0] > 0
    gradients = [torch.autograd.grad(value, at)[0] for value, at in zip(values, inputs)]
    torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-8)


def equal_batches(one, other):
    """Whether two batches of posts hold the same."""
    return all(torch.equal(getattr(one, name), getattr(other, name)) for name in vars(one))


def array(parameter):
    """A parameter as a NumPy array."""
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
    """1 and the targets of others that score as high as the best own one, in double precision."""
    result = []
    for query, author in zip(queries.astype(np.float64), query_authors):
        scores = [round(float(query @ target) * GRID) for target in targets.astype(np.float64)]
        best = max(score for score, other in zip(scores, target_authors) if other == author)
        result.append(
            1
            + sum(score >= best for score, other in zip(scores, target_authors) if other != author)
        )
    return result


def slow_errors(queries, targets, authors, topics):
    """What is nearest to each query; authors and topics: of queries and of targets."""
    kinds = []
    for query, author, topic in zip(queries.astype(np.float64), authors[0], topics[0]):
        scores = [round(float(query @ target) * GRID) for target in targets.astype(np.float64)]
        own = max(score for score, other in zip(scores, authors[1]) if other == author)
        others = [
            (score, what)
            for score, what, other in zip(scores, topics[1], authors[1])
            if other != author
        ]
        most = max(score for score, _ in others)
        same = any(what == topic for score, what in others if score == most)
        kinds.append("right" if most < own else "same_topic_error" if same else "other_topic_error")
    return kinds


def slow_pan_metrics(scores, same, definition):
    """Every metric of PAN, one pair at a time."""
    wins = sum(
        (a > b) + (a == b) / 2
        for a, y in zip(scores, same)
        if y
        for b, z in zip(scores, same)
        if not z
    )
    n, right, unanswered, error = len(same), 0, 0, 0
    tp = fp = fn = strict_tp = strict_fp = strict_fn = doubtful = 0
    for score, truth in zip(scores, same):
        error += (score - truth) ** 2
        if score == 0.5:
            unanswered += 1
        else:
            right += (score > 0.5) == truth
            tp, fp, fn = (
                tp + (score > 0.5 and truth),
                fp + (score > 0.5 and not truth),
                fn + (score < 0.5 and truth),
            )
        answer = 1 if score > 0.5 else 0 if score < 0.5 else 0.5 if definition == "pan21" else 1
        strict_tp += answer == 1 and truth
        strict_fp += answer == 1 and not truth
        strict_fn += answer == 0 and truth
        doubtful += answer == 0.5
    found = {
        "AUC": wins / (sum(same) * (n - sum(same))),
        "F1": 2 * tp / (2 * tp + fp + fn) if tp else 0,
        "c@1": (right + unanswered * right / n) / n,
        "F_0.5u": 1.25 * strict_tp / (1.25 * strict_tp + 0.25 * (strict_fn + doubtful) + strict_fp),
        "Brier": 1 - error / n,
    }
    names = ["AUC", "F1", "c@1", "F_0.5u"] + ["Brier"] * (definition == "pan21")
    return found | {
        "overall": sum(found[name] for name in names) / len(names),
        "n_unanswered": unanswered,
    }
