"""A reward of your own: any function with this signature, one score a completion."""


def correct(prompts, completions, answer, **kwargs):
    """Pay a completion whose last line is the reference, whatever stands above it."""
    return [float(last_line(completion) == reference) for completion, reference in zip(completions, answer)]


def last_line(completion):
    """Return the last line of a completion; TRL passes chat completions as message lists."""
    text = completion if isinstance(completion, str) else completion[-1]["content"]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
