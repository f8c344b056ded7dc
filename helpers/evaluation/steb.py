"""Any encoder as a model of STEB (github.com/rrivera1849/STEB), a benchmark of style embeddings."""

from collections.abc import Callable

import numpy as np

from helpers.cleaning.text import clean_post
from helpers.core.progress import progress_bar


class STEBModel:
    """What ``steb.evaluate`` takes for a model.

    name : of its results there. encode : episodes, a list of texts each, -> (N, D), such as
    :meth:`helpers.accounts.encoder.AuthorEncoder.encode`.
    """

    def __init__(self, name: str, encode: Callable[[list[list[str]]], np.ndarray]):
        self.model_name_or_path, self.encode = name, encode

    def embed_multiple(
        self, episodes: list[list[str]], batch_size=32, show_progress=False
    ) -> np.ndarray:
        """N episodes -> (N, D), a row each: one of which cleaning leaves no word is read as a full stop."""
        words = [[text for text in episode if clean_post(text)] or ["."] for episode in episodes]
        begins = progress_bar(
            range(0, len(words), batch_size), progress=show_progress, desc="embedding"
        )
        return np.concatenate([self.encode(words[at : at + batch_size]) for at in begins])
