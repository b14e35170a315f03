"""Mathematical answers: find one in a completion, read it, and say whether two are the same.

The way of an answer: :mod:`extract` finds its text, :mod:`surface` writes that text in one canonical form,
:mod:`answers` reads the form as a value, a sequence, a set, a relation or a text (with :mod:`syntax` for the
expressions inside), and :mod:`compare` decides. All of that is exact arithmetic without sympy; what it cannot
read goes to :mod:`symbolic`, which runs in a killable child of :mod:`pool`.
"""
