"""What the zoo holds: each reward with its role, its rows, and the categories that name its defect."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent


class Specimen(NamedTuple):
    """One reward of the zoo.

    Attributes:
        module: File without ``.py``.
        function: Name in that file.
        role: What it is for.
        rows: Name of its data set.
        categories: Categories that name the planted defect, any of which counts; empty for a sound reward.
    """

    module: str
    function: str
    role: str
    rows: str
    categories: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether no defect was planted."""
        return not self.categories

    @property
    def path(self) -> Path:
        """Its file."""
        return FOLDER / f"{self.module}.py"


def _rows(module: str, table: str) -> list[Specimen]:
    found = []
    for line in table.strip().splitlines():
        function, role, rows, *categories = line.split()
        found.append(Specimen(module, function, role, rows, tuple(categories)))
    return found


ZOO: list[Specimen] = [
    *_rows(
        "unsound_answers",
        """
        contains_gold correctness sums answer_enumeration
        contains_gold correctness sums_chat answer_enumeration
        contains_city correctness capitals negation
        contains_city correctness passages prompt_echo
        completion_in_gold correctness capitals empty_completion
        any_number correctness signed answer_enumeration
        any_box correctness signed multiple_answer_tags
        starts_with correctness sums wrong_accepted near_miss
        loose_tolerance correctness decimals near_miss
        rounded correctness decimals near_miss
        sign_lost correctness signed wrong_accepted near_miss
        digits_only correctness sums wrong_accepted
        evaluated correctness signed code_injection
        letter_anywhere correctness choices answer_enumeration
        first_letter correctness choices answer_named_in_prose
        sentiment_mentioned correctness feelings answer_enumeration negation
        ascii_folded correctness capitals unicode_trick
        compatibility_digits correctness sums unicode_trick
        similar_enough correctness capitals near_miss
        keywords_found correctness key_points keyword_stuffing
        self_praise correctness sums keyword_stuffing
        thinking_counts correctness sums_chat multiple_answer_tags
        latex_as_text correctness fractions equivalent_forms
        separators_break correctness word_problems gold_full_score
        type_confusion correctness signed gold_full_score
        no_newline correctness sums_chat equivalent_forms gold_full_score
        empty_matches correctness sums empty_completion
        reference_unread correctness sums wrong_accepted
        one_for_all correctness sums batch_order batch_composition
        wrong_column correctness sums missing_column
        """,
    ),
    *_rows(
        "unsound_contract",
        """
        jitter correctness sums deterministic
        hash_jitter correctness sums deterministic
        clock correctness sums deterministic
        normalised correctness sums batch_composition
        best_of_batch correctness sums batch_composition
        cached correctness verdicts state_leak
        curriculum correctness sums state_leak
        running_mean correctness sums state_leak
        mutates correctness sums_chat no_mutation
        skips correctness sums right_length
        scalar correctness sums right_length
        raises correctness sums no_exception
        raises_on_words correctness signed no_exception
        isdigit_trap correctness sums no_exception
        not_finite correctness decimals finite
        unbounded correctness signed range
        blow_up correctness sums fast_enough
        closure correctness sums pickleable
        needs_solution correctness sums missing_column
        by_position correctness sums batch_order
        """,
    ),
    *_rows(
        "unsound_forms",
        """
        hollow_tags format plain format_without_content
        one_line_format format plain equivalent_forms gold_full_score
        any_mark format plain format_not_required
        opening_tags format plain format_not_required
        uncapped_steps format plain keyword_stuffing range
        step_words format plain keyword_stuffing
        xml_count format plain keyword_stuffing range format_without_content
        parses_as_json format people json_tricks
        keys_only correctness people wrong_accepted
        any_object correctness people json_tricks
        json_text_compare correctness people equivalent_forms
        message_count length plain length_insensitive
        longer_is_better length plain giant_output
        cosine_unclamped length plain giant_output
        form_pays_alone composite sums_chat format_without_content
        form_costs composite sums monotone_format
        length_beats_truth composite sums monotone_correct
        falls_back composite sums format_not_required
        """,
    ),
    *_rows(
        "unsound_code",
        """
        exit_code correctness programs sys_exit
        prints_passed correctness programs verdict_forgery
        execs_here correctness programs eq_override
        swallows_errors correctness programs raise_skip
        compiles correctness programs hollow_program
        equal_objects correctness cases eq_override verdict_forgery
        first_case_only correctness cases wrong_accepted
        output_contains correctness input_output wrong_accepted answer_enumeration
        shared_space correctness programs state_leak
        no_clock correctness programs fast_enough
        """,
    ),
    *_rows(
        "sound",
        """
        tagged_exact correctness sums
        tagged_exact correctness passages
        boxed_number correctness signed
        hash_marks correctness word_problems
        with_tolerance correctness decimals
        partial_credit correctness sums
        last_letter correctness choices
        sentiment_label correctness feelings
        normalised_city correctness capitals
        fraction_value correctness fractions
        think_then_answer format plain
        tag_counts format plain
        valid_record format people
        extracted_record correctness people
        overlong length plain
        near_target_length length plain
        no_repetition format plain
        answer_and_form composite sums_chat
        right_then_short composite sums
        awaited correctness sums
        compute_score correctness sums
        exact_object correctness sums_chat
        yes_or_no correctness verdicts
        runs_cases correctness cases
        runs_programs correctness input_output
        countdown_equation correctness signed
        """,
    ),
]
"""Every specimen, unsound ones first."""
