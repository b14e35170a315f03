import pytest

from rlvr.errors import UsageError
from rlvr.plan.devices import DEVICES, GIB, describe, detect, parse_device, read_smi_line


@pytest.mark.parametrize(
    ("text", "count", "name"),
    [
        ("1xH200", 1, "H200"),
        ("4xL4", 4, "L4"),
        ("dgx-spark", 1, "DGX-Spark"),
        ("DGX Spark", 1, "DGX-Spark"),
        ("2 x A100-80GB", 2, "A100-80GB"),
        ("h100", 1, "H100"),
        ("2x48GB", 2, "48GB"),
        ("NVIDIA L40S", 1, "L40S"),
    ],
)
def test_names(text, count, name):
    devices = parse_device(text)
    assert (len(devices), devices[0].name) == (count, name)


@pytest.mark.parametrize("text", ["", "H900", "0xH100", "2000xH100", "2xfoo", "1GB", "x"])
def test_unknown_names_list_the_known(text):
    with pytest.raises(UsageError, match="H200"):
        parse_device(text)


def test_size_is_less_than_on_the_box():
    assert parse_device("24GB")[0].memory_bytes < 24 * GIB


@pytest.mark.parametrize(
    ("line", "name", "gib", "bf16"),
    [
        ("NVIDIA H200, 143771, 9.0", "H200", 140, True),
        ("Tesla T4, 15360, 7.5", "T4", 15, False),
        ("NVIDIA A100-SXM4-40GB, 40960, 8.0", "A100-40GB", 40, True),
        ("NVIDIA GeForce RTX 4090, 24564, 8.9", "RTX4090", 24, True),
        ("NVIDIA Novel 9, 99999, 12.0", "NVIDIA Novel 9", 98, True),
    ],
)
def test_lines_of_nvidia_smi(line, name, gib, bf16):
    device = read_smi_line(line)
    assert device is not None
    assert (device.name, round(device.memory_bytes / GIB), device.bf16) == (name, gib, bf16)


def test_unified_memory_reports_no_size():
    device = read_smi_line("NVIDIA GB10, [N/A], 12.1")
    assert device is not None and device.unified and device.memory_bytes > 0


@pytest.mark.parametrize("line", ["", "garbage", "NVIDIA X, [N/A], 9.0"])
def test_other_lines_are_passed_over(line):
    assert read_smi_line(line) is None


def test_detect_finds_something_with_memory():
    devices = detect()
    assert devices and devices[0].memory_bytes > 0 and describe(devices)


def test_only_old_cards_lack_bf16():
    assert {device.name for device in DEVICES.values() if not device.bf16} == {"T4", "V100-16GB", "V100-32GB"}
