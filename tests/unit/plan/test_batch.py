import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr.errors import ConfigError
from rlvr.plan.batch import Batch, check_batch, nearest

small = st.integers(1, 24)


def test_sizes():
    batch = Batch(micro=8, accumulation=4, processes=3, steps_per_generation=4, generations=8)
    assert (batch.generation, batch.step, batch.prompts_per_generation) == (96, 96, 12)
    assert batch.optimizer_steps(1000) == 83


def test_several_steps_feed_on_one_generation():
    batch = Batch(micro=8, accumulation=4, processes=1, steps_per_generation=16, generations=8)
    assert batch.optimizer_steps(160) == 40


def test_message_names_the_users_fields_and_values_that_work():
    with pytest.raises(ConfigError) as caught:
        check_batch(Batch(5, 3, 1, 3, 8), 1000)
    error = caught.value
    assert error.where == "recipe.overrides.per_device_train_batch_size"
    assert "5 x 1 device(s) x steps_per_generation 3 = 15" in error.found
    assert "per_device_train_batch_size: 8" in error.fix
    assert "gradient_accumulation_steps: 8" in error.fix
    assert "num_generations: 15" in error.fix


@given(small, small, st.integers(1, 8), st.integers(8, 32))
def test_named_values_do_work(micro, accumulation, processes, generations):
    batch = Batch(micro, accumulation, processes, accumulation, generations)
    if batch.generation % generations == 0:
        check_batch(batch, 10**6)
        return
    for choice in nearest(batch).removeprefix("set one of ").split("; "):
        name, values = choice.split(": ")
        for value in (int(text) for text in values.split(" or ")):
            changed = {
                "per_device_train_batch_size": Batch(
                    value, accumulation, processes, accumulation, generations
                ),
                "gradient_accumulation_steps": Batch(micro, value, processes, value, generations),
                "num_generations": Batch(micro, accumulation, processes, accumulation, value),
            }[name]
            check_batch(changed, 10**6)


def test_too_few_prompts_train_nothing():
    with pytest.raises(ConfigError, match="nothing would be trained"):
        check_batch(Batch(8, 4, 1, 4, 8), prompts=3)


@pytest.mark.parametrize("field", ["micro", "accumulation", "generations"])
def test_zero_is_refused(field):
    values = {"micro": 8, "accumulation": 4, "generations": 8} | {field: 0}
    with pytest.raises(ConfigError):
        check_batch(Batch(processes=1, steps_per_generation=4, **values), 100)
