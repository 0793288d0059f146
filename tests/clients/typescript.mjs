// The memory as the TypeScript SDK uses it: its first line, the package "sdk", or its second, the package "client".
// Of the second, the client asks first whether the server speaks the newest protocol; the first does not know it.

import { createRequire } from "node:module";
import process from "node:process";

const [packages, line, text] = process.argv.slice(2);
const job = JSON.parse(text);
const load = createRequire(`${packages}/`);

function parts() {
  if (line === "1") {
    return {
      ...load("@modelcontextprotocol/sdk/client/index.js"),
      ...load("@modelcontextprotocol/sdk/client/stdio.js"),
      ...load("@modelcontextprotocol/sdk/client/sse.js"),
      ...load("@modelcontextprotocol/sdk/client/streamableHttp.js"),
    };
  }
  return { ...load("@modelcontextprotocol/client"), ...load("@modelcontextprotocol/client/stdio") };
}

const sdk = parts();
const headers = job.token ? { Authorization: `Bearer ${job.token}` } : {};

function transport() {
  if (job.transport === "stdio") {
    return new sdk.StdioClientTransport({ command: job.command[0], args: job.command.slice(1) });
  }
  const Transport = job.transport === "sse" ? sdk.SSEClientTransport : sdk.StreamableHTTPClientTransport;
  return new Transport(new URL(job.url), { requestInit: { headers } });
}

async function use() {
  const complaints = [];
  const client = new sdk.Client({ name: "typescript", version: "1" }, { versionNegotiation: { mode: "auto" } });
  const connection = transport();
  client.onerror = (error) => complaints.push(String(error));
  // A client of the first line tells the version to its transport alone.
  let told = null;
  const tell = connection.setProtocolVersion?.bind(connection);
  connection.setProtocolVersion = (version) => {
    told = version;
    tell?.(version);
  };
  await client.connect(connection);
  const { tools } = await client.listTools();
  const page = { user_input: job.say, agent_response: "Noted." };
  const receipt = await client.callTool({ name: "add_memory", arguments: page });
  const found = await client.callTool({ name: "retrieve_memory", arguments: { query: job.ask } });
  const { contents } = await client.readResource({ uri: job.read });
  const results = [];
  for (const [name, given] of job.calls) {
    results.push((await client.callTool({ name, arguments: given })).structuredContent);
  }
  const answer = {
    protocol: client.getNegotiatedProtocolVersion?.() ?? told,
    tools: tools.map((tool) => tool.name),
    receipt: receipt.structuredContent,
    found: found.structuredContent,
    resource: contents[0].text,
    results,
    complaints: [...complaints],
  };
  await client.close();
  return answer;
}

try {
  process.stdout.write(`${JSON.stringify(await use())}\n`);
} catch (error) {
  process.stdout.write(`${JSON.stringify({ refusal: String(error) })}\n`);
}
