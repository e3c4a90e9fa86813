"""Takes keys and passwords out of text that is handed on.

What the keys of known providers look like, and what stands behind words such as `password=`.
Never by how random something looks: commit hashes, checksums and ids are needed, and stay.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mcp_compact.messages.lazily import pattern

MASK = "[masked]"

_PROVIDERS = (
    r"mcpc_[\w\-]{40,64}",  # our own tokens for the server on a network
    r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}",  # Amazon
    r"gh[opsur]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{22,255}",
    r"gl(?:pat|ptt|dt|rt|ft|imt|agent|soat|cbt)-[\w\-]{16,255}",  # GitLab
    r"xox[a-z](?:\.xox[a-z])?-[\w\-]{10,255}|xapp-\d-[\w\-]{10,255}",  # Slack
    r"sk-(?:ant|proj|svcacct|admin|or-v1|or|lf)-[\w\-]{16,255}|sk-[A-Za-z0-9]{20,255}",  # Anthropic, OpenAI and others
    r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,255}|whsec_[A-Za-z0-9+/=]{16,255}",  # Stripe
    r"AIza[\w\-]{35}|ya29\.[\w\-]{20,512}|GOCSPX-[\w\-]{20,64}",  # Google
    r"npm_[A-Za-z0-9]{30,64}|pypi-[\w\-]{40,512}|rubygems_[0-9a-f]{40,64}|dckr_pat_[\w\-]{20,64}",
    r"hf_[A-Za-z0-9]{30,64}|gsk_[A-Za-z0-9]{40,64}|r8_[A-Za-z0-9]{30,64}|xai-[A-Za-z0-9]{40,128}",
    r"nvapi-[\w\-]{40,128}|pplx-[A-Za-z0-9]{40,64}|tvly-[\w\-]{20,64}|lsv2_[a-z]{2}_[\w\-]{20,128}",
    r"SG\.[\w\-]{16,32}\.[\w\-]{30,64}|key-[0-9a-f]{32}|SK[0-9a-f]{32}",  # SendGrid, Mailgun, Twilio
    r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}|do[opr]_v1_[0-9a-f]{64}|dapi[0-9a-f]{32}|sbp_[0-9a-f]{40}",
    r"lin_api_[A-Za-z0-9]{30,64}|ntn_[A-Za-z0-9]{30,64}|glsa_[\w]{30,64}|glc_[\w+/=]{30,255}|figd_[\w\-]{30,64}",
    r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}|sntry[su]_[\w=+/\-]{30,255}|HRKU-[\w\-]{30,80}|ATATT3[\w=\-]{50,255}",
    r"hv[sb]\.[\w\-]{20,255}|dp\.(?:pt|st|ct|sa)\.[\w\-]{30,64}|pscale_(?:tkn|pw|oauth)_[\w.\-]{30,64}",
    r"AGE-SECRET-KEY-1[A-Z0-9]{50,64}|EAAA[\w\-]{50,80}|sq0(?:atp|csp)-[\w\-]{20,64}",
    r"\d{8,10}:AA[\w\-]{33}",  # Telegram
    r"[MNO][\w\-]{23,27}\.[\w\-]{6}\.[\w\-]{27,45}",  # Discord
    r"eyJ[\w\-]{8,2048}\.eyJ[\w\-]{8,4096}\.[\w\-]{8,1024}",  # signed JSON tokens
)
_PROVIDER = pattern(rf"(?<![\w\-])(?:{'|'.join(_PROVIDERS)})(?![\w\-])", re.ASCII)

SHORTEST_KEY = 15
"""Characters of the shortest of these keys."""
_DISCORD = pattern(r"[MNO][\w\-]{23,27}\.", re.ASCII)
_BEGINNINGS = (
    *("mcpc_", "AKIA", "ASIA", "ABIA", "ACCA", "gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-"),
    *("glptt-", "gldt-", "glrt-", "glft-", "glimt-", "glagent-", "glsoat-", "glcbt-", "xox", "xapp-", "sk-", "sk_"),
    *("rk_", "pk_", "whsec_", "AIza", "ya29.", "GOCSPX-", "npm_", "pypi-", "rubygems_", "dckr_pat_", "hf_", "gsk_"),
    *("r8_", "xai-", "nvapi-", "pplx-", "tvly-", "lsv2_", "SG.", "key-", "SK", "shpat_", "shpca_", "shppa_", "shpss_"),
    *("doo_v1_", "dop_v1_", "dor_v1_", "dapi", "sbp_", "lin_api_", "ntn_", "glsa_", "glc_", "figd_", "PMAK-"),
    *("sntrys_", "sntryu_", "HRKU-", "ATATT3", "hvs.", "hvb.", "dp.", "pscale_", "AGE-SECRET-KEY-1", "EAAA", "sq0"),
    *(":AA", "eyJ"),
)
"""Every key above but Discord's holds one of these: a look for them costs a tenth of a look for the keys."""

_PRIVATE_KEY = pattern(
    r"(-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)(?:[^-]|-(?!----)){1,20000}"
    r"(-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)"
)
_ADDRESS = pattern(r"(\b[a-zA-Z][\w+.\-]{1,20}://[^\s:/@\"'<>]{0,100}:)([^\s/@\"'<>]{3,200})(@)")
"""A password inside an address: `postgres://user:password@host`."""
_HEADER = pattern(r"(?i)(\b(?:bearer|basic)\s{1,4})([\w.~+/\-]{16,2048}={0,2})")

_WORDS = (
    r"api[_\-]?key|access[_\-]?key(?:[_\-]?id)?|secret[_\-]?key|private[_\-]?key|account[_\-]?key|signing[_\-]?key|"
    r"encryption[_\-]?key|client[_\-]?secret|secret|auth[_\-]?token|token|password|passwd|passwort|passphrase|"
    r"pwd|credentials?|密码|密钥|口令|パスワード|비밀번호"
)
_ASSIGNED = pattern(
    rf"(?i)((?:{_WORDS})[\"'`]?\s{{0,4}}(?::=|=>|[:=：])\s{{0,4}})"  # noqa: RUF001 - the colon of dense scripts
    r"(?:([\"'`])([^\"'`\n]{6,512}?)\2|([^\s\"'`,;()\[\]{}<>]{6,512}))"
)
_FLAG = pattern(rf"(?i)(--?(?:[\w\-]{{0,30}}-)?(?:{_WORDS})[ \t]{{1,4}})([\"']?)([^\s\"'\-][^\s\"']{{5,512}})\2")
_SPOKEN = pattern(
    r"(?i)(\b(?:password|passphrase|api key|secret key|access token|token|passwort)\s{1,3}(?:is|ist|was)\s{1,3}[\"'`]?)"
    r"([^\s\"'`,;]{6,200})"
)
_NO_SECRET = pattern(r"[$%<{]|\*{3}|\.{3}|x{4}|your[_\-]|(?:os|process|self|this|env|config|settings)\.", re.IGNORECASE)
"""A value that begins so is a reference or a placeholder."""
_TYPE = (
    r"arrays?|bool(?:ean)?|buf(?:fer)?|bytea?|bytes?|char|const|double|enum|float|int(?:eger)?|list|long|map|none|null|"
    r"number|object|option(?:al)?|ptr|readonly|record|ref|rune|slice|str(?:ing)?|text|uint|undefined|union|unknown|uuid|"
    r"varchar|vec(?:tor)?|view|void|word"
)
"""Words that names of types are made of: `Uint8Array`, `bytes32`, `SecretStr`."""
_BESIDE_TYPE = (
    r"aes|api|auth|base|big|clamped|class|crypto|curve|data|digest|ec|ed|exchange|fixed|hash|hex|hmac|id|kdf|key|md|"
    r"model|non|pair|password|private|public|raw|rsa|secret|serialized|sha|shared|sign(?:ing|ature)?|sized?|token|type|"
    r"typed|u|utf|value|verify(?:ing)?|web|x"
)
_SIZE = (
    r"(?:\d|1[0-6]|20|24|32|36|40|48|56|58|6[04]|96|12[08]|160|192|224|25[56]|384|512|1024|2048|4096|448|25519)(?!\d)"
)
"""Figures that stand in such names."""
_PART = rf"(?:{_TYPE}|{_BESIDE_TYPE}|{_SIZE})"
_KIND_OF_KEY = r"(?-i:(?:Public|Private|Secret|Signing|Verifying|Verify|Shared|Crypto)Key)"
_ENCODING = r"(?:base(?:16|32|58|64|85)|sha[_\-]?(?:1|256|384|512)|md5|aes[_\-]?(?:128|256)|ed25519|x25519|utf8)(?!\d)"
_TYPE_NAME = pattern(
    rf"(?=(?:{_PART}[_.\-]?){{0,7}}(?:{_TYPE}|{_KIND_OF_KEY}|{_ENCODING}))"
    rf"(?:[*&?]|\.\.)?(?:{_PART}[_.\-]?){{1,8}}[?*!|.:]{{0,2}}",
    re.IGNORECASE,
)
"""A name of a type: each part is a word of types or a size, and one tells of a type, an encoding or a kind of key."""
_CALLED = pattern(
    r"(?:[a-z_$][\w$]{0,60}\.){0,6}(?:[a-z_$]{1,60}|_?(?:b64|base64|create|de|decode|derive|en|encode|fetch|from|generate|"
    r"get|hash|hmac|load|make|new|parse|read|sha|sign|to)[\w$]{0,60})",
    re.IGNORECASE | re.ASCII,
)
"""What is called or looked into, where a bracket follows: `get_token()`, `b64decode(...)`, `environ["X1"]`."""
_REFERENCE = pattern(
    r"(?:[a-z_$][\w$]{0,60}\??[.:]{1,2}){1,6}[a-z_$][\w$]{0,40}?(?:key|secret|token|password|passwd|pwd|credentials?)"
    r"(?:[_]?\d)?[.!]?",
    re.IGNORECASE | re.ASCII,
)
"""Where a value is taken from: `config.s3.secretKey`."""
_TOLD = pattern(
    r"(?:key(?:[_\-]?[i\u0131]\u0307?d)?|secret|token|passwo?r?[dt]|passphrase|pwd|credent[i\u0131]\u0307?als?|"
    r"密码|密钥|口令|パスワード|비밀번호)(?:[\"'`]?\s{0,4}[:=：]|\s{1,3}(?:[i\u0131]\u0307?st?|was)\s)"  # noqa: RUF001 - see above
)
"""In casefolded text: what each match of the patterns above holds, with what must follow the word.

A look for it costs a tenth of theirs. Patterns without regard to case take a dotless i for an i, too.
"""

_TELLING = (
    "key",
    "secret",
    "token",
    "passw",
    "passp",
    "pwd",
    "credent",
    "密码",
    "密钥",
    "口令",
    "パスワード",
    "비밀번호",
)
"""What each match of that holds. Most texts have none, and a look for them costs a tenth once more."""


def masked(text: str) -> str:
    """The text with each key, token or password in it replaced by `[masked]`; twice is once."""
    out = without_private_keys(text)
    return _masked(_PROVIDER.sub(MASK, out) if _may_hold_keys(out) else out)


def all_masked(texts: Sequence[str]) -> list[str]:
    """`masked` of each of some texts; what keys of providers begin with is looked for in all of them at once."""
    if "PRIVATE KEY" in (joined := "\n".join(texts)) or _may_hold_keys(joined):
        return [masked(text) for text in texts]
    return [_masked(text) for text in texts]


def _may_hold_keys(text: str) -> bool:
    """May there be a key that is told by its looks? No such key holds a blank, and none is shorter than a few words."""
    long = " ".join([word for word in text.split() if len(word) >= SHORTEST_KEY])
    return _holds(long, _BEGINNINGS) or _DISCORD.search(long) is not None


def _masked(text: str) -> str:
    """The text without what is told to be a key or a password by what stands around it."""
    out = _ADDRESS.sub(_of_address, text) if "://" in text else text
    folded = out.casefold()
    if "bearer" in folded or "basi" in folded or "bas\u0131" in folded:
        out = _HEADER.sub(_of_header, out)
    is_told = _holds(folded, _TELLING) and _TOLD.search(folded) is not None
    out = _ASSIGNED.sub(_of_assignment, out) if is_told else out
    out = _FLAG.sub(_of_flag, out)
    return _SPOKEN.sub(_of_sentence, out) if is_told else out


def _holds(text: str, parts: Sequence[str]) -> bool:
    # A plain loop: this is asked of every text that is handed on.
    for part in parts:  # noqa: SIM110 - see above
        if part in text:
            return True
    return False


def without_private_keys(text: str) -> str:
    """The text with the body of each private key masked: all that goes over several lines."""
    return _PRIVATE_KEY.sub(rf"\1 {MASK} \2", text) if "PRIVATE KEY" in text else text


def _of_address(match: re.Match[str]) -> str:
    return match[0] if _is_harmless(match[2]) else f"{match[1]}{MASK}{match[3]}"


def _of_header(match: re.Match[str]) -> str:
    return f"{match[1]}{MASK}" if any(map(str.isdigit, match[2])) else match[0]


def _of_assignment(match: re.Match[str]) -> str:
    before, mark, quoted, bare = match[1], match[2] or "", match[3], match[4]
    value = quoted if quoted is not None else bare
    if _is_harmless(value) or not _may_be_secret(before, value, is_quoted=quoted is not None) or _is_code(value):
        return match[0]
    if quoted is None and match.string.startswith(("(", "["), match.end()) and _CALLED.fullmatch(value):
        return match[0]
    return f"{before}{mark}{MASK}{mark}"


def _of_flag(match: re.Match[str]) -> str:
    value, mark = match[3], match[2]
    kept = _is_harmless(value) or not _has_digit(value) or _is_code(value)
    return match[0] if kept else f"{match[1]}{mark}{MASK}{mark}"


def _of_sentence(match: re.Match[str]) -> str:
    kept = _is_harmless(match[2]) or not _has_digit(match[2]) or _is_code(match[2])
    return match[0] if kept else f"{match[1]}{MASK}"


def _is_harmless(value: str) -> bool:
    return value.startswith(MASK) or _NO_SECRET.match(value) is not None


def _is_code(value: str) -> bool:
    """Is it the name of a type, or does it say where a value is taken from?"""
    return _TYPE_NAME.fullmatch(value) is not None or _REFERENCE.fullmatch(value) is not None


def _may_be_secret(before: str, value: str, *, is_quoted: bool) -> bool:
    """Tell a secret from code and prose: `token: str`, `password: required`, `TOKEN = get_token()`."""
    if any(map(str.isspace, value)):
        return False
    word = before.rstrip("\"'`:=> \t\n")
    if _has_digit(value):
        return not value.isdigit() or not word.lower().endswith(("token", "key"))
    # Without a digit only a quoted password, or a variable of the environment: `DB_PASSWORD=correcthorse`.
    if is_quoted:
        return not word.lower().endswith("token")
    return word.isupper() and "=" in before and "." not in value


def _has_digit(value: str) -> bool:
    return any("0" <= c <= "9" for c in value)
