"""An author encoder for use: accounts' posts in, unit vectors, ranks and calibrated answers out.

Its members are those of Fusion T in notebook 06 but TF-IDF shape: Stream, LSA-WCCN, "LSA-WCCN, frequent" and the hour
profile, whose weights ship, and three TF-IDFs that each gallery fits on its own texts. Fusion weights and calibration
are fitted on dev accounts, once with the s-norm of a gallery, and once for two accounts without a gallery.
"""

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as nnf

from helpers.accounts.members import CachedRows, build_encoder, encoder_config
from helpers.accounts.passages import token_kinds, without_passages
from helpers.accounts.samples import MAX_TOKENS, Posts, halves, samples_of
from helpers.accounts.scoring import ScoringConfig, fit_scoring
from helpers.accounts.weights import quantise, restore
from helpers.core.artifacts import read_json, write_json
from helpers.encoders.base import Encoder, embed
from helpers.encoders.baselines import fit_baseline, fit_lsa
from helpers.evaluation.fusion import Fusion
from helpers.evaluation.score_norm import adapted
from helpers.evaluation.trials import Trials
from helpers.tokens import tokenizer as tokenizers
from helpers.tokens.batch import Samples
from helpers.tokens.store import TokenStore
from helpers.training import checkpoints

WEIGHTS = "weights.safetensors"
SHIPPED = Path(__file__).parent / "shipped"
ENOUGH = 30  # accounts, from which on scores are s-normed by the gallery
ALONE = 9  # trials that bound the calibration without a gallery: far from its archives, all are alike to the encoder
COUNTED = ("tfidf_word", "tfidf_char", "tfidf_subword")  # fitted on every gallery
# kind: frequent tokens shown (0: all), dimensions, buckets of pairs; small enough to be shipped
LSA = {"lsa": (0, 256, 2**15), "lsa_masked": (300, 256, 2**14)}


class AuthorEncoder:
    """``encode`` posts to vectors; a :class:`~helpers.accounts.gallery.AccountGallery` of it ranks and links accounts.

    tokenizer : of the members. members : encoders by name, "stream", "lsa", "lsa_masked", "hours". uses : by name, see
    :meth:`use`. card : what it was made of and measured on.
    """

    def __init__(
        self, tokenizer, members: dict[str, Encoder], uses: dict[str, ScoringConfig], card: dict
    ):
        self.tokenizer, self.members, self.uses, self.card = tokenizer, members, uses, card

    @cached_property
    def kinds(self) -> np.ndarray:
        """Of its tokens, as :func:`helpers.accounts.passages.without_passages` takes them."""
        return token_kinds(self.tokenizer)

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
        """Load one that ships, by name, or from a folder. Raises ValueError where there is none or it is damaged."""
        folder = SHIPPED / name if (SHIPPED / name).exists() else Path(name)
        if not (folder / "model.json").exists():
            there = ", ".join(sorted(path.parent.name for path in SHIPPED.glob("*/model.json")))
            raise ValueError(
                f"no encoder {str(name)!r}: one of {there or 'none'}, or a folder that save() has made"
            )
        tensors, about = (
            restore(checkpoints.read_checkpoint(folder / WEIGHTS)[0]),
            read_json(folder / "model.json"),
        )
        tokenizer = tokenizers.load_tokenizer(folder)
        vocabulary, members = tokenizer.vocabulary, {}
        for member, made_of in about["members"].items():
            encoder = build_encoder(member, made_of, vocabulary)
            encoder.load_state_dict({key.removeprefix(f"{member}/"): value for key, value in tensors.items()
                                     if key.startswith(f"{member}/")})  # fmt: skip
            members[member] = encoder.eval()
        return cls(
            tokenizer,
            members,
            {use: ScoringConfig.of(each) for use, each in about["uses"].items()},
            about["card"],
        )

    def save(self, folder: str | Path) -> None:
        """Write tokenizer, weights in eight bits, uses and card to a folder, for :meth:`load`."""
        about = {
            "members": {name: encoder_config(encoder) for name, encoder in self.members.items()},
            "card": self.card,
            "uses": {name: asdict(use) for name, use in self.uses.items()},
        }
        tensors = {f"{name}/{key}": value for name, encoder in self.members.items()
                   for key, value in encoder.state_dict().items()}  # fmt: skip
        checkpoints.save_checkpoint(Path(folder) / WEIGHTS, quantise(tensors), {})
        write_json(Path(folder) / "model.json", about)
        tokenizers.save_tokenizer(self.tokenizer, folder)

    @classmethod
    def fit(
        cls,
        stream: Encoder,
        train: TokenStore,
        dev: TokenStore,
        tokenizer,
        card: dict | None = None,
        seed: int = 0,
    ) -> "AuthorEncoder":
        """Fit LSA-WCCN and the hours on training accounts, then weights and calibration of every use on dev accounts.

        stream : trained on text alone, its config in ``config``. Raises ValueError where the stores are too small.
        """
        members = {"stream": stream, "hours": fit_baseline("hours", train, tokenizer)}
        members |= {
            name: fit_lsa(train, tokenizer, MAX_TOKENS, seed, 16, *sizes)
            for name, sizes in LSA.items()
        }
        made = cls(tokenizer, members, {}, card or {})
        for use in ("gallery", "gallery_hours", "alone", "alone_hours"):
            made.uses[use] = made.fit_use(use, dev)
        return made

    def fit_use(self, use: str, dev: TokenStore) -> ScoringConfig:
        """Fit weights and calibration of one use, on halves of a store's accounts."""
        members, (dev, _) = self._members(use), without_passages(dev, self.kinds)
        older, newer = halves(dev, 16, 16)
        chosen = Fusion.fit(members, Trials(older, newer), MAX_TOKENS).weights
        fitted = fit_scoring(Fusion(members, chosen), dev, 2 if use.startswith("alone") else ENOUGH)
        return replace(fitted, same=ALONE, different=ALONE) if use.startswith("alone") else fitted

    def calibrated_on(self, store: TokenStore, hours: bool) -> "AuthorEncoder":
        """Return the same encoder with a calibration for galleries that is fitted on halves of own accounts.

        Its weights stay. Raises ValueError where fewer than ENOUGH accounts have posts enough.
        """
        use = self.use(True, hours)
        fitted = fit_scoring(self.model(True, hours), store, ENOUGH)
        return AuthorEncoder(self.tokenizer, self.members, self.uses | {use: fitted}, self.card)

    def model(
        self,
        gallery: bool,
        hours: bool,
        known: dict[str, np.ndarray] | None = None,
        drawn: np.ndarray | slice = slice(None),
    ) -> Fusion:
        """The members with the weights of a use.

        gallery : of ENOUGH accounts. hours : are times known? known : rows of its targets by member, of :meth:`rows`.
        drawn : (T,) bool, targets that stand for all, see :class:`~helpers.evaluation.score_norm.Normalised`.
        """
        use = self.use(gallery, hours)
        return Fusion(self._members(use, known or {}, drawn), self.uses[use].weights)

    def rows(self, samples: Samples, progress: bool = True) -> dict[str, np.ndarray]:
        """What each member that ships makes of samples: rows (N, dim) by name, which no other account changes."""
        return {
            name: embed(encoder, samples, MAX_TOKENS, progress=progress)
            for name, encoder in self.members.items()
        }

    @staticmethod
    def use(gallery: bool, hours: bool) -> str:
        """The name of a use: "gallery" or "alone", with "_hours" where times are known."""
        return ("gallery" if gallery else "alone") + ("_hours" if hours else "")

    def _members(
        self, use: str, known: dict[str, np.ndarray] = {}, drawn: np.ndarray | slice = slice(None)
    ) -> dict:
        dense = {name: CachedRows(encoder, known[name]) if name in known else encoder
                 for name, encoder in self.members.items() if name != "hours" or use.endswith("_hours")}  # fmt: skip
        if use.startswith("alone"):
            return dense
        return {
            name: adapted(name, dense.get(name), self.tokenizer, drawn)
            for name in (*COUNTED, *dense)
        }

    def encode(self, posts: Posts, times: Sequence | None = None, topics: Sequence | None = None,
               progress: bool = True) -> np.ndarray:  # fmt: skip
        """Return accounts as unit vectors (N, D) float32, of at least one post each; with times the hours count too.

        posts : of each account its posts. times, topics : of each account the times and the rooms of its posts. Rooms
        are checked, and warned of: a person is not known by them, so no member reads them. progress : a bar where it
        takes over two seconds. The product of two vectors is the score of two accounts alone. Raises what
        :func:`helpers.accounts.samples.samples_of` raises.
        """
        if topics is not None:
            warnings.warn(
                "topics do not change these vectors: the encoder reads text and hours only",
                stacklevel=2,
            )
        return self.vectors(
            samples_of(posts, self.tokenizer, times, topics), times is not None, progress
        )

    def vectors(self, samples: Samples, hours: bool = False, progress: bool = True) -> np.ndarray:
        """The same of samples of a store."""
        weights, rows = self.uses[self.use(False, hours)].weights, self.rows(samples, progress)
        joined = [torch.from_numpy(rows[name] * weight**0.5) for name, weight in weights.items()]
        return nnf.normalize(
            torch.cat(joined, 1)
        ).numpy()  # roots: products of two vectors are the fused scores

    @staticmethod
    def similarity(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Cosines (N, M) of unit vectors (N, D) and (M, D)."""
        return np.asarray(one) @ np.asarray(other).T
