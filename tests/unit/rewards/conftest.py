"""Property tests here are the same on every run, and a busy machine does not fail them."""

from hypothesis import settings

settings.register_profile("rewards", deadline=None, derandomize=True)
settings.register_profile("rewards-search", deadline=None, max_examples=2000)
settings.load_profile("rewards")
