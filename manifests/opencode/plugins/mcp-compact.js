// Between opencode and `mcp-compact hook`: hands a session on to the archive, tells a compaction what must stay, and
// puts what it left out behind its summary in every later request. Whatever goes wrong, opencode goes on as without it.
import { spawn } from "node:child_process"

const HOOK = ["mcp-compact", "hook", "--client", "opencode"]
const ENV = {}
const MILLISECONDS = 120_000

/** What the hook says of an event; empty where it says nothing, or could not be asked. */
function tell(event, fields) {
  return new Promise((resolve) => {
    let out = ""
    const input = JSON.stringify({ hook_event_name: event, ...fields })
    const [program, ...words] = HOOK
    const hook = spawn(program, words, { env: { ...process.env, ...ENV }, stdio: ["pipe", "pipe", "ignore"] })
    const guard = setTimeout(() => hook.kill(), MILLISECONDS)
    const end = (said) => {
      clearTimeout(guard)
      resolve(said)
    }
    hook.on("error", () => end(""))
    hook.on("close", (code) => end(code === 0 ? out.trim() : ""))
    hook.stdin.on("error", () => {})
    hook.stdout.on("data", (data) => (out += data))
    hook.stdin.end(input)
  })
}

/** The same with a session, which may be too large to be written down; the hook keeps a note of that. */
async function tellWith(event, fields, document) {
  try {
    return await tell(event, { ...fields, document })
  } catch (fault) {
    if (!(fault instanceof RangeError)) throw fault
    return tell(event, { ...fields, document: false })
  }
}

function contextOf(said) {
  try {
    return JSON.parse(said).hookSpecificOutput?.additionalContext ?? ""
  } catch {
    return ""
  }
}

export const McpCompact = async ({ client, directory }) => {
  const announced = new Set()
  const given = new Map()

  /** The session as `opencode export` writes it. */
  async function documentOf(id) {
    const [info, messages] = await Promise.all([
      client.session.get({ path: { id } }),
      client.session.messages({ path: { id } }),
    ])
    return info.data && messages.data ? { info: info.data, messages: messages.data } : undefined
  }

  const at = (id) => ({ session_id: id, cwd: directory })

  async function pickUp(event, id, fields) {
    return tellWith(event, { ...at(id), ...fields }, await documentOf(id))
  }

  /** What belongs behind a summary; asked for once. */
  async function behind(summary) {
    const { id, sessionID } = summary.info
    const known = given.get(sessionID)
    if (known?.of === id) return known.text
    if (announced.delete(sessionID)) {
      const words = summary.parts.filter((part) => part.type === "text").map((part) => part.text)
      await pickUp("PostCompact", sessionID, { compact_summary: words.join("\n") })
    }
    const text = contextOf(await tell("SessionStart", { ...at(sessionID), source: "compact" }))
    given.set(sessionID, { of: id, text })
    return text
  }

  return {
    event: async ({ event }) => {
      try {
        if (event.type === "session.idle") await pickUp("Stop", event.properties.sessionID)
      } catch {}
    },
    "chat.message": async ({ sessionID }) => {
      await tell("UserPromptSubmit", at(sessionID))
    },
    "experimental.session.compacting": async ({ sessionID }, output) => {
      try {
        const lines = await pickUp("PreCompact", sessionID, { trigger: "auto" })
        announced.add(sessionID)
        if (lines) output.context.push(lines)
      } catch {}
    },
    "experimental.chat.messages.transform": async (_, { messages }) => {
      try {
        const summary = messages.findLast(({ info }) => info.role === "assistant" && info.summary === true && info.finish)
        const text = summary ? await behind(summary) : ""
        if (!text || summary.parts.some((part) => part.text === text)) return
        const { id, sessionID } = summary.info
        summary.parts.push({ id: `${id}-mcp-compact`, sessionID, messageID: id, type: "text", text, synthetic: true })
      } catch {}
    },
  }
}
