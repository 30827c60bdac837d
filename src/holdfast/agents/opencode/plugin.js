// Holdfast for opencode. Written by `holdfast install`, removed by `holdfast uninstall`.
import { spawn } from "node:child_process"

const COMMAND = []
const PATIENCE_MS = 10_000
const PERSON_MS = 610_000

// A session may be given the plugin twice, by the user's folder and by the project's: the second does nothing.
const MARK = Symbol.for("holdfast.plugin")

function hook(mode, event, payload, signal) {
  return new Promise((answer) => {
    const child = spawn(COMMAND[0], [...COMMAND.slice(1), mode, "opencode", event], { stdio: ["pipe", "pipe", "ignore"], signal })
    const timer = setTimeout(() => (child.kill(), answer({})), signal ? PERSON_MS : PATIENCE_MS)
    let said = ""
    child.on("error", () => answer({}))
    child.stdin.on("error", () => {})
    child.stdout.on("data", (piece) => (said += piece))
    child.on("close", () => {
      clearTimeout(timer)
      try {
        answer(said ? JSON.parse(said) : {})
      } catch {
        answer({})
      }
    })
    child.stdin.end(JSON.stringify({ agent: "opencode", hook: event, ...payload }))
  })
}

export const Holdfast = async ({ client, directory, worktree }) => {
  if (globalThis[MARK]) return {}
  globalThis[MARK] = true
  const parents = new Map() // session → the session that began it, or ""
  const answers = new Map() // session → the last text of the model
  const compacted = new Set() // sessions that did nothing since their compaction
  const contexts = new Map() // session → what the model is to know
  const running = new Map() // call → its tool and arguments
  const asked = new Map() // permission → what ends the wait for an answer from elsewhere
  let last = Promise.resolve()

  // One after the other, so that the log has the order in which things happened.
  const tell = (mode, event, session, rest) => {
    const payload = { sessionID: session, parentID: parents.get(session) || undefined, directory, worktree, ...rest }
    const answered = last.then(() => hook(mode, event, payload)).catch(() => ({}))
    last = answered
    return answered
  }
  // Beside its own dialog; nothing else waits for it.
  const permit = async ({ id, sessionID, permission, patterns, tool }) => {
    const waiting = new AbortController()
    asked.set(id, waiting)
    const input = running.get(tool?.callID) ?? { tool: permission, args: { patterns }, callID: tool?.callID }
    const session_id = parents.get(sessionID) || sessionID
    const parentID = session_id === sessionID ? undefined : session_id
    const shown = { session_id, tool_name: input.tool, tool_input: input.args, message: String(permission ?? "") }
    const payload = { sessionID, parentID, directory, worktree, input, ...shown }
    await last
    const { verdict, reason } = await hook("wait", "permission.asked", payload, waiting.signal)
    if (!asked.delete(id) || !verdict) return
    const body = verdict === "allow" ? { reply: "once" } : { reply: "reject", message: reason }
    const headers = { "Content-Type": "application/json" }
    await client._client?.post({ url: "/permission/{requestID}/reply", path: { requestID: id }, body, headers })
  }
  const settle = (id) => {
    asked.get(id)?.abort()
    asked.delete(id)
  }
  const remember = (session, reply) => {
    if (reply.context) contexts.set(session, [...(contexts.get(session) ?? []), reply.context])
    return reply
  }
  const seen = async (session) => {
    if (!session || parents.has(session)) return
    parents.set(session, "")
    remember(session, await tell("start", "session.seen", session, {}))
  }

  const events = {
    "session.created": async ({ sessionID, info }) => {
      const session = sessionID ?? info?.id
      if (!session || parents.has(session)) return
      parents.set(session, info?.parentID ?? "")
      remember(session, await tell("start", "session.created", session, {}))
    },
    "session.idle": async ({ sessionID }) => {
      if (compacted.delete(sessionID)) return
      const reply = await tell("ask", "session.idle", sessionID, { message: answers.get(sessionID) })
      answers.delete(sessionID)
      if (!reply.deny) return
      const body = { parts: [{ type: "text", text: reply.deny }] }
      await client.session.promptAsync?.({ path: { id: sessionID }, body })
    },
    "session.error": ({ sessionID, error }) => sessionID && tell("tell", "session.error", sessionID, { error }),
    "session.compacted": ({ sessionID }) => {
      // Its summary is nobody's answer, and when nothing follows it no turn has ended.
      answers.delete(sessionID)
      compacted.add(sessionID)
      return tell("tell", "session.compacted", sessionID, {})
    },
    "session.deleted": ({ sessionID, info }) =>
      tell("tell", "session.ended", sessionID ?? info?.id, { reason: "deleted" }),
    "permission.asked": (properties) => void permit(properties).catch(() => {}),
    "permission.replied": ({ requestID, permissionID }) => settle(requestID ?? permissionID),
    "message.part.updated": ({ part }) => {
      if (part?.type !== "tool" || part.state?.status !== "error" || !running.has(part.callID)) return
      const input = running.get(part.callID)
      running.delete(part.callID)
      return tell("tell", "tool.error", part.sessionID, { input, error: { name: String(part.state.error ?? "") } })
    },
  }

  return {
    event: async ({ event }) => events[event.type]?.(event.properties),
    dispose: async () => {
      for (const id of asked.keys()) settle(id)
      for (const [session, parent] of parents) if (!parent) await tell("tell", "session.ended", session, { reason: "exit" })
    },
    "chat.message": async (input, output) => {
      compacted.delete(input.sessionID)
      await seen(input.sessionID)
      remember(input.sessionID, await tell("ask", "chat.message", input.sessionID, { input, output }))
    },
    "experimental.chat.system.transform": async (input, output) => {
      output.system.push(...(contexts.get(input.sessionID) ?? []))
    },
    "experimental.text.complete": async (input, output) => {
      compacted.delete(input.sessionID)
      answers.set(input.sessionID, output.text)
    },
    "tool.execute.before": async (input, output) => {
      compacted.delete(input.sessionID)
      await seen(input.sessionID)
      const reply = remember(input.sessionID, await tell("ask", "tool.execute.before", input.sessionID, { input, output }))
      if (reply.deny) throw new Error(reply.deny)
      running.set(input.callID, { ...input, args: output.args })
    },
    "tool.execute.after": async (input, output) => {
      running.delete(input.callID)
      const reply = await tell("ask", "tool.execute.after", input.sessionID, { input, output })
      if (reply.context && typeof output.output === "string") output.output += `\n\n${reply.context}`
    },
  }
}
