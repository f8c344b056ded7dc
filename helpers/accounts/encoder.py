"""The author encoder that ships: it turns the posts of accounts into unit vectors.

Its members are those of Fusion T in notebook 06 without "TF-IDF shape": Stream, LSA-WCCN,
"LSA-WCCN, frequent" and the hour profile, whose weights ship, and three TF-IDFs that each gallery
fits on its own texts. Fusion weights and calibration are fitted on dev accounts, once for scores
that a gallery normalises, and once for two accounts without a gallery.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as nnf
from pydantic import TypeAdapter
from torch import Tensor

from ..core.artifacts import read_json, write_json
from ..core.messages import FileError, readable_file
from ..encoders.base import Encoder, load_tensors, read_checkpoint, save_checkpoint
from ..encoders.lsa import WCCN, FrequentTokens, HourProfile, LSAEncoder
from ..encoders.stream import StreamConfig, build_stream_encoder
from ..evaluation.models import Embeddings, GalleryTfidf, Model
from ..tokens import tokenizer as tokenizers
from ..tokens.batch import Samples
from .samples import MAX_TOKENS, Posts, in_memory, samples_of, texts_of, token_kinds
from .scoring import ScoringConfig, fit_own_scoring
from .unjudged import ENGLISH, languages_of

APOSTROPHES = re.compile("['’]")
PUNCTUATION = re.compile(r"[^\w\s@]+")
WEIGHTS = "weights.safetensors"
SHIPPED = Path(__file__).resolve().parent / "shipped"
ENOUGH = 30  # a gallery of at least so many accounts normalises its scores
COUNTED = ("tfidf_word", "tfidf_char", "tfidf_subword")  # each gallery fits these on its own texts

SCALE = ".scale"  # "<table>.scale" is the name of a table's scales
# Smaller tensors stay as they are: they need little space, and whitening matrices, which are among
# them, need full precision.
MIN_QUANTISED_VALUES = 2**18


class AuthorEncoder:
    """An encoder of accounts: :meth:`encode` turns posts into vectors.

    To rank and link accounts, give it to an :class:`~helpers.accounts.gallery.AccountGallery`.

    Parameters
    ----------
    tokenizer : turns texts into the tokens that all members read; characters that it does not know
        are spelt with those it knows
    members : name -> encoder, for "stream", "lsa", "lsa_masked", "hours"
    uses : name of a use, see :meth:`use` -> its weights and calibration
    card : what the encoder was made from, and its measured errors
    """

    def __init__(
        self, tokenizer, members: dict[str, Encoder], uses: dict[str, ScoringConfig], card: dict
    ):
        if isinstance(tokenizer, tokenizers.SentencePiece):
            tokenizer = tokenizers.SpellingSentencePiece.of(tokenizer)
        self.tokenizer = tokenizer
        self.members = members
        self.uses = uses
        self.card = card

    @cached_property
    def kinds(self) -> np.ndarray:
        """The kind of each token, see :func:`helpers.accounts.samples.token_kinds`."""
        return token_kinds(self.tokenizer)

    @cached_property
    def encoders(self) -> dict[str, Encoder | GalleryTfidf]:
        """Name -> encoder, of the TF-IDFs that each gallery fits and the members that ship."""
        return {kind: GalleryTfidf(kind, self.tokenizer) for kind in COUNTED} | self.members

    @classmethod
    def load(cls, name: str | Path = "open-small") -> "AuthorEncoder":
        """Load an encoder.

        Parameters
        ----------
        name : name of an encoder that ships, or a folder that :meth:`save` has written

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
        packed, _ = read_checkpoint(folder / WEIGHTS)
        with readable_file(folder / WEIGHTS):
            tensors = restore(packed)
        tokenizer = tokenizers.load_tokenizer(folder)
        about = read_json(folder / "model.json")
        with readable_file(folder / "model.json"):
            if any("match" in use for use in about["uses"].values()):
                raise FileError(f"{folder} was saved by an earlier version: fit and save it again")
            members = {
                member: build_encoder(member, config, tokenizer)
                for member, config in about["members"].items()
            }
            uses = TypeAdapter(dict[str, ScoringConfig]).validate_python(about["uses"])
            card = dict(about["card"])
        for member, encoder in members.items():
            state = {}
            for key, value in tensors.items():
                owner, _, name = key.partition("/")
                if owner == member:
                    state[name] = value
            load_tensors(encoder.eval(), state, folder / WEIGHTS)
        return cls(tokenizer, members, uses, card)

    def save(self, folder: str | Path) -> None:
        """Write tokenizer, members, uses and card to a folder, for :meth:`load`.

        Large tables are rounded to eight bits a value, see :func:`quantise`.

        Parameters
        ----------
        folder : of an encoder; what an earlier one has there is replaced
        """
        tensors = {}
        configs = {}
        for name, member in self.members.items():
            configs[name] = encoder_config(member)
            for key, value in member.state_dict().items():
                tensors[f"{name}/{key}"] = value
        save_checkpoint(Path(folder) / WEIGHTS, quantise(tensors), {})
        uses = {name: asdict(use) for name, use in self.uses.items()}
        about = {"members": configs, "card": self.card, "uses": uses}
        write_json(Path(folder) / "model.json", about)
        tokenizers.save_tokenizer(self.tokenizer, folder)

    def calibrated_by(
        self,
        scores: np.ndarray,
        first: Samples,
        last: Samples,
        rows: np.ndarray,
        hours: bool,
        languages: Sequence[str] | None = None,
    ) -> "AuthorEncoder":
        """Return a copy whose calibration for galleries is fitted on scores of halves of accounts.

        Parameters
        ----------
        scores, first, last, rows : as :func:`helpers.accounts.scoring.fit_own_scoring` takes them
        hours : whether times are known; chooses the use that is calibrated
        languages : of all of ``last``, if they are known
        """
        if languages is None:
            languages = languages_of(last, self.tokenizer)
        use = self.use(True, hours)
        fitted = fit_own_scoring(self.uses[use], scores, first, last, rows)
        counts = Counter(np.array(languages, object)[rows].tolist())
        fitted_languages = [name for name, count in counts.items() if count >= ENOUGH]
        seen = tuple(sorted({ENGLISH, *fitted_languages}))
        uses = self.uses | {use: replace(fitted, languages=seen)}
        copy = AuthorEncoder(self.tokenizer, self.members, uses, self.card)
        copy.encoders = self.encoders
        return copy

    def model(
        self,
        gallery: bool,
        hours: bool,
        reference: np.ndarray | None = None,
        embeddings: Embeddings | None = None,
    ) -> Model:
        """Return the model of a use: its members and their weights.

        Parameters
        ----------
        gallery : whether the gallery has at least ENOUGH accounts
        hours : whether times are known
        reference : (T,) bool, from which of the T targets the normalisation takes means and
            spreads; by default all
        embeddings : cache of another model of the same encoders; by default a new one
        """
        members = self.uses[self.use(gallery, hours)].members
        shared = {"reference": reference, "embeddings": embeddings or Embeddings()}
        return Model.from_json(members, self.encoders, **shared)

    def fusion(self, hours: bool, normaliser: str = "as_norm") -> Model:
        """Return the members of a gallery's use, each once, with their weights for AS-norm.

        Parameters
        ----------
        hours : whether times are known
        normaliser : how each member's scores are normalised, see
            :class:`helpers.evaluation.models.Member`
        """
        members = self.model(True, hours).members
        once = [member for member in members if member.normaliser == "as_norm"]
        return Model.mean(once).normalised(normaliser, once[0].neighbours)

    @staticmethod
    def use(gallery: bool, hours: bool) -> str:
        """Return the name of a use, one of USES.

        Parameters
        ----------
        gallery : whether a gallery of at least ENOUGH accounts normalises the scores; "gallery"
            where it does, else "alone"
        hours : whether times are known; adds "_hours"
        """
        return ("gallery" if gallery else "alone") + ("_hours" if hours else "")

    def in_plain_words(self, samples: Samples) -> Samples:
        """Return samples whose posts are in lower case and without punctuation.

        A post of which nothing would be left stays as it is.

        Parameters
        ----------
        samples : N samples
        """
        own = in_memory(samples)
        texts = texts_of(own.store, np.arange(own.store.posts), self.tokenizer)
        tokens = self.tokenizer.encode([_in_plain_words(text) or text for text in texts])
        store = replace(
            own.store,
            tokens=np.concatenate(tokens).astype(np.uint16),
            post_offsets=np.append(0, np.cumsum([len(of_post) for of_post in tokens])),
        )
        return replace(own, store=store)

    def encode(self, posts: Posts, times: Sequence | None = None) -> np.ndarray:
        """Return one unit vector per account.

        The product of two vectors is the fused score of two accounts without a gallery.

        Parameters
        ----------
        posts : one list of texts per account, of at least one text each
        times : one list per account with the time of each post; if given, the vectors include the
            hour profile

        Returns
        -------
        (N, D) float32: N accounts, D dimensions of all members together

        Raises
        ------
        ValueError
            See :func:`helpers.accounts.samples.samples_of`.
        """
        return self.vectors(samples_of(posts, self.tokenizer, times), times is not None)

    def vectors(
        self, samples: Samples, hours: bool = False, embeddings: Embeddings | None = None
    ) -> np.ndarray:
        """Return one unit vector per sample, as :meth:`encode` does for lists of texts.

        Other accounts have no influence on a vector.

        Parameters
        ----------
        samples : N samples, one per account
        hours : whether times are known, so that the vectors include the hour profile
        embeddings : what was made before; by default nothing

        Returns
        -------
        (N, D) float32
        """
        if embeddings is None:
            embeddings = Embeddings()
        scaled = []
        for name, weight in self.uses[self.use(False, hours)].weights.items():
            rows = embeddings.of(self.members[name], samples, MAX_TOKENS, progress=True)
            # scaled by the root of the weight, since a product takes the factor from both vectors
            scaled.append(rows * weight**0.5)
        return nnf.normalize(torch.cat(scaled, 1)).numpy()


def _in_plain_words(text):
    words = PUNCTUATION.sub(" ", APOSTROPHES.sub("", text.lower()))
    return " ".join(words.split())


def build_encoder(member: str, config: dict, tokenizer: tokenizers.Tokenizer) -> Encoder:
    """Build a member whose weights are still to be loaded.

    Parameters
    ----------
    member : name of the member: "stream", "lsa", "lsa_masked" or "hours"
    config : result of :func:`encoder_config`
    tokenizer : has made the tokens that the member reads
    """
    if member == "stream":
        # its tokens become those of a pretrained transformer only where the tokenizer is known
        stream_config = StreamConfig.of(config)
        return build_stream_encoder(stream_config, tokenizer.vocabulary, 1, tokenizer=tokenizer)
    if member == "hours":
        return WCCN(HourProfile(**config))
    lsa = LSAEncoder(**config)
    if member == "lsa_masked":
        return WCCN(FrequentTokens(lsa, tokenizer.vocabulary))
    return WCCN(lsa)


def encoder_config(encoder: Encoder) -> dict:
    """Return the config from which :func:`build_encoder` builds an encoder of the same shape."""
    if isinstance(encoder, WCCN | FrequentTokens):
        return encoder_config(encoder.encoder)
    if isinstance(encoder, LSAEncoder):
        return {"vocabulary": encoder.vocabulary, "dim": encoder.dim, "buckets": encoder.buckets}
    if isinstance(encoder, HourProfile):
        return {"turns": encoder.turns}
    return encoder.config.model_dump(mode="json")


def quantise(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Turn large tables into int8, with one scale per row by which its largest value becomes 127.

    Tensors that are one-dimensional, not of floats or smaller than MIN_QUANTISED_VALUES stay as
    they are.

    Parameters
    ----------
    tensors : dict
        name -> tensor

    Returns
    -------
    The same names, and "<name>.scale" for each table that was turned into int8.
    """
    packed = dict(tensors)
    for name, table in tensors.items():
        if table.dim() < 2 or not table.is_floating_point() or table.numel() < MIN_QUANTISED_VALUES:
            continue
        rows = table.float().flatten(1)
        scale = rows.abs().amax(1, keepdim=True).clamp(min=1e-30) / 127
        packed[name] = (rows / scale).round().to(torch.int8).view(table.shape)
        packed[name + SCALE] = scale[:, 0]
    return packed


def restore(packed: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors that :func:`quantise` has packed: int8 tables become float32 again."""
    tensors = {}
    for name, value in packed.items():
        if name.endswith(SCALE):
            continue
        tensors[name] = value
        if name + SCALE in packed:
            rows = value.float().flatten(1) * packed[name + SCALE][:, None]
            tensors[name] = rows.view(value.shape)
    return tensors
