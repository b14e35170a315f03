"""What to do after each verdict, in the words of a workspace and of a file without one."""

from __future__ import annotations

from dataclasses import dataclass

SFT = "lora-qlora-recipes (SFT)"


@dataclass(frozen=True, slots=True)
class Steps:
    """Next steps.

    Attributes:
        ready: The sweet spot.
        prompts: More distinct prompts are needed.
        rollouts: More prompts with several completions are needed.
        longer: The cap ends completions.
        grader: The reward does not pay the reference.
        verifier: The reward cannot judge.
        zeros: Ten zeros are to be read.
        harder: Nearly all is right.
        between: Prompts always or never succeed.
        rare: Success is rare.
        cooler: The training temperature is too high.
        filter: Success lies where more samples of all prompts help little.
        form: Nearly all completions lack one form.
        teach: There is no support, and ten zeros were read.
    """

    ready: str
    prompts: str
    rollouts: str
    longer: str
    grader: str
    verifier: str
    zeros: str
    harder: str
    between: str
    rare: str
    cooler: str
    filter: str
    form: str
    teach: str = f"teach the task first: {SFT}"


WORKSPACE = Steps(
    ready="`rlvr inspect`",
    prompts="raise gates.probe.prompts (and add prompts where there are too few), then `rlvr probe`",
    rollouts="raise gates.probe.rollout_prompts, then `rlvr probe`",
    longer="raise sampling.max_completion_length, then `rlvr probe`",
    grader="`rlvr rewards try` shows how the reward reads an answer; mend it, then `rlvr probe --rescore`",
    verifier="mend what keeps the reward from judging, then `rlvr probe --rescore`",
    zeros="`rlvr inspect` opens on the zeros; then `rlvr probe --rescore`",
    harder="take harder prompts (`rlvr probe --filter` drops the solved ones), or train on another task",
    between="drop the solved prompts (`rlvr probe --filter`) and teach the others by SFT, or take prompts in between",
    rare="`rlvr probe --filter` keeps the prompts that can teach; or easier prompts, larger groups, or SFT first",
    cooler="lower sampling.temperature, then `rlvr probe`",
    filter="filter prompts (`rlvr probe --filter`) rather than sampling on",
    form="ask for the form in the prompt (sampling.system_prompt), then `rlvr probe`; or, where the answer has "
    "another form, say so in the reward's arguments (for exact, `arguments: {tag: ''}` reads the whole "
    "text), then `rlvr probe --rescore`",
)
FILE = Steps(
    ready="`rlvr init` makes a workspace of this task; there `rlvr inspect` has a person read 50 completions",
    prompts="sample more distinct prompts",
    rollouts="sample 8 completions of more prompts at the training temperature",
    longer="raise the length cap and sample again",
    grader="read paid and unpaid completions, mend the reward, and score again (--reward)",
    verifier="mend what keeps the reward from judging, and score again",
    zeros="read the ten zeros shown here first; only if they are truly wrong, teach the task by SFT",
    harder="take harder prompts, or train on another task",
    between="drop the solved prompts and teach the others by SFT, or take prompts in between",
    rare="keep the prompts that succeed sometimes; or take easier prompts, larger groups, or SFT first",
    cooler="sample at a lower temperature",
    filter="keep the prompts that succeed sometimes rather than sampling on",
    form="ask for the form in the prompt and sample again; or, where the answer has another form, "
    "say so in the reward's arguments (`--reward exact --argument tag=` reads the whole text)",
)
