"""Shared code of the authorbook notebooks: learn, regularise and evaluate author embeddings.

Six modules show how it works; read them first, in this order:

1. :mod:`helpers.tokens.batch`: what a batch of samples is, the input of every encoder
2. :mod:`helpers.encoders.stream`: the encoder that is trained, composed of parts
3. :mod:`helpers.losses.pairwise`: a loss: (embeddings, labels) -> scalar
4. :mod:`helpers.training.experiment`: the description of a training, and the function that runs it
5. :mod:`helpers.evaluation.ranking`: queries, targets, ranks and metrics with intervals
6. :mod:`helpers.losses.arr`: what one of the papers adds, equation by equation

The package has two names: ``helpers`` in a checkout, where the notebooks import it, and
``authorbook`` where it is installed. So its modules import each other relatively, as in
``from ..core import paths``. Nothing heavy is imported here: the import costs milliseconds.
"""

import warnings

from .core.rooms import front_door

__version__ = "0.1.0"

# libraries ask for a progress widget; notebooks here show plain text, since widget state does not
# survive on GitHub
warnings.filterwarnings("ignore", message="IProgress not found")

__getattr__, __dir__ = front_door(__name__, {".accounts.encoder": ["AuthorEncoder"]})
