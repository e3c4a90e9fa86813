"""What a person typed, and which of it stands as an instruction until it is revoked."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

from mcp_compact.messages.blocks import TextBlock
from mcp_compact.messages.lazily import pattern
from mcp_compact.messages.message import Record
from mcp_compact.messages.rule_grammar import kind_of

PASTED_CHARS = 6000
"""A longer text is a pasted document or plan, not words of its user."""
OWN_PARAGRAPH_CHARS = 1500
"""A first or last paragraph up to this length beside a pasted document is its user's."""
LONGEST_INSTRUCTION = 600
SHORTEST_INSTRUCTION = 10
SHORTEST_DENSE_INSTRUCTION = 5
"""Characters; in scripts without spaces a few characters are a sentence."""

_TAG = pattern(r"<(/?)([a-zA-Z][\w\-]{0,60})[^<>]{0,200}>")
_INJECTED_TAGS = ("local-command-", "command-", "ide_", "bash-", "user-prompt-submit-hook", "session-start-hook")
_INJECTED_NAMES = frozenset(
    ("system-reminder", "task-notification", "new-diagnostics", "environment_details", "environment_context",
     "user_instructions", "teammate-message", "persisted-output", "local-command-stdout", "hook-output", "hook_context",
     "session_context")
)  # fmt: skip
NOT_TYPED = (
    "Caveat:",
    "[Request interrupted",
    "This session is being continued",
    "Stop hook feedback",
    "Base directory for this skill",
    "[Image: source",
    "Read the output file to retrieve the result:",
    "Full transcript available at:",
)
_BEGINS_OF_THE_CLIENT = "If you need specific details"
_OF_THE_CLIENT = pattern(
    r"If you need specific details from before exiting plan mode \(like exact code snippets, error messages, or "
    r"content you generated\), read the full transcript at: \S+"
)
"""What Claude Code puts below a plan that it hands to itself as a prompt."""
_COMMAND_NAME, _COMMAND_ARGS = "command-name", "command-args"
"""How Claude Code hands on a command with a slash: the name of it, and what its user typed behind that."""
_TO_THE_CLIENT = frozenset(
    ("/add-dir", "/agents", "/color", "/config", "/effort", "/export", "/fast", "/login", "/mcp", "/model",
     "/output-style", "/permissions", "/plugin", "/rename", "/resume", "/theme", "/vim")
)  # fmt: skip
"""Commands that set up the client itself: what stands behind them is a choice of a setting, and no request."""
_COMMAND_LINE = pattern(r"/[\w:.\-]{1,100}\n")
_TITLE = pattern(r"(?m)^#{1,6}[ \t]+\S.*$")


def users_words(record: Record) -> str:
    """What a person typed in this record; empty where it holds none.

    Meta records, summaries, tool results, sub-agents' prompts, reminders, command output and
    pasted documents are nobody's words.
    """
    if record.type != "user" or record.message is None or record.message.role != "user":
        return ""
    if record.is_meta or record.is_summary or record.agent_id:
        return ""
    parts = [typed(block.text) for block in record.blocks if isinstance(block, TextBlock)]
    return "\n".join([part for part in parts if part]) if parts else ""


def typed(text: str) -> str:
    """The part of a user message's text that its user typed."""
    own = without_injected(text).strip()
    if _BEGINS_OF_THE_CLIENT in own:
        own = _OF_THE_CLIENT.sub("", own).strip()
    if own.startswith(NOT_TYPED):
        return ""
    if len(own) <= PASTED_CHARS:
        return own
    command = _COMMAND_LINE.match(own)
    return _command_beside_paste(command[0].strip(), own[command.end() :]) if command else _beside_paste(own)


def _command_beside_paste(name: str, given: str) -> str:
    """A command that was given a document: its name, the document's title, and what was typed beside it."""
    title = _TITLE.search(given)
    return "\n".join(filter(None, (f"{name} {title[0]}" if title else name, _beside_paste(given))))


def without_injected(text: str) -> str:
    """The text without reminders, command output and hook text, which stand in tags.

    Of a command with a slash its name and what was typed behind it stay, each on its line; the name alone is none.
    """
    if "<" not in text:
        return text
    kept: list[str] = []
    at = 0
    depth_name, command = "", ""
    start = inner = 0
    depth = 0
    for match in _TAG.finditer(text):
        closing, name = match[1] == "/", match[2]
        if not depth and not closing and _is_injected(name):
            depth_name, start, inner, depth = name, match.start(), match.end(), 1
        elif depth and name == depth_name:
            depth += -1 if closing else 1
            if not depth:
                kept.append(text[at:start])
                if name == _COMMAND_NAME:
                    command = text[inner : match.start()].strip()
                elif name == _COMMAND_ARGS:
                    kept.append(_of_command(command, text[inner : match.start()]))
                at = match.end()
    kept.append(text[at:])
    return " ".join(kept)


def _of_command(name: str, given: str) -> str:
    """What a user typed when they gave a command something: its name, and that, on lines of their own."""
    own = without_injected(given).strip()
    return f"{name}\n{own}\n".lstrip() if own and name not in _TO_THE_CLIENT else ""


def _is_injected(name: str) -> bool:
    return name in _INJECTED_NAMES or name.startswith(_INJECTED_TAGS)


def _beside_paste(text: str) -> str:
    """First and last paragraph of a long text, where a blank line parts them from the rest and they are short."""
    first, _, rest = text.partition("\n\n")
    last = rest.rpartition("\n\n")[2]
    own = [p.strip() for p in (first, last) if p.strip() and len(p) <= OWN_PARAGRAPH_CHARS and not _looks_pasted(p)]
    return "\n\n".join(own)


def _looks_pasted(paragraph: str) -> bool:
    stripped = paragraph.lstrip()
    return stripped.startswith(("```", "#", "{", "[", "<", "|", "diff ", "---")) or stripped.count("\n") > 20  # noqa: PLR2004


_END = pattern(r"[\n.!?。！？；](?:(?<=\n)|(?<=[.!?])[ \t]+(?=\S)|(?<=[。！？；]))")  # noqa: RUF001
"""The end of a line or sentence. A character that stands first lets the engine skip all others: six times as fast."""
_MARKS = "\n.!?。！？；"  # noqa: RUF001
"""Where there is none of these, there is one sentence."""
_LIST_MARK = pattern(r"(?:[-*+]\s+)+")
_DENSE = pattern("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

_ENGLISH = (
    r"always|never|don['’]?t|do not|does not|doesn['’]t|must(?:n['’]?t)?|should(?:n['’]?t)?|shall|cannot|can['’]?t|"  # noqa: RUF001
    r"may not|make sure|ensure|avoid|prefer|only|instead|no need|remember|from now on|going forward|keep|leave|"
    r"off[- ]limits|whenever|everywhere|unless|without|until|at all times|no more|no exceptions?|please|forbidden|"
    r"not allowed|stop|stick to|stay|ask (?:me )?(?:before|first)|before (?:you|committing|pushing|merging)|"
    r"after (?:each|every)|each time|every time|nobody|nothing|no one|none|are out|is out|have to|has to|need to|"
    r"needs to|under \d+|below \d+|at most|at least|no longer|no new|use|write|run|call|name|respond|answer|reply|"
    r"tell me|i want|i only|we only|i['’]m|i am|we (?:use|never|always|don['’]t)|actually|no,|wrong|"  # noqa: RUF001
    r"the rule|rule:|convention|required?|requirement|constraint|important|note that|be sure|be careful"
)
_GERMAN = (
    r"immer|niemals?|nie|nicht|kein(?:e[nmrs]?)?|stets|muss|müssen|darf|dürfen|soll(?:st|en|te)?|vermeide[n]?|"
    r"achte|bitte|nur|statt(?:dessen)?|ab jetzt|ab sofort|künftig|jedes ?mal|auf keinen fall|verwende|benutze|ohne"
)
_ROMANCE = (
    r"toujours|jamais|ne pas|n['’]\w+ pas|doit|doivent|dois|évite[rz]?|il faut|désormais|uniquement|seulement|"  # noqa: RUF001
    r"sans|s['’]il (?:te|vous) pla[iî]t|à partir de maintenant|utilise[rz]?|"  # noqa: RUF001
    r"siempre|nunca|jamás|debes?|deben|evita|hay que|no (?:uses|toques|cambies|hagas)|por favor|solo|sólo|"
    r"a partir de ahora|usa|sin|prefiero|sempre|não|deve[ms]?|evite|apenas|por favor|a partir de agora|use|"
    r"non|mai|devi|evita|soltanto|d['’]ora in poi"  # noqa: RUF001
)
_RUSSIAN = r"всегда|никогда|нельзя|обязательно|долж\w+|не|только|пожалуйста|избегай\w*|используй\w*|отныне|впредь|нужно"
_CUE = pattern(rf"\b(?:{_ENGLISH}|{_GERMAN}|{_ROMANCE}|{_RUSSIAN})\b")
"""In a text of small letters: to ignore their case would take five times as long, alternative by alternative."""
_DENSE_CUE = pattern(
    "必须|必須|不要|不得|不能|不许|不准|不可|别|禁止|务必|始终|总是|永远|切勿|请勿|一律|避免|确保|只能|只用|仅|"
    "以后|今后|从现在起|统一|应该|應該|请|請|優先|优先|保持|使用|记住|"
    "必ず|常に|絶対|いけない|しないで|禁止|ください|てはならない|べき|今後|のみ|だけ|"
    "반드시|항상|절대|하지 ?마|하지 않|금지|만 사용|해 ?주세요|앞으로|ห้าม|ต้อง|เสมอ|อย่า"
)


def standing_instructions(text: str) -> tuple[str, ...]:
    """Sentences and lines of a user's words that hold until they are revoked, word for word, each once.

    A question is none. Cue words of English, German, French, Spanish, Portuguese, Italian,
    Russian, Chinese, Japanese, Korean and Thai decide; one too many costs a line, one too few a rule.
    """
    found: dict[str, None] = {}
    for sentence in sentences(text):
        if is_instruction(sentence):
            found.setdefault(sentence)
    return tuple(found)


def sentences(text: str) -> list[str]:
    """Sentences and lines, without list marks and outer white space; empty ones left out. Bold stays bold."""
    # To look for each mark costs a tenth of a walk over the text, and a line of a chat often has none.
    ends = [match.end() for match in _END.finditer(text)] if any(mark in text for mark in _MARKS) else []
    pieces = (text[start:end].strip() for start, end in pairwise((0, *ends, len(text))))
    return [own for piece in pieces if (own := _without_mark(piece)).strip("-*+")]


def is_instruction(sentence: str) -> bool:
    """May one sentence be a standing instruction? A cue is enough; `rule_grammar.kind_of` judges more strictly."""
    if len(sentence) > LONGEST_INSTRUCTION or sentence.endswith(("?", "？")):  # noqa: RUF001
        return False
    return _may_be(sentence)


@lru_cache(maxsize=4_096)
def _may_be(sentence: str) -> bool:
    """Remembered, since prompts are sent again and again and judging a sentence costs what storing a record does."""
    dense = _DENSE.search(sentence) is not None
    if len(sentence) < (SHORTEST_DENSE_INSTRUCTION if dense else SHORTEST_INSTRUCTION):
        return False
    if _CUE.search(sentence.lower()) is not None or (dense and _DENSE_CUE.search(sentence) is not None):
        return True
    return kind_of(sentence) != ""


def _without_mark(piece: str) -> str:
    match = _LIST_MARK.match(piece)
    return piece[match.end() :] if match else piece
