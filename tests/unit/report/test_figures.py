import math
import xml.etree.ElementTree as xml

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvr.report.figures import Band, Interval, Series, interval_chart, line_chart, short

NAMES = st.text(max_size=8).filter(lambda text: all(c.isprintable() for c in text))
VALUES = st.floats(-1e9, 1e9) | st.sampled_from([math.nan, math.inf, 0.0, 1e-12])


@settings(deadline=None)
@given(st.lists(st.tuples(NAMES, st.lists(st.tuples(st.integers(0, 5000), VALUES), max_size=90)), max_size=3))
def test_any_series_draws_well_formed_and_inside_its_frame(lines):
    drawing = line_chart(
        [Series(name, sorted(points, key=lambda one: one[0])) for name, points in lines], title="t"
    )
    if not drawing:
        assert all(not math.isfinite(y) for _, points in lines for _, y in points)
        return
    root = xml.fromstring(str(drawing))
    width, height = (float(part) for part in root.get("viewBox").split()[2:])
    for path in root.iter("{http://www.w3.org/2000/svg}path"):
        for place in path.get("d")[1:].split("L"):
            x, y = (float(part) for part in place.split(","))
            assert -0.1 <= x <= width + 0.1
            assert -0.1 <= y <= height + 0.1


def test_shares_keep_the_whole_scale():
    low, high = 100, 20
    root = xml.fromstring(str(line_chart([Series("a", [(1, 0.0), (2, 1.0)])], title="t", percent=True)))
    labels = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert labels[:3] == ["0%", "50%", "100%"]
    assert low > high


def test_long_lines_are_smoothed_with_the_raw_points_behind():
    drawing = str(line_chart([Series("a", [(step, step % 2) for step in range(100)])], title="t"))
    assert 'class="line faint"' in drawing


def test_bands_outside_the_log_are_clamped():
    drawing = line_chart(
        [Series("a", [(10, 1.0), (20, 2.0)])], title="t", bands=[Band(0, None, "x<y", "critical")]
    )
    assert "x&lt;y" in drawing
    xml.fromstring(str(drawing))


def test_intervals_say_their_numbers_to_those_who_cannot_see():
    root = xml.fromstring(str(interval_chart([Interval("after", 0.5, 0.4, 0.6)], title="Accuracy")))
    assert root.get("aria-label") == "Accuracy: after 50.0% [40.0%, 60.0%]"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1200, "1200"), (12000, "12k"), (0.00005, "5e-05"), (2.5e6, "2.5M"), (math.nan, "–")],
)
def test_short_numbers(value, text):
    assert short(value) == text
