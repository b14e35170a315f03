import pytest

from rlvr.errors import DataError
from rlvr.inspection.folder import InspectionFolder
from rlvr.inspection.simulated import simulated_reader
from rlvr.records.base import Fingerprints
from rlvr.records.inspection import SIMULATED_READER


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


def test_labels_of_a_program_stay_marked_when_a_person_reads_on(made, tmp_path):
    from rlvr.inspection.session import Pool, Sitting

    samples, scores = made.pool()
    folder = InspectionFolder.of_gates(tmp_path)
    simulated_reader(folder, samples, scores, Fingerprints(reward="r1"), lambda sample: sample.row < 60)
    sitting = Sitting(folder, Pool(samples, scores, Fingerprints(reward="r1")), "ada")
    assert sitting.close().simulated
