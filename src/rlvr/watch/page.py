"""The findings as one self-contained HTML page: no script, no font, no request; light and dark."""

from __future__ import annotations

from html import escape
from typing import Final

from rlvr.records.watch import Finding, Findings, Proof
from rlvr.watch.figures import curves, figure, marks
from rlvr.watch.history import History

_STYLE: Final = """
:root{color-scheme:light dark;--ink:#1c2024;--soft:#5b6570;--line:#d5dae0;--paper:#fff;--card:#f6f7f9;--blue:#1f6fb2;
--information:#4b7bb5;--warning:#b26a00;--critical:#b3261e}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ec;--soft:#9aa4ae;--line:#3a424b;--paper:#14181c;--card:#1d2228;
--blue:#6cb2f0;--information:#7fa8dc;--warning:#e0a040;--critical:#f07b72}}
body{margin:2rem auto;max-width:66rem;padding:0 1rem;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}.soft{color:var(--soft)}
article{background:var(--card);border-left:5px solid var(--line);border-radius:4px;padding:.7rem 1rem;margin:.8rem 0}
article.information{border-color:var(--information)}article.warning{border-color:var(--warning)}
article.critical{border-color:var(--critical)}article h3{margin:0;font-size:1.05rem}
.tag{font-size:.8rem;border-radius:3px;padding:0 .4rem;color:var(--paper);background:var(--soft)}
.tag.information{background:var(--information)}.tag.warning{background:var(--warning)}.tag.critical{background:var(--critical)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem .8rem;margin:.4rem 0}
dt{color:var(--soft)}dd{margin:0}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(20rem,1fr));gap:1rem}figure{margin:0}
figcaption{font-size:.85rem;color:var(--soft)}svg{width:100%;height:auto;background:var(--card);border-radius:4px}
.axis{fill:none;stroke:var(--line)}.raw{fill:none;stroke:var(--blue);opacity:.35}
.line{fill:none;stroke:var(--blue);stroke-width:2}.tick{font-size:10px;fill:var(--soft)}
.band{opacity:.16}.band.information{fill:var(--information)}.band.warning{fill:var(--warning)}
.band.critical{fill:var(--critical)}
pre{white-space:pre-wrap;overflow-wrap:anywhere;
background:var(--paper);border:1px solid var(--line);border-radius:4px;
padding:.5rem;max-height:16rem;overflow:auto}
table{border-collapse:collapse}td,th{text-align:left;padding:.2rem .8rem .2rem 0;vertical-align:top;
border-bottom:1px solid var(--line)}
"""


def render_page(findings: Findings, history: History) -> str:
    """Return the page.

    Args:
        findings: What was found.
        history: The run's numbers, for the curves.
    """
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        f"<title>watch: {escape(findings.source)}</title><style>{_STYLE}</style>",
        _head(findings),
        _section("Symptoms", "".join(_finding(f) for f in findings.symptoms) or "<p>None.</p>"),
        _figures(findings, history),
        _section(
            "Questions this run may raise", "".join(_answer(a.question, a.answer) for a in findings.answers)
        ),
        _rows(
            "Judged and not found", [(c.name, c.why, _smallest(c.smallest_effect)) for c in findings.clear]
        ),
        _rows(
            "Not judged",
            [(n.name, f"needs {n.needs}", _smallest(n.smallest_effect)) for n in findings.not_judged],
        ),
        _section("How the log was read", "".join(f"<p>{escape(r)}</p>" for r in _reading(findings))),
        "</html>",
    ]
    return "\n".join(part for part in parts if part)


def _head(findings: Findings) -> str:
    counts = {
        level: sum(f.level == level for f in findings.symptoms)
        for level in ("critical", "warning", "information")
    }
    said = ", ".join(f"{count} {level}" for level, count in counts.items() if count) or "no symptom"
    texts = f", {findings.completions:,} completions" if findings.completions else ""
    return (
        f"<h1>{escape(said)}</h1><p class=soft>{escape(findings.source)} · {escape(findings.format)} · "
        f"{findings.rows:,} "
        f"rows, steps {findings.first_step:,} to {findings.last_step:,}{texts}</p>"
    )


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>" if body else ""


def _finding(finding: Finding) -> str:
    since = "the whole run" if finding.since_step is None else f"step {finding.since_step:,}"
    until = f" to {finding.until_step:,}" if finding.until_step is not None else " on"
    facts = [
        ("evidence", finding.evidence),
        ("do", finding.action),
        ("refuted by", finding.refuted_by),
        ("threshold", finding.source),
        ("confidence", finding.confidence),
    ]
    listed = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in facts if value)
    return (
        f'<article class="{finding.level}"><h3>{finding.name} <span class="tag {finding.level}">{finding.level}'
        "</span> "
        f"<span class=soft>{since}{until if finding.since_step is not None else ''}</span></h3><dl>{listed}</dl>"
        f"{''.join(_proof(p) for p in finding.proofs)}</article>"
    )


def _proof(proof: Proof) -> str:
    return (
        f"<details><summary>step {proof.step}: {escape(proof.note)}</summary>"
        f"<pre>{escape(proof.prompt)}</pre><pre>{escape(proof.completion)}</pre></details>"
    )


def _figures(findings: Findings, history: History) -> str:
    drawn = [figure(name, steps, values, marks(findings, name)) for name, steps, values in curves(history)]
    return _section("Curves", f"<div class=figures>{''.join(drawn)}</div>") if drawn else ""


def _answer(question: str, answer: str) -> str:
    return f"<p><b>{escape(question)}</b><br>{escape(answer)}</p>"


def _rows(title: str, rows: list[tuple[str, str, str]]) -> str:
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return _section(title, f"<table>{body}</table>") if rows else ""


def _smallest(effect: str) -> str:
    return f"could have seen {effect}" if effect else ""


def _reading(findings: Findings) -> list[str]:
    names = ", ".join(f"{metric} from {name}" for metric, name in sorted(findings.columns.items()))
    unread = ", ".join(findings.unmapped[:30])
    return [*findings.remarks, *([names] if names else []), *([f"not read: {unread}"] if unread else [])]
