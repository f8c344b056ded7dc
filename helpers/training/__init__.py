"""Training: one loop, and the function that runs every experiment.

The input is a description of an encoder, a loss and a sampler of batches, which is checked once.
The output is a trained encoder with its best weights and its learning curve, saved in a folder with
this description. Training never uses test data, and never continues from a damaged file.
"""

from ..core.rooms import front_door

__getattr__, __dir__ = front_door(
    __name__,
    {
        ".experiment": [
            "Experiment",
            "TrainingConfig",
            "experiments_of",
            "load_trained",
            "run_experiment",
            "settings_grid",
        ]
    },
)
