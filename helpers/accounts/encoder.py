"""An author encoder for use: accounts' posts in, unit vectors, ranks and calibrated answers out.

Its members are those of Fusion T in notebook 06 but TF-IDF shape: Stream, LSA-WCCN, "LSA-WCCN,
frequent" and the hour profile, whose weights ship, and three TF-IDFs that each gallery fits on its
own texts. Fusion weights and calibration are fitted on dev accounts, once with the s-norm of a
gallery, and once for two accounts without a gallery.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as nnf

from helpers.accounts.members import build_encoder, encoder_config
from helpers.accounts.passages import token_kinds, without_passages
from helpers.accounts.samples import MAX_TOKENS, Posts, halves, samples_of
from helpers.accounts.scoring import ScoringConfig, fit_scoring
from helpers.accounts.weights import quantise, restore
from helpers.core.artifacts import read_json, write_json
from helpers.encoders.base import Encoder, embed
from helpers.encoders.baselines import fit_baseline, fit_lsa
from helpers.evaluation.fusion import fit_weights
from helpers.evaluation.models import GalleryTfidf, Member, Model, with_s_norm
from helpers.evaluation.trials import Trials
from helpers.tokens import tokenizer as tokenizers
from helpers.tokens.batch import Samples
from helpers.tokens.store import TokenStore
from helpers.training import checkpoints

WEIGHTS = "weights.safetensors"
SHIPPED = Path(__file__).parent / "shipped"
ENOUGH = 30  # accounts, from which on scores are s-normed by the gallery
# trials that bound the calibration without a gallery: far from its archives, all are alike to the
# encoder
ALONE = 9
COUNTED = ("tfidf_word", "tfidf_char", "tfidf_subword")  # fitted on every gallery
# kind: frequent tokens shown (0: all), dimensions, buckets of pairs; small enough to be shipped
LSA = {"lsa": (0, 256, 2**15), "lsa_masked": (300, 256, 2**14)}
TRAINING_POSTS = 16  # of a sample that members, weights and the first calibration are fitted on
USES = ("gallery", "gallery_hours", "alone", "alone_hours")


class AuthorEncoder:
    """An encoder of accounts; ``encode`` gives vectors.

    An :class:`~helpers.accounts.gallery.AccountGallery` of it ranks and links accounts.

    Parameters
    ----------
    tokenizer : of the members
    members : encoders by name, "stream", "lsa", "lsa_masked", "hours"
    uses : by name, see :meth:`use`
    card : what it was made of and measured on
    """

    def __init__(
        self, tokenizer, members: dict[str, Encoder], uses: dict[str, ScoringConfig], card: dict
    ):
        self.tokenizer = tokenizer
        self.members = members
        self.uses = uses
        self.card = card

    @cached_property
    def kinds(self) -> np.ndarray:
        """Kinds of its tokens, as :func:`helpers.accounts.passages.without_passages` takes them."""
        return token_kinds(self.tokenizer)

    @cached_property
    def encoders(self) -> dict[str, Encoder | GalleryTfidf]:
        """All encoders by name: the TF-IDFs that each gallery fits, and the members that ship."""
        return {kind: GalleryTfidf(kind, self.tokenizer) for kind in COUNTED} | self.members

    @cached_property
    def fingerprint(self) -> str:
        """Identity of tokens and members, whatever weights and calibration are."""
        digest = hashlib.sha256(self.tokenizer.fingerprint.encode())
        for name, encoder in sorted(self.members.items()):
            for key, value in encoder.state_dict().items():
                digest.update(f"{name} {key}".encode() + value.numpy().tobytes())
        return digest.hexdigest()[:16]

    @classmethod
    def load(cls, name: str | Path = "open-small") -> "AuthorEncoder":
        """Load one that ships, by name, or from a folder.

        Raises
        ------
        ValueError
            There is none, or it is damaged, or an earlier version saved it.
        """
        folder = SHIPPED / name if (SHIPPED / name).exists() else Path(name)
        if not (folder / "model.json").exists():
            names = sorted(path.parent.name for path in SHIPPED.glob("*/model.json"))
            raise ValueError(
                f"no encoder {str(name)!r}: one of {', '.join(names) or 'none'}, or a folder that "
                "save() has made"
            )
        packed, _ = checkpoints.read_checkpoint(folder / WEIGHTS)
        tensors = restore(packed)
        about = read_json(folder / "model.json")
        if any("members" not in use for use in about["uses"].values()):
            raise ValueError(f"{folder} was saved by an earlier version: fit and save it again")
        tokenizer = tokenizers.load_tokenizer(folder)
        members = {}
        for member, config in about["members"].items():
            encoder = build_encoder(member, config, tokenizer.vocabulary)
            start = f"{member}/"
            state = {
                key.removeprefix(start): value
                for key, value in tensors.items()
                if key.startswith(start)
            }
            encoder.load_state_dict(state)
            members[member] = encoder.eval()
        uses = {use: ScoringConfig.of(plain) for use, plain in about["uses"].items()}
        return cls(tokenizer, members, uses, about["card"])

    def save(self, folder: str | Path) -> None:
        """Write tokenizer, weights in eight bits, uses and card to a folder, for :meth:`load`."""
        about = {
            "members": {name: encoder_config(encoder) for name, encoder in self.members.items()},
            "card": self.card,
            "uses": {name: asdict(use) for name, use in self.uses.items()},
        }
        tensors = {}
        for name, encoder in self.members.items():
            for key, value in encoder.state_dict().items():
                tensors[f"{name}/{key}"] = value
        checkpoints.save_checkpoint(Path(folder) / WEIGHTS, quantise(tensors), {})
        write_json(Path(folder) / "model.json", about)
        tokenizers.save_tokenizer(self.tokenizer, folder)

    @classmethod
    def fit(
        cls, stream: Encoder, train: TokenStore, dev: TokenStore, tokenizer, seed: int = 0
    ) -> "AuthorEncoder":
        """Fit LSA-WCCN and hours on training accounts, then all uses on dev accounts.

        Parameters
        ----------
        stream : trained on text alone, its config in ``config``
        train, dev : of the accounts
        tokenizer : of the stores
        seed : of LSA

        Raises
        ------
        ValueError
            The stores are too small.
        """
        members = {"stream": stream, "hours": fit_baseline("hours", train, tokenizer)}
        for name, sizes in LSA.items():
            members[name] = fit_lsa(train, tokenizer, MAX_TOKENS, seed, TRAINING_POSTS, *sizes)
        encoder = cls(tokenizer, members, {}, {})
        for use in USES:
            encoder.uses[use] = encoder.fit_use(use, dev)
        return encoder

    def fit_use(self, use: str, dev: TokenStore) -> ScoringConfig:
        """Fit weights and calibration of one use on halves of a store's accounts.

        Parameters
        ----------
        use : its name, see :meth:`use`
        dev : of the accounts
        """
        dev, _ = without_passages(dev, self.kinds)
        trials = Trials(*halves(dev, TRAINING_POSTS, TRAINING_POSTS))
        model = fit_weights(self._systems(use), trials, MAX_TOKENS)
        if use.startswith("gallery"):
            return fit_scoring(model, dev, ENOUGH)
        return replace(fit_scoring(model, dev, 2), same=ALONE, different=ALONE)

    def _systems(self, use: str) -> dict[str, Encoder | Member]:
        """Return what a use fuses: in a gallery with s-norm, and beside TF-IDFs of its own."""
        names = [name for name in self.members if name != "hours" or use.endswith("_hours")]
        if use.startswith("alone"):
            return {name: self.members[name] for name in names}
        return {name: with_s_norm(self.encoders[name]) for name in (*COUNTED, *names)}

    def calibrated_on(self, store: TokenStore, hours: bool) -> "AuthorEncoder":
        """Return the same encoder with a calibration for galleries that is fitted on own accounts.

        Its weights stay.

        Parameters
        ----------
        store : of the accounts, whose halves are compared
        hours : whether times are known

        Raises
        ------
        ValueError
            Fewer than ENOUGH accounts have posts enough.
        """
        fitted = fit_scoring(self.model(True, hours), store, ENOUGH)
        uses = self.uses | {self.use(True, hours): fitted}
        return AuthorEncoder(self.tokenizer, self.members, uses, self.card)

    def model(self, gallery: bool, hours: bool, reference: np.ndarray | None = None) -> Model:
        """Return the members with the weights of a use.

        Parameters
        ----------
        gallery : whether there are ENOUGH accounts
        hours : whether times are known
        reference : (T,) bool, targets that stand for all, see
            :class:`helpers.evaluation.models.Member`
        """
        return Model.from_json(
            self.uses[self.use(gallery, hours)].members, self.encoders, reference
        )

    def rows(self, samples: Samples, progress: bool = True) -> dict[str, np.ndarray]:
        """Return what each member that ships makes of samples, which no other account changes.

        Parameters
        ----------
        samples : N accounts
        progress : show a bar where it takes over two seconds

        Returns
        -------
        (N, dim) float32 by name
        """
        return {
            name: embed(encoder, samples, MAX_TOKENS, progress=progress)
            for name, encoder in self.members.items()
        }

    @staticmethod
    def use(gallery: bool, hours: bool) -> str:
        """Return the name of a use.

        Parameters
        ----------
        gallery : whether there are ENOUGH accounts: "gallery", else "alone"
        hours : whether times are known: ends in "_hours"
        """
        return ("gallery" if gallery else "alone") + ("_hours" if hours else "")

    def encode(
        self, posts: Posts, times: Sequence | None = None, progress: bool = True
    ) -> np.ndarray:
        """Return accounts as unit vectors, whose products are the scores of two accounts alone.

        Parameters
        ----------
        posts : of each account its posts, one at least
        times : of each account the times of its posts; with them the hours count too
        progress : show a bar where it takes over two seconds

        Returns
        -------
        (N, D) float32

        Raises
        ------
        ValueError
            See :func:`helpers.accounts.samples.samples_of`.
        """
        return self.vectors(samples_of(posts, self.tokenizer, times), times is not None, progress)

    def vectors(self, samples: Samples, hours: bool = False, progress: bool = True) -> np.ndarray:
        """Return samples of a store as :meth:`encode` returns accounts.

        Parameters
        ----------
        samples : N accounts
        hours : whether times are known
        progress : show a bar where it takes over two seconds
        """
        weights = self.uses[self.use(False, hours)].weights
        rows = self.rows(samples, progress)
        # roots: products of two vectors are the fused scores
        scaled = [torch.from_numpy(rows[name] * weight**0.5) for name, weight in weights.items()]
        return nnf.normalize(torch.cat(scaled, 1)).numpy()
