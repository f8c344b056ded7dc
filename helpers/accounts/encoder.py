"""An author encoder for use: accounts' posts in, unit vectors, ranks and calibrated answers out.

Its members are those of notebook 06's "everything": a trained stream, LSA, a masked view and the hours, with weights
that ship, and three TF-IDF that each gallery fits on its own texts. Weights and calibration are chosen on dev accounts,
once for a gallery, whose other accounts say what a score is worth there, and once for two accounts alone.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.metrics.pairwise import cosine_similarity
from torch import Tensor, nn

from helpers.accounts import weights
from helpers.accounts.posts import (
    Posts, first_posts, halves, kinds_of, last_posts, samples_of, without_passages,
)  # fmt: skip
from helpers.encoders.base import Encoder, embed
from helpers.encoders.fitted import fit_encoder, fit_lsa
from helpers.encoders.lsa import LSAEncoder
from helpers.encoders.masked import Masked
from helpers.encoders.profiles import HourProfile
from helpers.encoders.stream import StreamConfig, build
from helpers.encoders.whitened import Whitened
from helpers.evaluation import calibration
from helpers.evaluation.calibration import Calibration
from helpers.evaluation.fusion import Fusion
from helpers.evaluation.gallery import Gallery
from helpers.evaluation.normalisation import Normalised, adapted
from helpers.evaluation.trials import Trials
from helpers.tokens import tokenizer as tokenizers
from helpers.tokens.batch import Batch, Samples
from helpers.tokens.store import TokenStore

SHIPPED = Path(__file__).parent / "shipped"
MAX_TOKENS = 32  # read of each post
ENOUGH = 30  # accounts, from which on a gallery says what a score is worth in it
ALONE = 9  # trials that the map for two accounts alone may claim: far from its archives, all are alike to it
COUNTED = ("tfidf_word", "tfidf_char", "tfidf_subword")  # fitted on every gallery
SIZES = (4, 8, 16, 32)  # posts of a sample, on which calibration is fitted
# kind: frequent tokens shown (0: all), dimensions, buckets of pairs; small enough to be shipped
LSA = {"lsa": (0, 256, 2**15), "lsa_masked": (300, 256, 2**14)}


@dataclass(frozen=True)
class Use:
    """One way to use the members: their weights, the map from score to log-likelihood ratio, and its bounds.

    same, different : trials that the map was fitted on. No ratio claims more than they could show: it lies within
    -log(same + 1) and log(different + 1), as in forensic practice (Vergeer et al. 2016).
    """

    weights: dict[str, float]
    calibration: Calibration
    same: int
    different: int

    def llr(self, scores: np.ndarray, query_posts, target_posts) -> np.ndarray:
        """Log-likelihood ratios of scores, any shape, of pairs with so many posts.

        Fewer or more posts than the map was fitted on, SIZES, count as the least or the most of these.
        """
        sizes = (np.clip(size, SIZES[0], SIZES[-1]) for size in (query_posts, target_posts))
        flat = [part.ravel() for part in np.broadcast_arrays(scores, *sizes)]
        ratios = self.calibration.llr(*flat).reshape(np.shape(scores))
        return ratios.clip(-np.log1p(self.same), np.log1p(self.different))


class AuthorEncoder:
    """``encode`` posts to vectors; a :class:`~helpers.accounts.gallery.AccountGallery` of it ranks and links accounts.

    tokenizer : of the members. members : encoders by name, "stream", "lsa", "lsa_masked", "hours". uses : by name, see
    :meth:`use`. card : what it was made of and measured on.
    """

    def __init__(self, tokenizer, members: dict[str, Encoder], uses: dict[str, Use], card: dict):
        self.tokenizer, self.members, self.uses, self.card = tokenizer, members, uses, card

    @cached_property
    def kinds(self) -> np.ndarray:
        """Of its tokens, as :func:`helpers.accounts.posts.without_passages` takes them."""
        return kinds_of(self.tokenizer)

    @cached_property
    def fingerprint(self) -> str:
        """The identity of what it makes of posts: tokens and members, whatever weights and calibration are."""
        digest = hashlib.sha256(self.tokenizer.fingerprint.encode())
        for name, encoder in sorted(self.members.items()):
            for key, value in encoder.state_dict().items():
                digest.update(f"{name} {key}".encode() + value.numpy().tobytes())
        return digest.hexdigest()[:16]

    @classmethod
    def load(cls, name: str | Path = "open-small") -> "AuthorEncoder":
        """One that ships, by name, or from a folder. Raises ValueError where there is none or its files are damaged."""
        folder = SHIPPED / name if (SHIPPED / name).exists() else Path(name)
        if not (folder / "model.json").exists():
            there = ", ".join(sorted(path.parent.name for path in SHIPPED.glob("*/model.json")))
            raise ValueError(f"no encoder {str(name)!r}: one of {there or 'none'}, or a folder that save() has made")
        tensors, about = weights.read(folder)
        tokenizer = tokenizers.load(folder)
        vocabulary, members = tokenizer.vocabulary, {}
        for member, settings in about["members"].items():
            encoder = _empty(member, settings, vocabulary)
            prefix = f"{member}/"
            encoder.load_state_dict({key.removeprefix(prefix): value for key, value in tensors.items()
                                     if key.startswith(prefix)})  # fmt: skip
            members[member] = encoder.eval()
        uses = {use: Use(**{**each, "calibration": Calibration(**each["calibration"])})
                for use, each in about["uses"].items()}
        return cls(tokenizer, members, uses, about["card"])

    def save(self, folder: str | Path) -> None:
        """Write tokenizer, weights in eight bits, uses and card to a folder, for :meth:`load`."""
        about = {"members": {name: _settings(encoder) for name, encoder in self.members.items()}, "card": self.card,
                 "uses": {name: _plain(use) for name, use in self.uses.items()}}
        tensors = {f"{name}/{key}": value for name, encoder in self.members.items()
                   for key, value in encoder.state_dict().items()}  # fmt: skip
        weights.write(Path(folder), tensors, about)
        tokenizers.save(self.tokenizer, folder)

    @classmethod
    def fit(cls, stream: Encoder, train: TokenStore, dev: TokenStore, tokenizer, card: dict | None = None,
            seed: int = 0) -> "AuthorEncoder":
        """Fit what counts on training accounts, then weights and calibration of every use on dev accounts.

        stream : trained on text alone, its config in ``config``. Raises ValueError where the stores are too small.
        """
        members = {
            "stream": stream, "hours": fit_encoder("hours", train, tokenizer),
            **{name: fit_lsa(train, tokenizer, MAX_TOKENS, seed, 16, *sizes) for name, sizes in LSA.items()},
        }  # fmt: skip
        made = cls(tokenizer, members, {}, card or {})
        for use in ("gallery", "gallery_hours", "alone", "alone_hours"):
            made.uses[use] = made.fit_use(use, dev)
        return made

    def fit_use(self, use: str, dev: TokenStore) -> Use:
        """Weights and calibration of one use, on halves of a store's accounts."""
        members, (dev, _) = self._members(use), without_passages(dev, self.kinds)
        older, newer = halves(dev, 16, 16)
        chosen = Fusion.fit(members, Trials(older, newer), MAX_TOKENS).weights
        fitted = calibrated(Fusion(members, chosen), dev, 2 if use.startswith("alone") else ENOUGH)
        return replace(fitted, same=ALONE, different=ALONE) if use.startswith("alone") else fitted

    def calibrated_on(self, store: TokenStore, hours: bool) -> "AuthorEncoder":
        """The same encoder, its map from score to likelihood ratio in galleries fitted on halves of own accounts.

        Its weights stay. Raises ValueError where fewer than ENOUGH accounts have 2 * SIZES[0] posts.
        """
        use = self.use(True, hours)
        fitted = calibrated(self.model(True, hours), store, ENOUGH)
        return AuthorEncoder(self.tokenizer, self.members, self.uses | {use: fitted}, self.card)

    def model(self, gallery: bool, hours: bool, known: dict[str, np.ndarray] | None = None) -> Fusion:
        """The members with the weights of a use.

        gallery : of ENOUGH accounts. hours : are times known? known : rows of its targets by member, of :meth:`rows`.
        """
        use = self.use(gallery, hours)
        return Fusion(self._members(use, known or {}), self.uses[use].weights)

    def rows(self, samples: Samples) -> dict[str, np.ndarray]:
        """What each member that ships makes of samples: rows (N, dim) by name, which no other account changes."""
        return {name: embed(encoder, samples, MAX_TOKENS) for name, encoder in self.members.items()}

    @staticmethod
    def use(gallery: bool, hours: bool) -> str:
        """The name of a use: "gallery" or "alone", with "_hours" where times are known."""
        return ("gallery" if gallery else "alone") + ("_hours" if hours else "")

    def _members(self, use: str, known: dict[str, np.ndarray] = {}) -> dict:
        dense = {name: Known(encoder, known[name]) if name in known else encoder
                 for name, encoder in self.members.items() if name != "hours" or use.endswith("_hours")}  # fmt: skip
        if use.startswith("alone"):
            return dense
        return {name: adapted(name, None, self.tokenizer) for name in COUNTED} | {
            name: Normalised(encoder) for name, encoder in dense.items()}  # fmt: skip

    def encode(self, posts: Posts, times: Sequence | None = None) -> np.ndarray:
        """Accounts as unit vectors (N, D) float32, of at least one post each; with times the hours count too.

        posts : of each account its posts. times : of each account the times of its posts. The product of two vectors
        is the score of two accounts alone. Raises what :func:`helpers.accounts.posts.samples_of` raises.
        """
        samples = samples_of(posts, self.tokenizer, times)
        return self.vectors(samples, times is not None)

    def vectors(self, samples: Samples, hours: bool = False) -> np.ndarray:
        """The same of samples of a store."""
        return embed(Joined(self.model(False, hours)), samples, MAX_TOKENS)

    @staticmethod
    def similarity(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Cosines (N, M) of vectors (N, D) and (M, D)."""
        return cosine_similarity(one, other)


class Known:
    """An encoder whose rows of the targets are known; wherever a score is asked for it stands for the encoder."""

    def __init__(self, encoder: Encoder, rows: np.ndarray):
        self.encoder, self.rows = encoder, rows

    def gallery(self, targets: Samples, max_tokens: int) -> Gallery:
        """The targets, not embedded again."""
        return Gallery(self.encoder, targets, max_tokens, self.rows)


class Joined(Encoder):
    """The dense members of a fusion as one encoder."""

    def __init__(self, fusion: Fusion):
        super().__init__()
        self.fusion, self.members = fusion, nn.ModuleList(fusion.members.values())

    def forward(self, batch: Batch) -> Tensor:
        """Batch of B samples -> (B, D), unit length."""
        return self.fusion.joined(batch)


def calibrated(fusion: Fusion, dev: TokenStore, least: int) -> Use:
    """A fusion with the map from its scores to log-likelihood ratios, fitted on halves of dev accounts.

    Queries and targets have each of SIZES posts where at least ``least`` accounts go so far. The bounds count the
    accounts of one gallery, once: their pairs of other sizes are no further trials.
    Raises ValueError where too few accounts have posts enough.
    """
    scores, same, sizes, accounts = [], [], [], 0
    for asked, kept in product(SIZES, SIZES):
        older, newer = halves(dev, max(asked, kept), max(asked, kept))
        if len(older) < least:
            continue
        accounts = max(accounts, len(older))
        queries, targets = last_posts(older, asked), first_posts(newer, kept)
        block = np.concatenate([block.copy() for _, block in fusion.gallery(targets, MAX_TOKENS).scores(queries)])
        scores.append(block.ravel())
        same.append(np.eye(len(queries), dtype=bool).ravel())
        sizes.append(np.broadcast_to([[asked], [kept]], (2, block.size)))
    if not scores:
        raise ValueError(f"calibration needs {least} accounts with {2 * SIZES[0]} posts")
    scores, same, (asked, kept) = np.concatenate(scores), np.concatenate(same), np.hstack(sizes)
    fitted = calibration.fit(scores, same, asked, kept)
    return Use(fusion.weights, fitted, accounts, accounts * (accounts - 1))


def _plain(use: Use) -> dict:
    return {**vars(use), "calibration": vars(use.calibration)}


def _settings(encoder: Encoder) -> dict:
    """What :func:`_empty` needs to build an encoder of the same shape."""
    if isinstance(encoder, Whitened):
        return _settings(encoder.encoder)
    if isinstance(encoder, Masked):
        return _settings(encoder.encoder)
    if isinstance(encoder, LSAEncoder):
        return {"vocabulary": encoder.vocabulary, "dim": encoder.dim, "buckets": encoder.buckets}
    return {"turns": encoder.turns} if isinstance(encoder, HourProfile) else encoder.config.model_dump(mode="json")


def _empty(member: str, settings: dict, vocabulary: int) -> Encoder:
    """An encoder of that shape, its values still to be loaded."""
    if member == "stream":
        return build(StreamConfig.of(settings), vocabulary, 1)
    if member == "hours":
        return Whitened(HourProfile(**settings))
    lsa = LSAEncoder(**settings)
    return Whitened(Masked(lsa, vocabulary) if member == "lsa_masked" else lsa)
