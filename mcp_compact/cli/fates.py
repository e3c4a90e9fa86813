"""How what became of a rule is shown: a mark, a colour, and what it means."""

from __future__ import annotations

from mcp_compact.compaction.rules_matrix import BACK, KEPT, LOST, NOT_YET, REWORDED

MARKS = {KEPT: "●", REWORDED: "◐", BACK: "▲", LOST: "✗", NOT_YET: "·"}
ASCII_MARKS = {KEPT: "K", REWORDED: "w", BACK: "+", LOST: "x", NOT_YET: "."}
COLOURS = {KEPT: "32", REWORDED: "33", BACK: "36", LOST: "31", NOT_YET: "90"}
MEANINGS = {
    KEPT: "kept by the client word for word",
    REWORDED: "kept by the client in other words",
    BACK: "put back by mcp-compact",
    LOST: "lost",
    NOT_YET: "did not hold then",
}
