"""Which rules a later sentence of the user ends: those that are about the same.

Losing a rule is worse than keeping one too many, so what is not clear ends nothing; the sentence itself then
stands beside the rule, and the reader sees which came later.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from mcp_compact.messages.lazily import pattern

_EVERYTHING = pattern(
    r"\b(?:all|any|every|everything)\b.{0,24}\b(?:rules?|instructions?|constraints?|restrictions?|said)\b|"
    r"(?:所有|全部|之前的?|一切).{0,6}(?:规则|要求|限制|约束)(?:都)?.{0,4}(?:取消|作废|忘|不算|失效)|(?:取消|忘(?:掉|记)|撤销|作废).{0,4}(?:所有|全部|一切)",
    re.IGNORECASE,
)
_DENSE = pattern("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]+")
_WORD = pattern(r"[^\W_]+")
_COMMON = frozenset(
    "a an the to of in on for and or is are be it this that these those with as at by from we you i he they my your our me us if "
    "so not no do don t s does did can could will would may must should shall might now again any more anymore longer need have has "
    "had to please forget ignore disregard drop cancel lift remove revoke rule rules instruction instructions constraint restriction "
    "ban earlier previous what said about never always only just use using allowed ok okay fine free feel permitted without before "
    "after every each all until unless rather instead than prefer avoid keep make sure ensure from going forward applies apply hold "
    "who when which there here up out off also too then ever want like let lets get go way thing things stuff".split()
) | frozenset(
    "der die das den dem des ein eine einen und oder nicht kein keine keinen mehr nie niemals immer nur jetzt wieder darfst du bitte "
    "regel vergiss mit über ist sind erlaubt le la les un une des et ou ne pas jamais toujours tu peux maintenant règle oublie sur el "
    "los las una y o no nunca siempre ya puedes ahora regla olvida sobre de que в на и не с со про об правило забудь теперь можно "
    "больше никогда всегда usar uses usa use utiliser utilise verwende verwenden benutze использовать используй".split()
)
_COMMON_DENSE = pattern(
    "不用|不必|不需要|无需|统一|使用|再|可以|现在|以后|了|忘掉|忘记|取消|关于|规则|要求|限制|约束|的|不要|禁止|必须|不能|请|都|也|要|一律|永远|只能|"
    "もう|なくて|いい|です|ください|ルール|忘れて|は|を|に|が|の|て|も|해도|돼|이제|규칙|잊어"
)
_ENOUGH = 0.6
_INSTEAD = pattern(
    r"\b(?:instead of|rather than|in place of|statt|anstatt|anstelle von|au lieu d[e']|en (?:lugar|vez) de|em vez de|invece d[i']|вместо)"
    r"\s*(.{2,160}?)(?:[;!]|\.(?:\s|$)|$)|(?:而不是|代替|替代)(.{1,60}?)(?:[。；，!]|$)",
    re.IGNORECASE,
)
_FORBIDS = pattern(
    r"(?:please )?(?:never|don'?t|do not|no|avoid|stop|niemals?|nie|kein\w*|ne|n'|jamais|nunca|não|non|никогда|не)\b|不要|禁止|别|不得|不能",
    re.IGNORECASE,
)
_FIGURE = pattern(
    r"(\b(?:is|are|to|at|under|below|above|over|than|most|least|exceed|within|until|before|by|on|ist|auf|unter|über|bis|"
    r"vor|est|es|é|до)\s+(?:now\s+|only\s+)?|[=:]\s*|[是为至到于过])([$€£]?\d[\d.,:%]*(?:-\d+)*)(?![\w/])",
    re.IGNORECASE,
)
"""A figure behind a word that gives a value or a limit. Elsewhere a figure may tell things apart: `file number 3`."""
_LETTERS = pattern(r"[^\W\d_]{2,}")
FEWEST_SAME_WORDS = 4
SAME_CHARS, LONGEST_ENDING = 4, 4
"""Words with so long a common beginning, and no more than such an ending, are forms of one word."""


def replaces(sentence: str) -> str:
    """What a rule takes the place of: `use make check instead of ruff and pytest`; empty where it says no such thing."""
    match = _INSTEAD.search(sentence)
    return (match[1] or match[2]).strip() if match else ""


def same_but_for_figures(sentence: str) -> str:
    """A key that two sentences share where they say the same of another figure: `the cap is $500`, `the cap is $700`.

    The later one holds then. Sentences of few words, and those without figures, are only like themselves.
    """
    own = " ".join(sentence.split()).casefold()
    general = _FIGURE.sub(r"\1#", own)
    return general if general != own and len(_LETTERS.findall(general)) >= FEWEST_SAME_WORDS else own


def ended_by(sentence: str, held: Mapping[str, str]) -> list[str]:
    """The rules that a revocation, a permission or a newer rule ends: those that are about the same.

    None where it is not clear. A newer rule ends those that ask for what it replaces, not those that forbid it.
    """
    if _EVERYTHING.search(sentence):
        return list(held)
    replaced = replaces(sentence)
    asked = stems(replaced or sentence)
    if not asked:
        return []
    shares = {
        key: _overlap(asked, stems(text)) for key, text in held.items() if not (replaced and _FORBIDS.match(text))
    }
    best = max(shares.values(), default=0.0)
    enough = 1.0 if replaced else _ENOUGH
    return [key for key, share in shares.items() if share == best] if best >= enough else []


def _overlap(asked: Sequence[str], own: Sequence[str]) -> float:
    """Share of the words that the revocation names and the rule holds; nothing for a rule that says much more.

    `You may edit the README` does not end `Never edit generated files, the README or the licence`.
    """
    common = sum(any(same_word(one, other) for other in own) for one in asked)
    return common / len(asked) if asked and common * 3 >= len(own) else 0.0


def same_word(one: str, other: str) -> bool:
    """Are they forms of one word? `commit`, `committing`."""
    short, long = sorted((one, other), key=len)
    if short == long:
        return True
    common = short[: max(SAME_CHARS, len(short) - 1)]
    return len(short) >= SAME_CHARS and long.startswith(common) and len(long) - len(short) <= LONGEST_ENDING


def stems(text: str) -> list[str]:
    """Words that say what it is about; of scripts without spaces pairs of characters."""
    own = text.lower()
    found: list[str] = []
    for run in _DENSE.findall(own):
        for part in _COMMON_DENSE.split(run):
            found += [part[i : i + 2] for i in range(len(part) - 1)] or ([part] if part else [])
    found += [
        word
        for word in _WORD.findall(_DENSE.sub(" ", own))
        if word not in _COMMON and (len(word) > 1 or word.isdigit())
    ]
    return list(dict.fromkeys(found))
