"""Runs whose answer is known: GRPO simulated on groups of completions, healthy or with one illness.

Nothing is drawn by hand. A policy over a small set of answers is sampled in groups; rewards, advantages and a policy
gradient follow, and every metric is computed from the sampled groups and the policy, as a trainer would log it:

- each prompt has its own answer and difficulty; part of what is learnt carries over to all prompts (``skill``),
  part is about one answer for everything (``bias``), part stays with the prompt;
- a completion has an answer, a form (tagged or not), a length, and may use an exploit of the verifier;
- advantages are divided by the group's spread, as GRPO does; held-out accuracy is the policy's own, drawn with the
  scatter of its number of prompts.

An illness changes a cause (the reward, the learning rate, the cap), never a curve. Four cannot come from a reward
(KL, gradients, engines, experts): there the numerical fault itself is simulated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rlvr.records.watch import SymptomName
from rlvr.watch.completions import Completions, completions_from_rows
from rlvr.watch.facts import Facts
from rlvr.watch.history import Floats, History, history_from_rows

ILLNESSES: Final[tuple[SymptomName, ...]] = (
    "entropy-collapse",
    "entropy-explosion",
    "reward-pays-length",
    "wrong-answers-lengthen",
    "length-collapse",
    "truncation",
    "no-signal",
    "reward-hacking",
    "answer-collapse",
    "moe-instability",
    "engine-mismatch",
    "kl-blow-up",
    "gradient-spike",
    "reward-crash",
    "plateau",
)
"""What can be simulated besides a healthy run."""

ANSWERS: Final = 20
TEMPERATURE_OF_LENGTH: Final = 0.25
_WARM_UP: Final = 0.05


@dataclass(frozen=True)
class Setting:
    """How a run is simulated.

    Attributes:
        illness: Which symptom, or None for a healthy run.
        strength: 1.0 is full strength; lower makes it milder.
        steps: Optimizer steps.
        prompts: Prompts a step.
        group: Completions a prompt.
        log_every: Steps a logged row, averaged as TRL does.
        evaluate_every: Steps between held-out evaluations; 0 for none.
        held_out: Held-out prompts.
        start: Accuracy at the beginning, about.
        hopeless: Share of prompts that are never solved, so that healthy runs end at different levels.
        rate: Learning rate in the simulation's own unit; 1.0 learns most of the task in 150 steps.
        noise: Relative scatter of the numbers that are not counted from groups.
        onset: Share of the run after which a fault of the numbers begins.
        length: Mean length at the beginning, in tokens.
        cap: Length cap in tokens.
        keep: Whether completions are kept.
    """

    illness: SymptomName | None = None
    strength: float = 1.0
    steps: int = 150
    prompts: int = 8
    group: int = 8
    log_every: int = 1
    evaluate_every: int = 10
    held_out: int = 200
    start: float = 0.3
    hopeless: float = 0.0
    rate: float = 1.0
    noise: float = 0.05
    onset: float = 0.4
    length: float = 120.0
    cap: float = 512.0
    keep: bool = True


@dataclass(frozen=True)
class Simulated:
    """A simulated run.

    Attributes:
        rows: Logged rows, in TRL's names.
        completion_rows: Completions, in TRL's column layout; empty when they were not kept.
        facts: What stands beside the log.
        onset_step: First step at which the illness acts; 1 for causes that act from the beginning.
    """

    rows: list[dict[str, Any]]
    completion_rows: list[dict[str, Any]]
    facts: Facts
    onset_step: int

    def history(self) -> History:
        """Return the rows as a history."""
        return history_from_rows(self.rows)

    def completions(self) -> Completions | None:
        """Return the completions, or None when they were not kept."""
        return completions_from_rows(self.completion_rows) if self.completion_rows else None


def draw_setting(seed: int, illness: SymptomName | None = None, strength: float = 1.0) -> Setting:
    """Draw size, length, noise and starting point of a run, so that tests see many kinds.

    Args:
        seed: Any number; the same seed draws the same setting.
        illness: See :class:`Setting`.
        strength: See :class:`Setting`.
    """
    rng = np.random.default_rng(seed)
    steps = int(rng.choice([80, 150, 150, 300, 500]))
    length = float(rng.choice([8.0, 60.0, 120.0, 400.0]))
    return Setting(
        illness=illness,
        strength=strength,
        steps=steps,
        prompts=int(rng.choice([4, 8, 16, 32])),
        group=int(rng.choice([8, 8, 16])),
        log_every=int(rng.choice([1, 1, 2, 5])) if steps >= 150 else 1,
        evaluate_every=int(rng.choice([0, 10, 25])),
        held_out=int(rng.choice([100, 200, 500])),
        start=float(rng.uniform(0.1, 0.55)),
        hopeless=float(rng.choice([0.0, 0.1, 0.25])),
        rate=float(rng.uniform(0.6, 1.6)) * 150 / steps,
        noise=float(rng.choice([0.03, 0.06, 0.12])),
        onset=float(rng.uniform(0.3, 0.5)),
        length=length,
        cap=5 * length,
        keep=bool(rng.random() < 0.5) and steps <= 150,
    )


def simulate(setting: Setting, seed: int) -> Simulated:
    """Simulate one run.

    Args:
        setting: See :class:`Setting`.
        seed: Decides every draw.
    """
    world = _World.create(setting, np.random.default_rng(seed))
    pending: list[dict[str, float]] = []
    rows: list[dict[str, Any]] = []
    kept: list[dict[str, Any]] = []
    for step in range(1, setting.steps + 1):
        batch = _sample(world)
        pending.append(_metrics(world, batch, step))
        if setting.keep:
            kept += _completion_rows(world, batch, step)
        _update(world, batch, step)
        if step % setting.log_every == 0:
            rows.append({**_averaged(pending), "step": step})
            pending = []
        if setting.evaluate_every and step % setting.evaluate_every == 0:
            rows.append({"held_out/accuracy": _held_out(world), "step": step})
    experts = setting.illness == "moe-instability"
    facts = Facts(experts=experts, settings={"loss_type": "grpo", "max_completion_length": int(world.cap)})
    return Simulated(rows, kept, facts, _onset_step(setting))


SPOILED: Final[tuple[SymptomName, ...]] = (
    "entropy-collapse",
    "wrong-answers-lengthen",
    "reward-pays-length",
    "reward-hacking",
    "answer-collapse",
)
"""Illnesses under which hardly anything of the task is learnt."""
FROM_THE_START: Final = frozenset(
    {"reward-pays-length", "wrong-answers-lengthen", "truncation", "no-signal", "reward-hacking", "answer-collapse",
     "plateau", "entropy-collapse"}
)  # fmt: skip
"""Illnesses whose cause acts from the first step."""


def _onset_step(setting: Setting) -> int:
    return 1 if setting.illness in FROM_THE_START else max(1, int(setting.onset * setting.steps))


@dataclass
class _World:
    """The policy and its task, while a run is simulated. Logits are in nats."""

    setting: Setting
    rng: np.random.Generator
    right: NDArray[np.int64]
    own: Floats
    start: Floats
    held_right: NDArray[np.int64]
    held_own: Floats
    skill: float = 0.0
    bias: Floats = field(default_factory=lambda: np.zeros(ANSWERS))
    form: float = 1.5
    log_length: float = 0.0
    wrong_longer: float = 0.0
    exploit: float = -4.0
    sharp: float = 1.0
    style: float = 1.0
    cap: float = 512.0
    fault: float = 0.0

    @classmethod
    def create(cls, setting: Setting, rng: np.random.Generator) -> _World:
        count = max(200, 8 * setting.prompts)
        impossible = setting.illness == "no-signal"
        offset = math.log(setting.start / (1 - setting.start)) + math.log(ANSWERS - 1)
        offset -= 9.0 * setting.strength if impossible else 0.0

        def prompts(number: int) -> tuple[NDArray[np.int64], Floats]:
            right = rng.integers(0, ANSWERS, number)
            own = rng.normal(0, 1.0, (number, ANSWERS))
            own[np.arange(number), right] = offset + rng.normal(0, 1.3, number)
            own[np.arange(number), right] -= 12.0 * (rng.random(number) < setting.hopeless)
            if setting.illness == "entropy-collapse":
                # A wrong answer that is likelier than the right one, on most prompts: what there is to explore.
                wrong = (right + 1 + rng.integers(0, ANSWERS - 1, number)) % ANSWERS
                tempting = rng.random(number) < 0.7
                own[np.arange(number), wrong] += np.where(tempting, offset + 1.2, 0.0)
            return right, own

        right, own = prompts(count)
        held_right, held_own = prompts(setting.held_out)
        world = cls(setting, rng, right, own, own.copy(), held_right, held_own)
        world.log_length = math.log(setting.length)
        world.cap = setting.cap
        if setting.illness in SPOILED or setting.illness == "plateau":
            world.form = 4.0
        if setting.illness == "truncation":
            world.cap = setting.length * math.exp(TEMPERATURE_OF_LENGTH * (1.6 - 1.3 * setting.strength))
        return world

    def logits(self, own: Floats, right: NDArray[np.int64]) -> Floats:
        found = own + self.bias
        found[np.arange(right.size), right] += self.skill
        return found * self.sharp

    def probabilities(self, prompts: NDArray[np.intp]) -> Floats:
        return _softmax(self.logits(self.own[prompts], self.right[prompts]))

    def ill(self, name: SymptomName) -> float:
        """Return the strength of an illness, 0 when it is another."""
        return self.setting.strength if self.setting.illness == name else 0.0


@dataclass
class _Batch:
    prompts: NDArray[np.intp]
    chances: Floats
    answers: NDArray[np.intp]
    formed: NDArray[np.bool_]
    exploits: NDArray[np.bool_]
    lengths: Floats
    truncated: NDArray[np.bool_]
    right: NDArray[np.bool_]
    correct: Floats
    form: Floats
    rewards: Floats
    advantages: Floats


def _softmax(logits: Floats) -> Floats:
    exponent = np.exp(logits - logits.max(axis=-1, keepdims=True))
    found: Floats = exponent / exponent.sum(axis=-1, keepdims=True)
    return found


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, value))))


def _sample(world: _World) -> _Batch:
    setting, rng = world.setting, world.rng
    prompts = rng.choice(world.right.size, setting.prompts, replace=False)
    chances = world.probabilities(prompts)
    shape = (setting.prompts, setting.group)
    answers = np.minimum(
        (rng.random(shape)[..., None] > chances.cumsum(axis=1)[:, None, :]).sum(axis=2), ANSWERS - 1
    )
    exploits = rng.random(shape) < (_sigmoid(world.exploit) if world.ill("reward-hacking") else 0.0)
    formed = rng.random(shape) < _sigmoid(world.form)
    is_right = answers == world.right[prompts][:, None]
    logs = (
        world.log_length
        + TEMPERATURE_OF_LENGTH * rng.normal(size=shape)
        + np.where(is_right, 0, world.wrong_longer)
    )
    lengths = np.maximum(1.0, np.round(np.exp(logs)))
    truncated = lengths >= world.cap
    lengths = np.minimum(lengths, math.floor(world.cap))
    formed &= ~truncated
    right = is_right & formed & ~exploits
    correct, form, rewards = _rewards(world, right, formed, exploits, answers, lengths)
    spread = rewards.std(axis=1, ddof=1, keepdims=True)
    advantages = (rewards - rewards.mean(axis=1, keepdims=True)) / (spread + 1e-4)
    return _Batch(prompts, chances, answers, formed, exploits, lengths, truncated, right, correct, form, rewards,
                  advantages)  # fmt: skip


def _rewards(
    world: _World, right: NDArray[np.bool_], formed: NDArray[np.bool_], exploits: NDArray[np.bool_],
    answers: NDArray[np.intp], lengths: Floats,
) -> tuple[Floats, Floats, Floats]:  # fmt: skip
    correct = right.astype(float)
    correct = np.where(exploits, 1.0, correct)
    if strength := world.ill("answer-collapse"):
        correct = np.where((answers == 0) & formed, np.maximum(correct, 1.1 * strength), correct)
    if strength := world.ill("reward-pays-length"):
        correct = correct + strength * 0.5 * np.log(lengths / world.setting.length)
    form = formed.astype(float)
    return correct, form, correct + 0.2 * form


def _update(world: _World, batch: _Batch, step: int) -> None:
    setting = world.setting
    rate = 0.05 * setting.rate * min(1.0, step / max(1.0, _WARM_UP * setting.steps))
    rate *= 1 - 0.8 * step / setting.steps
    if strength := world.ill("plateau"):
        rate *= max(0.0, 1 - strength)
    onehot = np.zeros((*batch.answers.shape, ANSWERS))
    np.put_along_axis(onehot, batch.answers[..., None], 1.0, axis=2)
    usable = np.where(batch.exploits, 0.0, batch.advantages)
    gradient = (usable[..., None] * (onehot - batch.chances[:, None, :])).mean(axis=1)
    _move_answers(world, batch, gradient, rate)
    _move_form(world, batch, rate)
    _fall_ill(world, batch, step)


def _move_answers(world: _World, batch: _Batch, gradient: Floats, rate: float) -> None:
    spoiled = max(world.ill(name) for name in SPOILED)
    carried = 1 - 0.98 * spoiled
    world.own[batch.prompts] += 6 * rate * carried * gradient
    towards = float(gradient[np.arange(batch.prompts.size), world.right[batch.prompts]].mean())
    world.skill += 24 * rate * carried * towards
    world.bias += (8 if world.ill("answer-collapse") else 0.3) * rate * gradient.mean(axis=0) * 8
    world.style *= 1 - 0.02 * rate * 20


def _move_form(world: _World, batch: _Batch, rate: float) -> None:
    chance = _sigmoid(world.form)
    world.form += 8 * rate * float((batch.advantages * (batch.formed - chance)).mean())
    if world.ill("reward-hacking"):
        tried = _sigmoid(world.exploit)
        world.exploit += 60 * rate * float((batch.advantages * (batch.exploits - tried)).mean()) + 0.6 * rate
    if world.ill("reward-pays-length"):
        centred = np.log(batch.lengths) - world.log_length
        world.log_length += 1.2 * rate * float((batch.advantages * centred).mean()) / TEMPERATURE_OF_LENGTH


def _fall_ill(world: _World, batch: _Batch, step: int) -> None:
    """Let the causes act that are no reward."""
    setting, rng = world.setting, world.rng
    late = step >= _onset_step(setting)
    speed = 150 / setting.steps
    if strength := world.ill("wrong-answers-lengthen"):
        # Division by length spares long wrong answers: the push is the mean negative advantage.
        world.wrong_longer += 0.012 * strength * speed * float(np.maximum(-batch.advantages, 0).mean()) / 0.4
    if strength := world.ill("entropy-collapse"):
        # Updates that make likely tokens likelier and none that explore: the mode sharpens whatever it is.
        world.sharp *= 1 + 0.045 * strength * speed
        world.style *= 1 - 0.04 * strength * speed
    if late:
        _fall_ill_late(world, rng, speed)
    world.fault = (
        max(0.0, (step - _onset_step(setting)) / max(1.0, setting.steps - _onset_step(setting))) * late
    )


def _fall_ill_late(world: _World, rng: np.random.Generator, speed: float) -> None:
    if strength := world.ill("entropy-explosion"):
        world.sharp *= 1 - 0.05 * strength * speed
        world.style *= 1 + 0.02 * strength * speed
        world.form -= 0.05 * strength * speed
    if strength := world.ill("length-collapse"):
        world.log_length = max(math.log(2), world.log_length - 0.06 * strength * speed)
        world.form -= 0.12 * strength * speed
        world.sharp *= 1 + 0.01 * strength * speed
    if strength := world.ill("reward-crash"):
        world.skill -= 0.35 * strength * speed
        world.form -= 0.08 * strength * speed
    if strength := world.ill("moe-instability"):
        world.own += rng.normal(0, 0.06 * strength, world.own.shape)


def _held_out(world: _World) -> float:
    chances = _softmax(world.logits(world.held_own.copy(), world.held_right))
    success = chances[np.arange(world.held_right.size), world.held_right] * _sigmoid(world.form)
    if world.ill("truncation"):
        success = success * (1 - _cut_share(world))
    return float((world.rng.random(success.size) < success).mean())


def _cut_share(world: _World) -> float:
    z = (math.log(world.cap) - world.log_length) / TEMPERATURE_OF_LENGTH
    return 0.5 * math.erfc(z / math.sqrt(2))


def _metrics(world: _World, batch: _Batch, step: int) -> dict[str, float]:
    setting, rng = world.setting, world.rng
    whole = _softmax(world.logits(world.own.copy(), world.right))
    first = _softmax(world.start)
    entropy_of_answers = float(-(whole * np.log(whole + 1e-12)).sum(axis=1).mean()) / math.log(ANSWERS)
    entropy = max(1e-4, (0.8 * entropy_of_answers + 0.15 * world.style) * _scatter(rng, setting.noise))
    kl = float((whole * (np.log(whole + 1e-12) - np.log(first + 1e-12))).sum(axis=1).mean()) * 0.05
    informative = batch.rewards.max(axis=1) - batch.rewards.min(axis=1) > 1e-9
    gradient = float(np.sqrt((batch.advantages**2).mean())) * math.sqrt(max(entropy_of_answers, 0.01)) + 0.02
    found = {
        "loss": float(rng.normal(0, 1e-3)),
        "learning_rate": 1e-6 * (1 - 0.8 * step / setting.steps),
        "reward": float(batch.rewards.mean()),
        "reward_std": float(batch.rewards.std(axis=1, ddof=1).mean()),
        "rewards/correct/mean": float(batch.correct.mean()),
        "rewards/correct/std": float(batch.correct.std(ddof=1)),
        "rewards/format/mean": float(batch.form.mean()),
        "rewards/format/std": float(batch.form.std(ddof=1)),
        "frac_reward_zero_std": float((~informative).mean()),
        "completions/mean_length": float(batch.lengths.mean()),
        "completions/min_length": float(batch.lengths.min()),
        "completions/max_length": float(batch.lengths.max()),
        "completions/clipped_ratio": float(batch.truncated.mean()),
        "entropy": entropy,
        "kl": kl * _scatter(rng, setting.noise),
        "grad_norm": gradient * _scatter(rng, 0.25),
        "clip_ratio/region_mean": abs(float(rng.normal(0.002, 0.001))),
        "sampling/sampling_logp_difference/mean": 0.018 * _scatter(rng, 0.08),
        "sampling/importance_sampling_ratio/mean": float(rng.normal(1.0, 0.004)),
        "sampling/importance_sampling_ratio/max": 1.4 * _scatter(rng, 0.1),
    }
    return _broken(world, found, step)


def _broken(world: _World, found: dict[str, float], step: int) -> dict[str, float]:
    """Let the numerical faults show."""
    rng, fault = world.rng, world.fault
    if strength := world.ill("kl-blow-up"):
        found["kl"] += 0.02 * strength * (math.exp(7 * fault) - 1)
    if strength := world.ill("engine-mismatch"):
        found["sampling/sampling_logp_difference/mean"] += strength * 0.25 * min(1.0, 2 * fault)
        found["sampling/importance_sampling_ratio/max"] += 8 * strength * fault
    if strength := world.ill("moe-instability"):
        found["sampling/sampling_logp_difference/mean"] += strength * 0.2 * fault
        found["sampling/importance_sampling_ratio/max"] *= 1 + 12 * strength * fault
        found["aux_loss"] = (1 + 2 * strength * fault) * _scatter(rng, 0.03)
        found["grad_norm"] *= 1 + 6 * strength * fault
    if (strength := world.ill("gradient-spike")) and fault > 0 and rng.random() < 0.12:
        found["grad_norm"] *= 10 ** (1 + strength * float(rng.uniform(0.5, 1.2)))
        world.skill -= 0.3 * strength
    return found


def _scatter(rng: np.random.Generator, noise: float) -> float:
    return float(math.exp(rng.normal(0, noise)))


def _averaged(rows: list[dict[str, float]]) -> dict[str, float]:
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}


def _completion_rows(world: _World, batch: _Batch, step: int) -> list[dict[str, Any]]:
    found = []
    for p, prompt in enumerate(batch.prompts):
        for g in range(batch.answers.shape[1]):
            answer = f"{int(batch.answers[p, g])}"
            text = f"answer with code {answer}" if batch.exploits[p, g] else f"so it is {answer}"
            tagged = batch.formed[p, g] and not batch.exploits[p, g]
            outcome = "right" if batch.right[p, g] else "wrong" if batch.formed[p, g] else "ill-formed"
            found.append({
                "step": step, "group": p, "prompt": f"question {int(prompt)}",
                "completion": f"<answer>{answer}</answer>" if tagged else text,
                "correct": float(batch.correct[p, g]), "format": float(batch.form[p, g]),
                "reward": float(batch.rewards[p, g]), "advantage": float(batch.advantages[p, g]), "outcome": outcome,
                "extracted": "exploit" if batch.exploits[p, g] else answer, "tokens": float(batch.lengths[p, g]),
                "truncated": bool(batch.truncated[p, g]), "answer": f"{int(world.right[prompt])}",
            })  # fmt: skip
    return found


def healthier(setting: Setting) -> Setting:
    """Return the same setting without its illness."""
    return replace(setting, illness=None)
