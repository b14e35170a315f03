import pytest

from rlvr.errors import DataError
from rlvr.inspection.folder import InspectionFolder
from rlvr.inspection.simulated import SIMULATED_READER, simulated_reader
from rlvr.records.base import Fingerprints


def test_it_says_what_it_is(made, tmp_path):
    samples, scores = made.pool()
    folder = InspectionFolder.of_gates(tmp_path)
    found = simulated_reader(
        folder, samples, scores, Fingerprints(reward="r1"), lambda sample: sample.row < 60, rows=["x"]
    )
    assert found.simulated
    assert found.passed
    assert found.reader == SIMULATED_READER
    assert found.read == 60
    assert folder.attestation() == found
    assert found.made_from.labels == folder.labels_fingerprint()


def test_its_judge_can_disagree(made, tmp_path):
    samples, scores = made.pool()
    folder = InspectionFolder.of_gates(tmp_path)
    found = simulated_reader(folder, samples, scores, Fingerprints(), lambda sample: True)
    assert not found.passed
    assert len(found.open_disagreements) == 30


def test_too_few_samples(made, tmp_path):
    with pytest.raises(DataError):
        simulated_reader(
            InspectionFolder.of_gates(tmp_path), *made.pool(10, 10), Fingerprints(), lambda sample: True
        )
