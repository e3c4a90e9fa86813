// A small model that really writes, behind the chat completions format on the loopback interface.
// node real_model.mjs PATH/OF/node-llama-cpp MODEL.gguf: prints its port, then serves until it is ended.
import http from "node:http";
import path from "node:path";
import {pathToFileURL} from "node:url";

const CONTEXT_TOKENS = 2048;
const MOST_WRITTEN_TOKENS = 64;
const [folder, modelPath] = process.argv.slice(2);
const {getLlama, LlamaChatSession} = await import(pathToFileURL(path.join(folder, "dist", "index.js")));
const llama = await getLlama({gpu: false, build: "never", logLevel: "error"});
const model = await llama.loadModel({modelPath});
// One thread: several that wait for each other on a busy machine are slower by far.
const context = await model.createContext({contextSize: CONTEXT_TOKENS, threads: 1});

async function answer({messages, model: name, max_tokens: most}) {
    const said = (role) => messages.filter((one) => one.role === role).map((one) => one.content).join("\n");
    const asked = model.tokenize(said("system") + said("user")).length;
    if (asked > CONTEXT_TOKENS - 2 * MOST_WRITTEN_TOKENS) {
        const message = `request (${asked} tokens) exceeds the available context size (${CONTEXT_TOKENS} tokens)`;
        return [400, {error: {code: 400, message, type: "exceed_context_size_error"}}];
    }
    const contextSequence = context.getSequence();
    const session = new LlamaChatSession({contextSequence, systemPrompt: said("system")});
    const maxTokens = Math.min(most, MOST_WRITTEN_TOKENS);
    const {responseText, stopReason} = await session.promptWithMeta(said("user"), {maxTokens, temperature: 0});
    contextSequence.dispose();
    const written = model.tokenize(responseText).length;
    const ended = stopReason === "maxTokens" ? "length" : "stop";
    const choice = {index: 0, message: {role: "assistant", content: responseText}, finish_reason: ended};
    const usage = {prompt_tokens: asked, completion_tokens: written, total_tokens: asked + written};
    return [200, {id: "real", object: "chat.completion", created: 0, model: name, choices: [choice], usage}];
}

const server = http.createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const [status, body] = await answer(JSON.parse(Buffer.concat(parts).toString()));
    response.writeHead(status, {"content-type": "application/json"});
    response.end(JSON.stringify(body));
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
