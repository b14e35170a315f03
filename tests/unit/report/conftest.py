import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def made():
    spec = importlib.util.spec_from_file_location("report_made", Path(__file__).with_name("made.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
