"""The report as one HTML file: nothing is loaded from elsewhere, nothing in it runs, every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from mcp_compact.cli.fates import MARKS, MEANINGS
from mcp_compact.cli.text import iso_date, share
from mcp_compact.compaction.rules_matrix import BACK, FATES, KEPT, REWORDED, Row
from mcp_compact.messages.codec import well_formed
from mcp_compact.messages.masking import masked
from mcp_compact.messages.rule_grammar import RULE
from mcp_compact.service.compaction_report import CompactionReport

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
STYLE = """
:root{--ink:#1c2330;--soft:#5b6575;--line:#d9dee6;--paper:#fff;
--kept:#1f7a4d;--back:#1663a8;--lost:#b3261e;--half:#8a6100}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ef;--soft:#9aa5b5;--line:#333b47;--paper:#14181f;
--kept:#5fc48f;--back:#6ab0f3;--lost:#f28b82;--half:#e0b54a}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);
max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}
h2{font-size:1.15rem;margin-top:2rem}
p.about{color:var(--soft)}
table{border-collapse:collapse;width:100%}
th,td{border-bottom:1px solid var(--line);padding:.35rem .5rem;text-align:left;vertical-align:top}
td.m,th.m{text-align:center}
.bar{display:flex;height:.9rem;background:var(--line);border-radius:.2rem;overflow:hidden}
.bar i{display:block;background:var(--kept)}
.bar b{display:block;background:var(--back)}
.kept{color:var(--kept)}
.put_back{color:var(--back)}
.lost{color:var(--lost)}
.reworded{color:var(--half)}
.none{color:var(--soft)}
code{overflow-wrap:anywhere}
ul.names{columns:2;padding-left:1.2rem}
pre{white-space:pre-wrap;overflow-wrap:anywhere;border:1px solid var(--line);border-radius:.3rem;padding:1rem;
font-size:.85rem}
"""


def page(report: CompactionReport) -> str:
    """The whole page."""
    parts = [
        f"<h1>What the compaction lost</h1><p class=about>{_about(report)}</p>",
        _section("What the client's summary held, and with what is given back", _bars(report)),
        _section("Your rules", _matrix(report.matrix, report.number)),
        _section("Needed right after, and only in what is given back", _names(report.needed.given_back)),
        _section("Needed right after, and in neither (search finds them)", _names(report.needed.lost)),
        _section("Read again right after, though it was known", _names(report.read_again)),
        _section("Given back after this compaction", _lines([report.injection])),
        _section("Told to the client's summary before", _lines(report.must_keep)),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="referrer" content="no-referrer">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Compaction of {_text(report.session_id)}</title><style>{STYLE}</style></head><body>"
        + "\n".join(part for part in parts if part)
        + "</body></html>\n"
    )


def _text(text: str) -> str:
    """A text as it may stand anywhere in the page: masked, without lone surrogates and controls, escaped."""
    own = masked(well_formed(text))
    return escape("".join(char for char in own if char in "\n\t" or ord(char) >= ord(" ")), quote=True)


def _about(report: CompactionReport) -> str:
    when = iso_date(report.at_ms) if report.at_ms is not None else "at an unknown time"
    size = f"{report.tokens_before:,} tokens" if report.tokens_before else "the context"
    return _text(
        f"Session {report.session_id}, compaction {report.number} of {report.of}, {when}, trigger "
        f"{report.trigger or 'unknown'}: {size} became a summary of {report.summary_chars:,} characters. mcp-compact "
        f"gives back {report.injection_chars:,} characters, word for word from the session."
    )


def _section(title: str, body: str) -> str:
    return f"<h2>{_text(title)}</h2>{body}" if body else ""


def _bars(report: CompactionReport) -> str:
    kept = sum(fate in (KEPT, REWORDED) for _, fate in report.rules)
    back = kept + sum(fate == BACK for _, fate in report.rules)
    rows = (
        ("your rules", len(report.rules), kept, back),
        ("your messages, word for word", report.words[0], report.words[1], report.words_with_ours),
        ("names that the next messages needed", report.needed.total, report.needed.in_summary, report.needed.with_ours),
    )
    return "<table>" + "".join(_bar(*row) for row in rows) + "</table>"


def _bar(what: str, total: int, held: int, ours: int) -> str:
    if not total:
        return f"<tr><th>{_text(what)}</th><td colspan=2 class=none>none</td></tr>"
    one, two = 100 * held / total, 100 * max(ours - held, 0) / total
    return (
        f'<tr><th>{_text(what)}</th><td style="width:40%"><div class=bar><i style="width:{one:.1f}%"></i>'
        f'<b style="width:{two:.1f}%"></b></div></td><td>{held} of {total} ({share(held, total)}), '
        f"with ours {ours} ({share(ours, total)})</td></tr>"
    )


def _matrix(rows: Sequence[Row], columns: int) -> str:
    if not rows:
        return "<p class=none>None were found in this session.</p>"
    head = "".join(f"<th class=m>{number}</th>" for number in range(1, columns + 1))
    body = "".join(
        f"<tr><td class=m>{row.rule.turn or '-'}</td><td>{_kind(row)}{_text(row.rule.text)}</td>"
        + "".join(
            f'<td class="m {fate or "none"}" title="{_text(MEANINGS[fate])}">{MARKS[fate]}</td>' for fate in row.fates
        )
        + "</tr>"
        for row in rows
    )
    legend = " &nbsp; ".join(f'<span class="{fate}">{MARKS[fate]}</span> {_text(MEANINGS[fate])}' for fate in FATES)
    return f"<table><tr><th class=m>turn</th><th>rule</th>{head}</tr>{body}</table><p class=about>{legend}</p>"


def _kind(row: Row) -> str:
    return "" if row.rule.kind == RULE else f"<span class=none>{_text(row.rule.kind)}</span> "


def _names(names: Iterable[str]) -> str:
    made = "".join(f"<li><code>{_text(name)}</code></li>" for name in names)
    return f"<ul class=names>{made}</ul>" if made else ""


def _lines(lines: Iterable[str]) -> str:
    text = "\n".join(lines)
    return f"<pre>{_text(text)}</pre>" if text else ""
