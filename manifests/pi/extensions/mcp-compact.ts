// Between pi and `mcp-compact hook`: hands a session on to the archive, tells a compaction what must stay, and puts
// what it left out behind its summary. Whatever goes wrong, pi goes on as without it.
import { spawn } from "node:child_process"
import { compact } from "@mariozechner/pi-coding-agent"
import { Type } from "typebox"

const HOOK = ["mcp-compact", "hook", "--client", "pi"]
const PROGRAM = ["mcp-compact"]
const ENV = {}
const MILLISECONDS = 120_000
const SOURCES = { resume: "resume", fork: "resume", reload: "resume", new: "clear" }

/** What a program of ours says; empty where it says nothing, or could not be asked. */
function said([program, ...words], input, signal) {
  return new Promise((resolve) => {
    let out = ""
    const child = spawn(program, words, { env: { ...process.env, ...ENV }, stdio: ["pipe", "pipe", "ignore"], signal })
    const guard = setTimeout(() => child.kill(), MILLISECONDS)
    const end = (text) => {
      clearTimeout(guard)
      resolve(text)
    }
    child.on("error", () => end(""))
    child.on("close", (code) => end(code === 0 ? out.trim() : ""))
    child.stdin.on("error", () => {})
    child.stdout.on("data", (data) => (out += data))
    child.stdin.end(input)
  })
}

function read(text) {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

const contextOf = (text) => read(text).hookSpecificOutput?.additionalContext ?? ""

export default function (pi) {
  let waiting = ""

  function tell(event, ctx, fields = {}) {
    const session = ctx.sessionManager
    const base = {
      hook_event_name: event,
      session_id: session.getSessionId(),
      transcript_path: session.getSessionFile() ?? "",
      cwd: ctx.cwd,
    }
    return said(HOOK, JSON.stringify({ ...base, ...fields }))
  }

  pi.on("session_start", async (event, ctx) => {
    const answer = read(await tell("SessionStart", ctx, { source: SOURCES[event.reason] ?? "startup" }))
    waiting = answer.hookSpecificOutput?.additionalContext ?? ""
    if (answer.systemMessage && ctx.hasUI) ctx.ui.notify(answer.systemMessage, "info")
  })

  pi.on("before_agent_start", async (event, ctx) => {
    const more = contextOf(await tell("UserPromptSubmit", ctx))
    const content = [waiting, more].filter(Boolean).join("\n\n")
    waiting = ""
    if (content) return { message: { customType: "mcp-compact", content, display: false } }
  })

  pi.on("agent_end", async (event, ctx) => {
    await tell("Stop", ctx)
  })

  pi.on("session_shutdown", async (event, ctx) => {
    await tell("SessionEnd", ctx)
  })

  pi.on("session_before_compact", async (event, ctx) => {
    const lines = await tell("PreCompact", ctx, { trigger: "auto" })
    const auth = lines && ctx.model ? await ctx.modelRegistry.getApiKeyAndHeaders(ctx.model) : undefined
    if (!auth?.ok || event.signal.aborted) return
    const words = [event.customInstructions, lines].filter(Boolean).join("\n\n")
    // The client's own summary, by its own model and prompt, with our lines among its instructions.
    const made = await compact(
      event.preparation, ctx.model, auth.apiKey, auth.headers, words, event.signal, pi.getThinkingLevel(),
    )
    await tell("PostCompact", ctx, { compact_summary: made.summary })
    const back = contextOf(await tell("SessionStart", ctx, { source: "compact" }))
    return { compaction: back ? { ...made, summary: `${made.summary}\n\n${back}` } : made }
  })

  pi.registerTool({
    name: "search_messages",
    label: "Search what was said",
    description: "Find messages of this session, those that a compaction took out of the context too, by their words.",
    parameters: Type.Object({ query: Type.String({ description: "All of these words must be in a message." }) }),
    async execute(id, { query }, signal, update, ctx) {
      const words = [...PROGRAM, "search", "--session", ctx.sessionManager.getSessionId(), "--json", "--", query]
      const text = (await said(words, "", signal)) || "Nothing was found."
      return { content: [{ type: "text", text }], details: {} }
    },
  })
}
