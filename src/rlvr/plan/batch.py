"""Batch arithmetic: how many completions and prompts a step holds, and the nearest values that divide."""

from __future__ import annotations

from dataclasses import dataclass

from rlvr.errors import ConfigError

MIN_GENERATIONS = 8


@dataclass(frozen=True)
class Batch:
    """Sizes of one generation and one optimizer step over all devices.

    Attributes:
        micro: Completions of one forward on one device.
        accumulation: Forwards of one device before an optimizer step.
        processes: Devices that train.
        steps_per_generation: Forwards of one device that one generation feeds.
        generations: Completions a prompt.
    """

    micro: int
    accumulation: int
    processes: int
    steps_per_generation: int
    generations: int

    @property
    def generation(self) -> int:
        """Completions of one generation over all devices."""
        return self.micro * self.processes * self.steps_per_generation

    @property
    def step(self) -> int:
        """Completions of one optimizer step over all devices."""
        return self.micro * self.processes * self.accumulation

    @property
    def prompts_per_generation(self) -> int:
        """Prompts of one generation."""
        return self.generation // self.generations

    def optimizer_steps(self, prompts: int, iterations: int = 1) -> int:
        """Return optimizer steps of one pass over the prompts; an incomplete last generation is dropped by TRL."""
        rounds = prompts // max(self.prompts_per_generation, 1)
        return rounds * self.steps_per_generation * iterations // self.accumulation


def check_batch(batch: Batch, prompts: int, *, where: str = "recipe.overrides") -> None:
    """Refuse a batch that TRL would refuse, or that would train nothing.

    Raises:
        ConfigError: The group is too small, or the batch does not hold whole groups, or the data are too few.
    """
    for name, value in (
        ("per_device_train_batch_size", batch.micro),
        ("gradient_accumulation_steps", batch.accumulation),
        ("num_generations", batch.generations),
    ):
        if value < 1:
            raise ConfigError(
                "plan.batch", f"{name} is {value}", where=f"{where}.{name}", expected="a whole number from 1"
            )
    _check_groups(batch, where)
    if prompts < batch.prompts_per_generation:
        raise ConfigError(
            "plan.too-few-prompts",
            f"the training data have {prompts} prompts but one generation takes {batch.prompts_per_generation}; "
            "TRL drops incomplete generations, so nothing would be trained",
            where="task.prompts",
            expected=f"at least {batch.prompts_per_generation} prompts",
            fix=f"add prompts, or set gradient_accumulation_steps so that a generation takes at most {prompts}",
        )


def _check_groups(batch: Batch, where: str) -> None:
    if batch.generation % batch.generations == 0:
        return
    raise ConfigError(
        "plan.batch-arithmetic",
        f"per_device_train_batch_size {batch.micro} x {batch.processes} device(s) x steps_per_generation "
        f"{batch.steps_per_generation} = {batch.generation} completions, which is no multiple of "
        f"num_generations {batch.generations}",
        where=f"{where}.per_device_train_batch_size",
        expected="generation_batch_size % num_generations == 0",
        fix=nearest(batch),
    )


def nearest(batch: Batch) -> str:
    """Say the nearest values of each field alone that make whole groups, in the user's own names."""
    micro = _nearest(batch.micro, batch.processes * batch.steps_per_generation, batch.generations)
    accumulation = _nearest(batch.accumulation, batch.micro * batch.processes, batch.generations)
    groups = [g for g in range(MIN_GENERATIONS, batch.generation + 1) if batch.generation % g == 0]
    choices = [
        f"per_device_train_batch_size: {_join(micro)}",
        f"gradient_accumulation_steps: {_join(accumulation)}",
    ]
    if groups:
        closest = sorted(groups, key=lambda g: (abs(g - batch.generations), g))[:2]
        choices.append(f"num_generations: {_join(sorted(closest))}")
    return "set one of " + "; ".join(choices)


def _nearest(value: int, factor: int, divisor: int) -> list[int]:
    below = next((v for v in range(value - 1, 0, -1) if v * factor % divisor == 0), None)
    above = next(v for v in range(value, value + divisor + 1) if v * factor % divisor == 0)
    return [v for v in (below, above) if v is not None]


def _join(values: list[int]) -> str:
    return " or ".join(str(value) for value in values)
