"""Tells a rule from a remark: which sentences of a user hold for later work, in the forms that people write them.

A cue word is not enough: `never` stands in "it never works", `must` in "that must be a bug". So cues count where
they command (at the start of a clause, behind `you`), or where they say how long or how widely something holds.
"""

from __future__ import annotations

from mcp_compact.messages.lazily import pattern
from mcp_compact.messages.rule_languages import OTHER_RULES, PERMISSIONS, REVOCATIONS
from mcp_compact.messages.rule_search import any_of

RULE = "rule"
CORRECTION = "correction"
PERMISSION = "permission"
"""`You may push now`: it may end a rule, and holds like one."""
REVOCATION = "revocation"
"""`Forget the rule about tabs`: it ends a rule and says nothing else."""

LONGEST, FEWEST_LETTERS = 420, 3
QUESTION_ENDS = ("?", "？", "吗", "呢", "か。", "ですか")
_QUOTES = '*_"“”` '

_START = r"(?:^|(?<=[,;:(–—]) ?|(?<=- )|\b(?:and|but|so|then|please|pls|plz|kindly|also|just|or|okay|ok|well|hey|btw|plus|no),? )"
_NOT_A_COMMAND = (
    r"(?!(?:been|was|were|is|has|had|seen|heard|got|gonna|mind|really|quite|again|even|happy|glad|an?|the|in|on|at|there|here|same|empty|null|true|"
    r"false|good|nice|great|possible|gave|ran|came|went|[a-z]+(?<!e)ed"
    r"|[a-z]+(?<![su])s)\b)"
)
_FACT = r"(?!know|think|worry|understand|see\b|seem|mind|remember|care|believe|recall|have\b|need|get it|agree|want\b)"
_IMPERATIVE = (
    r"(?:tell|ask|stop|do|don't|never|always|use|leave|keep|run|add|write|make|skip|note|report|let me|show|say|put|"
    r"create|start|open|explain|mark|log|revert|check|update|include|treat|prefer|wait|sign|bump|give|call|name|return)"
)
_VERBS = (
    r"(?:use|write|run|put|call|name|store|return|import|add|make|keep|do|try|go with|take|pick|choose|log|throw|raise|"
    r"create|show|print|send|display|commit|push|build|install|define|declare|format|sort|group|set|start|read|test)"
)
_TONGUES = (
    r"(?:english|german|french|spanish|italian|portuguese|russian|chinese|mandarin|japanese|korean|dutch|polish|"
    r"deutsch|markdown|bullet|plain|simple|short|lower ?case|upper ?case|present tense|imperative|first person|"
    r"one (?:sentence|line|paragraph)|few words|your own words|british|american)"
)
_SUBJECTS = r"(?:all|every|each|any|no|everything|nothing|everyone|nobody|code|output|[a-z]+s|the [a-z]+s)"

_RULES = (
    # Always and never, where they command.
    rf"{_START}(?:always|never(?:,? ever)?|under no circumstances|at no time) {_NOT_A_COMMAND}[a-z]",
    rf"\b(?:you|we) (?:must |should |shall |need to |have to |are to )?(?:always|never) {_NOT_A_COMMAND}[a-z]",
    r"\b(?:should|must|shall|may|can|will|has to|have to|is to|are to) (?:always|never)\b",
    r", always[.!]?$|, never (?:an? )?[a-z\-]+[.!]?$|\bno exceptions?[.!]?$|\bat all times\b|\bunder (?:any|all) circumstances\b",
    r"\bi never want\b|\bi (?:always|only|just) want\b",
    # Do not.
    rf"{_START}(?:do not|don't|dont|do never) (?:ever )?{_FACT}[a-z]",
    r"\b(?:i|we) (?:do not|don't|never) (?:want|like|allow|accept|use|do|write|ship|commit|add|mix|rely)\b(?! to know)",
    r"\bi(?:'d| would) (?:much |really |strongly )?(?:prefer|rather|like (?:you to|all|every))\b",
    r"\b(?:i|we) (?:much |really |strongly |always |generally )?prefer\b(?! (?:the (?:first|second|third|last|other|new|old)|that|this|option|your|it)\b)|\b(?:my|our) preference\b",
    rf"{_START}(?:prefer|favou?r|avoid|refrain from|stick (?:to|with)|adhere to|respect|obey|comply with) [a-z`\"]",
    rf"{_START}(?:stop|quit) (?!hook)[a-z]+ing\b|{_START}let's (?:not|never|always|only|stick)\b(?! worry| forget| jump the)",
    r"^(?:please )?(?:follow|observe) .*\b(?:style|conventions?|guides?|guidelines?|patterns?|rules?|standards?|format)\b",
    # Must, should, may not.
    (r"(?<!\bi )\bmust(?:n't| not)? (?!have\b|(?:be|be an?|be the|be some) (?:an? |the |some|bug|issue|because|due|missing|"
    r"wrong|broken|related|coming|caused|happening|something|kidding|right|it\b)|admit|say|confess)[a-z]"),
    (r"\b(?:you|nobody|no one|agents?|they|we) (?:cannot|can't|may not|must not|mustn't|are not (?:allowed|permitted) to|"
    r"aren't allowed to)\b(?! (?:see|tell|know|imagine|find|access|just|be sure|do that if|go back))"),
    (rf"\b(?:you|{_SUBJECTS})(?: [^.,;?\"(–—]{{1,30}})? should(?!.*\bnow\b)(?:n't| not| only| be| use| have(?! been)| go| look| start| end| follow| stay|"
    r" remain| live| contain| match| read| pass)\b(?! (?:be )?(?:work|fixed|fine|ok|easy|possible|enough|the same|good|done))"),
    r"\bwe should(?:n't| not| never| always| only)\b(?! (?:be worr|have|need))",
    (r"^(?!i\b|we\b|it\b|this\b|that\b|there\b|you\b|they\b|he\b|she\b|the (?:bug|issue|problem))[^,?]{3,60}"
    r"\b(?:have|has|need|needs) to (?:stay|be(?! (?:updated|fixed|done|changed|added|removed|rewritten|checked|tested|merged|deployed|reviewed))|remain|use|follow|live|go|start|end|match|pass|have|carry)\b"),
    (r"\b(?:is|are) (?:strictly |absolutely |all )?(?:forbidden|prohibited|not allowed|not permitted|banned|a no-go|mandatory|"
    r"off[- ]limits|out of bounds|out of scope|off the table|read[- ]only|frozen|not to be|to be (?:left|kept))\b"),
    r"\b(?:needs?|requires?) (?:my|our|prior|explicit) (?:approval|permission|review|ok|sign-off|consent)\b",
    # How long, how widely.
    r"\b(?:from now on|from here on|from this point|going forward|in (?:the )?future|as a rule|for the rest of|henceforth)\b",
    r"\buntil (?:i|we) (?:say|tell|ask|confirm|approve|have|give)\b|\bunless (?:i|you are asked|asked|told|otherwise|explicitly)\b",
    r"\bwithout (?:asking|checking with|my|permission|approval|telling|confirmation|being asked|prior|explicit|a test|tests)\b",
    r"\bwhenever (?:you|we|a|an|the|there)\b|\b(?:every|each) time (?:you|we change)\b|\bnot (?:a single|one) \w+ing\b",
    r"\b(?:before|after) (?:every|each|any|all)\b(?! of this| that)",
    r"\bbefore (?:you )?(?:commit|push|merg|deploy|releas|delet|edit|creat|install|rebas|publish)(?:t?ing)?\b(?!.*\b(?:was|were|had)\b)",
    (r"^(?:if|when) (?:you|a|an|any|there|something|anything|in doubt|unsure|not sure|tests?|things)\b[^,]{0,120},? "
    rf"(?:please |then |just )?{_IMPERATIVE}\b"),
    # Keep, leave, limit, ask.
    r"^(?:please |and |also )?keep (?!.*\b(?:running|open|going)[.!]?$|going|working|it up|getting|seeing|trying|on\b|in touch|running|looking|up\b)[a-z`\"]",
    r"\bleave .{2,80}\b(?:alone|as (?:it )?is|as they are|untouched|unchanged|in place)\b|\bhands off\b|\bkeep in mind\b",
    r"^(?:please )?(?:limit|restrict|confine|cap|stay (?:on|in|within|away|under|below|out)) [a-z]",
    r"^(?:please )?(?:make sure|be sure|ensure|see to it)\b.*\b(?:all|every|each|always|never|any|no|only|before|after|both|not)\b",
    r"^(?:please )?be (?:concise|brief|careful|terse|short|direct|honest|specific|strict|consistent|explicit|polite|thorough)\b",
    rf"^(?:please )?(?:respond|answer|reply|speak|write|talk|comment|explain|document|communicate)\b.*\b{_TONGUES}\b",
    r"\b(?:british|american) (?:spelling|english)\b|\bcall me [a-z]|\bi(?:'m| am) (?:colou?r[- ]?blind|dyslexic|blind|deaf)\b",
    r"^(?:please )?(?:ask|check with|tell|warn|notify|consult|confirm with|wait for|inform|show)\b.*\b(?:before|first|unless|whenever)\b",
    r"\bask (?:me )?first\b|\bi(?:'ll| will)\b.*\bmyself\b|^(?:please )?remember\b(?! when| how| that time|,? i )",
    r"^(?:important|rule|constraint|reminder|attention|rules|hard rule|house rule|policy)\s?(?:#?\d+)?\s?: \S+ \S+ \S",
    # Use this, not that.
    rf"^(?:please |no,? |then |so )?{_VERBS}\b.*(?:\binstead of\b|\brather than\b|,? not\b (?!sure|yet)|\bonly\b(?! (?:when|if) i\b))",
    (r"^(?:please )?use (?:only )?(?!the |this |that |my |your |our |it\b|these |those |a |an |sub|all |both |plan|option|agents?\b)"
    r"(?:[^\s,]+ ){0,4}[^\s,]+[.!]?$"),
    r"^(?:please )?use .+\b(?:everywhere|throughout|by default|for (?:all|every|each|any|new)|in (?:all|every|each|new)|whenever)\b",
    r"\b(?:we|this (?:repo|project|codebase|team)) (?:only |always )?uses? .+\b(?:here|not|instead|everywhere|only|for everything)\b",
    r"^(?:please |now )?only (?!the\b|one\b|when it|if it|a\b|then\b|this\b|two\b|for me|in\b|problem|issue|thing|way\b)[a-z]+",
    (r"\bonly allowed to\b|\bmay only\b|^treat\b|^(?:we|answer|respond|reply|commit|push)\b.* only[.!]?$|\bi want (?:all|every|each|only|no)\b|\b(?:commit|push|merge|run|deploy|change|delete|continue|go on|proceed)\b.{0,40}\bonly "
    r"(?:when|if|after|once) (?:i|we) [a-z]+"),
    r"^(?:for|in|with|when|on) [^,]{1,50},? (?:please |always |only )?(?:use|prefer|write|name|put|add|avoid|never|don't)\b",
    (r"^(?!.*\b(?:is|are|was|see|get|got|errors?|bugs?|fails?)\b)(?!(?:now |please |then |and |also )*(?:rename|replace|fix|remove|delete|"
    r"change|update|add|move|convert|refactor|apply|search|look|check|find|put)\b).{6,80}\b(?:everywhere|throughout)[.!]?$"),
    (rf"^(?:all |every |the )?[a-z ]{{0,40}}\bin {_TONGUES},? (?:only|please|pls)\b|^{_TONGUES} only\b|^(?:short|brief|concise|detailed|long) "
    r"(?:answers?|replies|messages?|comments?)\b"),
    r"^(?:please )?(?:reply|answer|respond|write|explain|comment)\w* (?:briefly|concisely|shortly|tersely|in detail|only)\b",
    rf"^(?:please )?{_VERBS}\b.*\bwithout (?:adding|changing|touching|breaking|using|modifying|creating|introducing|removing)\b",
    (r"\bi (?:hate|dislike|can't stand|cannot stand|don't like)\b (?!that\b|this\b|it\b|when\b|how\b|the\b|to)|"
    r"\bwe(?:'re| are) not (?:using|supporting|going to use|allowed)\b"),
    r"^align\b.*\buse\b|\buse .{2,40} only\b",
    # No such thing.
    (r"^(?:and |also |please )?no (?!i\b|.*\b(?:provided|available|specified|detected)[.!]?$|it\b|this\b|that\b|there\b|problem|idea|worries|need for you|one knows|change[sd]?[.!]|error|"
    r"luck|difference|longer|wait|way|clue|rush|thanks|doubt|wonder|matter|such|you\b|we\b|don't|do\b|not\b|please|just|"
    r"use\b|let|the\b|what|why|how|still|actually|never|always|only|but|and|so|in\b|on\b|they|he\b|she\b|my\b|your|result|"
    r"output|response|data\b|i'm|its|if\b|because|sorry|is\b|was\b|are\b|can\b|should|leave|keep|go\b|try\b|stop|revert|funciona|sé\b|puedo|hay\b|tengo|"
    r"va\b|entiendo|quiero|compila|está|se\b|more (?:errors?|questions?|issues?|problems?|bugs?)|errors?\b|issues?\b)"
    r"[a-z][\w.:\-]*(?: (?!is\b|are\b|was\b|were\b|has\b|have\b|found\b|works?\b)[\w'./:\-]+){0,8}[.!]?$"),
    rf"{_START}no (?:new|more|other|extra|additional|further|unnecessary|need (?:to|for)) (?!errors?|questions?|issues?|problems?|bugs?|changes?\b|worries)[a-z]+(?! (?:found|left|than|was|were))",
    (r"^(?:nobody|no one|nothing|none of)\b(?! (?:knows?|cares?|uses?|works?|happens?|changed|is\b|was\b|else|special|to\b|in\b|yet))"
    r" [a-z]+(?:s|es)\b|\bso no [a-z]+|^skip (?!to\b|this\b|that\b|it\b)[a-z]"),
)  # fmt: skip
_ENGLISH = any_of(_RULES, opening=_START)

_CORRECTIONS = (
    (r"\b(?:that's|that is|this is|it's|it is|you're|you are) (?:just |still |simply )?(?:not (?:right|correct|what i|how (?:i|we)|"
    r"true|the (?:right|way))|wrong\b(?! with)|incorrect)"),
    r"\bnot what i (?:asked|meant|wanted|said)\b|\bi (?:already |just )?(?:said|told you|asked (?:you )?(?:for|to)|meant)\b",
    (r"\byou (?:forgot|misunderstood|broke|ignored|shouldn't have|were (?:not )?supposed to|weren't supposed|keep \w+ing|"
    r"missed (?!out))"),
    r"\bi (?:didn't|did not|never) (?:ask|say|want|mean|request)\b",
    r"^(?:actually|instead),? (?!of\b|i think|it works|this works|never ?mind|that works)\S+ \S+ \S+",
    r"\bshould (?:be|have been|say|read|go|use) .{2,80}(?:\bnot\b|\binstead\b|\brather than\b)|\bnot .{2,60}, but (?:instead )?\S",
    r"\b(?:but|use|do|want) .{2,60} instead[.!]?$",
)  # fmt: skip
_CORRECTION = pattern("|".join(f"(?:{own})" for own in _CORRECTIONS))
_NO = pattern(
    r"^(?:no|nope|nah|wrong|not quite|incorrect|hold on|stop|nein|falsch|non|faux|no|mal|não|errado|нет|неверно|не так|"
    r"hmm,? no|uh,? no|no wait)\b[\s,.!:;—–\-]++(?!problem|worries|rush|idea|need|thanks|one\b|it's (?:fine|ok)|this is fine|"
    r"that's (?:fine|ok)|all good|[a-z\-]+[.!]?$|\d)(.+)"
)
_NO_DENSE = pattern(r"^(?:不是|不对|不對|错了|錯了|不,|不，|不行|違います|違う|いや[、,]|ちがう|아니|틀렸|틀려)(.{2,})")
_BARE_NO = pattern(
    r"(?:no|nope|nah|wrong|not quite|incorrect|stop|nein|falsch|non|faux|não|errado|нет|неверно|不是|不对|不對|错了|錯了|不|不行|"
    r"違います|違う|いいえ|아니요|아니|틀렸어요?)[\s,.!。！…]*"
)
_FEWEST_AFTER_NO = 3
_QUESTION = pattern(
    r"^(?:and |so |but |ok(?:ay)?,? |hmm,? |also,? |question:? )?(?:can|could|would|will|do(?! not\b| it\b)|does|did|is|are|was|were|why|what|how|"
    r"who|when did|where|which|shall|should (?:i|we|it|this|that)|have you|has|am i|isn't|aren't|don't (?:we|you|i)\b|"
    r"doesn't|didn't|won't|can't (?:we|you|i)|may i|might|any (?:idea|reason)|i wonder|not sure (?:if|why|how))\b"
)
_STILL_A_RULE = pattern(
    r"\b(?:always|never|from now on|going forward|stop \w+ing|(?:please )?don't|please not|instead of|every time|"
    r"without asking)\b"
)
_OUTPUT = pattern(
    r"^(?:[a-z]+(?:error|exception|warning)\b|(?:error|exception|warning|warn|fatal|info|debug|traceback|panic|npm|at |file )"
    r"[ :\[(]|[$>#|│├└✓✗×✖●⏺⎿]|\+\+\+|---|@@|\d{4}[-/]\d\d|\[\d|https?://\S+$|<[a-z/!])"
)
_CODE = pattern(r"[{};]\s*$|\) ?=>|\(\) ?\{")


_REPORT = pattern(
    r"\b(?:whether|no [a-z ]+ (?:provided|given|available|set|found|installed|detected|specified|returned)|"
    r"(?<!i )(?<!we )says?|said|complains?|claims?|reports?|warns?|tells me|according to|fails?|failed|failing|crash(?:es|ed|ing)?|hangs?|"
    r"broke|breaks|worked|works|stops? working|but it (?:is|does|was|did)|happen(?:s|ed)|noticed|saw|(?:is|was|are|were) (?:empty|stuck|slow|null|gone|missing|wrong)|"
    r"by (?:cors|the \w+)|so (?:the|it|that) \w+ (?:fails|is|was|can't|cannot)|muss (?:ein|an|am|wohl|noch)|müssen noch|"
    r"je parte|il faut que (?:je|j')|siempre (?:da|falla)|всегда (?:пада|был))\b"
    r"|要等|很慢|很久|报错|失败|崩溃|出错|都.{0,6}了[。!！]?$|エラー|失敗|落ち|なります|ました|실패|오류|에러"
)
"""A report of what is or was; beside it only a command counts."""
_COMMAND = pattern(
    rf"{_START}(?:always|never|do not|don't|dont|prefer|avoid|stop \w+ing|make sure|ensure|keep|leave|use|only|ask|tell|if you|"
    r"from now on|whenever you|let's not|niemals|verwende|bitte|ne |n'|nunca|no |не |никогда)\b"
    r"|必须|务必|一律|切勿|请|不要|禁止|不得|统一|してください|しないで|こと[。]?$|하세요|마세요|해야"
)


def kind_of(sentence: str, *, opens_message: bool = False) -> str:
    """What a sentence is: RULE, CORRECTION, PERMISSION, REVOCATION, or empty for anything else.

    `opens_message`: is it the first of its message? There a `no` turns the model's last step down.
    """
    own = " ".join(sentence.replace("’", "'").lower().split())
    if len(own) > LONGEST or sum(map(str.isalpha, own)) < FEWEST_LETTERS or is_output(own) or _CODE.search(own):
        return ""
    own = own.strip(_QUOTES)
    if own.endswith(QUESTION_ENDS) and not own.startswith(("can you please not", "could you please not")):
        return ""
    if (ending := _ending(own)) != "":
        return ending
    if opens_message and _turns_down(own):
        return CORRECTION
    if _QUESTION.match(own):
        return (
            RULE
            if _STILL_A_RULE.search(own) and not own.startswith(("why", "how", "what", "did", "is ", "was"))
            else ""
        )
    if (_ENGLISH(own) or OTHER_RULES(own)) and (not _REPORT.search(own) or _COMMAND.search(own)):
        return RULE
    return CORRECTION if _CORRECTION.search(own) else ""


def ends_rules(sentence: str) -> str:
    """REVOCATION or PERMISSION where the sentence is one, else empty: quicker than all that `kind_of` tells."""
    own = " ".join(sentence.replace("’", "'").lower().split()).strip(_QUOTES)
    return "" if len(own) > LONGEST or own.endswith(QUESTION_ENDS) else _ending(own)


def _ending(own: str) -> str:
    if REVOCATIONS(own):
        return REVOCATION
    return PERMISSION if PERMISSIONS(own) else ""


def is_output(line: str) -> bool:
    """Does a line begin as a program's output does? Then nothing in it is a person's rule."""
    return _OUTPUT.match(" ".join(line.lower().split())) is not None


def is_bare_no(sentence: str) -> bool:
    """Does it say no, and no more? Then the next sentence says what is right."""
    return _BARE_NO.fullmatch(sentence.strip().lower()) is not None


def _turns_down(own: str) -> bool:
    match = _NO.match(own)
    if match:
        return len(match[1].split()) >= _FEWEST_AFTER_NO
    return _NO_DENSE.match(own) is not None
