"""The examples of examples.yaml: what archives hold, and what is read of it."""

from pathlib import Path

import yaml

EXAMPLES = yaml.safe_load(Path(__file__).with_name("examples.yaml").read_text("utf-8"))
