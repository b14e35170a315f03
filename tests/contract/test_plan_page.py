"""The page on memory equals what the code says."""

from pathlib import Path

import pytest

from rlvr.plan.page import COMMAND, FILES, memory_page

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", FILES)
def test_the_stored_page_is_the_generated_one(name):
    assert (ROOT / name).read_text("utf-8") == memory_page(), f"run `{COMMAND}`"
