"""A run's settings as the command line that repeats them."""

from masktune.config import RunConfig


def run_arguments(config: RunConfig) -> list[str]:
    """Give the arguments after ``python -m masktune`` that make this configuration again.

    >>> from masktune.config import TrainConfig
    >>> training = TrainConfig(epochs=2, batch_size=64, lr=0.01)
    >>> config = RunConfig(dataset="a", recipe="b", arch="c", training=training)
    >>> run_arguments(config)[:7]
    ['run', '--dataset', 'a', '--recipe', 'b', '--arch', 'c']
    """
    masking, training = config.masking, config.training
    options: dict[str, object] = {
        "dataset": config.dataset,
        "recipe": config.recipe,
        "arch": config.arch,
        "root": config.root,
        "frame": config.frame,
        "normalise": config.normalise,
        "validation": config.validation,
        "model": config.model,
        "weights": config.weights,
        "epochs": training.epochs,
        "batch-size": training.batch_size,
        "lr": training.lr,
        "strategy": masking.strategy,
        "k": masking.k,
        "statistics": masking.statistics,
        "rounds": masking.rounds,
        "top-fraction": masking.top_fraction,
        "method": masking.method,
        "layer": masking.layer,
        "finetune-lr": config.finetune_lr,
        "seed": config.seed,
        "device": config.device,
    }
    given = [(f"--{name}", str(value)) for name, value in options.items() if value is not None]
    accumulate = "--accumulate" if masking.accumulate else "--no-accumulate"
    return ["run", *(word for pair in given for word in pair), accumulate]
