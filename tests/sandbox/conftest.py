"""One pool for the tests that only need to run jobs."""

from collections.abc import Iterator

import pytest

from rlvr.sandbox import Pool


@pytest.fixture(scope="session")
def pool() -> Iterator[Pool]:
    with Pool(2) as made:
        yield made
