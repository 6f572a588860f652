// An MCP server on stdio with what the conformance suite asks for, made of the official SDK: `tether wrap` is tested around it.
// CONFORMANCE is the folder of the suite's packages.
const sdk = (module) => import(`${process.env.CONFORMANCE}/@modelcontextprotocol/sdk/dist/esm/${module}.js`);
const [{ Server }, { StdioServerTransport }, types] = await Promise.all(["server/index", "server/stdio", "types"].map(sdk));

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

const text = (value) => ({ type: "text", text: value });
const image = { type: "image", data: PIXEL, mimeType: "image/png" };
const embedded = (uri, mimeType, value) => ({ type: "resource", resource: { uri, mimeType, text: value } });
const string = { type: "string" };
const one = (values) => values.map((value, at) => ({ const: value, title: `Option ${at + 1}` }));

const defaults = {
  name: { ...string, default: "John Doe" },
  age: { type: "integer", default: 30 },
  score: { type: "number", default: 95.5 },
  status: { ...string, enum: ["active", "inactive", "pending"], default: "active" },
  verified: { type: "boolean", default: true },
};
const options = ["option1", "option2", "option3"];
const values = ["value1", "value2", "value3"];
const enums = {
  untitledSingle: { ...string, enum: options },
  titledSingle: { ...string, oneOf: one(values) },
  legacyEnum: { ...string, enum: ["opt1", "opt2", "opt3"], enumNames: ["Option One", "Option Two", "Option Three"] },
  untitledMulti: { type: "array", minItems: 1, maxItems: 3, items: { ...string, enum: options } },
  titledMulti: { type: "array", minItems: 1, maxItems: 3, items: { anyOf: one(values) } },
};

async function elicit(extra, message, properties, required = []) {
  const params = { message, requestedSchema: { type: "object", properties, required } };
  const { action, content } = await extra.sendRequest({ method: "elicitation/create", params }, types.ElicitResultSchema);
  return [text(`Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`)];
}

/** Each tool: its parameters, and what it does; the result is its content. */
const tools = {
  test_simple_text: [{}, () => [text("This is a simple text response for testing.")]],
  test_image_content: [{}, () => [image]],
  test_audio_content: [{}, () => [{ type: "audio", data: SOUND, mimeType: "audio/wav" }]],
  test_embedded_resource: [{}, () => [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]],
  test_multiple_content_types: [{}, () => [
    text("Multiple content types test:"),
    image,
    embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
  ]],
  test_tool_with_logging: [{}, async (_, extra) => {
    for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
      await extra.sendNotification({ method: "notifications/message", params: { level: "info", data } });
    }
    return [text("Tool with logging executed successfully")];
  }],
  test_tool_with_progress: [{}, async (_, extra) => {
    const progressToken = extra._meta?.progressToken ?? 0;
    for (const progress of [0, 50, 100]) {
      const params = { progressToken, progress, total: 100, message: `Completed step ${progress} of 100` };
      await extra.sendNotification({ method: "notifications/progress", params });
    }
    return [text(String(progressToken))];
  }],
  test_error_handling: [{}, () => {
    throw new Error("This tool intentionally returns an error for testing");
  }],
  test_sampling: [{ prompt: string }, async ({ prompt }, extra) => {
    const params = { messages: [{ role: "user", content: text(prompt) }], maxTokens: 100 };
    const sampled = await extra.sendRequest({ method: "sampling/createMessage", params }, types.CreateMessageResultSchema);
    return [text(`LLM response: ${sampled.content.text}`)];
  }],
  test_elicitation: [{ message: string }, ({ message }, extra) => elicit(extra, message, { response: string }, ["response"])],
  test_elicitation_sep1034_defaults: [{}, (_, extra) => elicit(extra, "Please review the defaults", defaults)],
  test_elicitation_sep1330_enums: [{}, (_, extra) => elicit(extra, "Please select options", enums)],
  json_schema_2020_12_tool: [{}, () => [text("called")]],
};

/** A schema whose keywords must arrive as they are. */
const schema2020 = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: { address: { type: "object", properties: { street: string, city: string } } },
  properties: { name: string, address: { $ref: "#/$defs/address" } },
  additionalProperties: false,
};

const resources = {
  "test://static-text": { mimeType: "text/plain", text: "This is the content of the static text resource." },
  "test://static-binary": { mimeType: "image/png", blob: PIXEL },
  "test://watched-resource": { mimeType: "text/plain", text: "Watched resource content" },
};
const user = (content) => ({ role: "user", content });
const prompts = {
  test_simple_prompt: [[], () => [user(text("This is a simple prompt for testing."))]],
  test_prompt_with_arguments: [["arg1", "arg2"], ({ arg1, arg2 }) => [
    user(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
  ]],
  test_prompt_with_embedded_resource: [["resourceUri"], ({ resourceUri }) => [
    user(embedded(resourceUri, "text/plain", "Embedded resource content for testing.")),
    user(text("Please process the embedded resource above.")),
  ]],
  test_prompt_with_image: [[], () => [user(image), user(text("Please analyze the image above."))]],
};

const capabilities = { tools: {}, resources: { subscribe: true }, prompts: {}, logging: {}, completions: {} };
const server = new Server({ name: "conformance", version: "1.0.0" }, { capabilities });
const on = (schema, handler) => server.setRequestHandler(types[`${schema}RequestSchema`], handler);

on("ListTools", () => ({
  tools: Object.entries(tools).map(([name, [properties]]) => ({
    name,
    description: `Tests ${name}`,
    inputSchema: name.startsWith("json_schema") ? schema2020 : { type: "object", properties, required: Object.keys(properties) },
  })),
}));
on("CallTool", async ({ params }, extra) => {
  try {
    return { content: await tools[params.name][1](params.arguments ?? {}, extra) };
  } catch (error) {
    return { content: [text(error.message)], isError: true };
  }
});
on("ListResources", () => ({
  resources: Object.entries(resources).map(([uri, { mimeType }]) => ({ uri, name: uri.slice(7), description: uri, mimeType })),
}));
on("ListResourceTemplates", () => ({
  resourceTemplates: [{ uriTemplate: "test://template/{id}/data", name: "template", mimeType: "application/json" }],
}));
on("ReadResource", ({ params: { uri } }) => {
  const id = /^test:\/\/template\/(.+)\/data$/.exec(uri)?.[1];
  const data = { mimeType: "application/json", text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) };
  return { contents: [{ uri, ...(resources[uri] ?? data) }] };
});
on("Subscribe", () => ({}));
on("Unsubscribe", () => ({}));
on("ListPrompts", () => ({
  prompts: Object.entries(prompts).map(([name, [names]]) => ({
    name,
    description: `Tests ${name}`,
    arguments: names.map((argument) => ({ name: argument, description: argument, required: true })),
  })),
}));
on("GetPrompt", ({ params }) => ({ messages: prompts[params.name][1](params.arguments ?? {}) }));
on("SetLevel", () => ({}));
on("Complete", () => ({ completion: { values: ["paris", "park"], total: 2, hasMore: false } }));

await server.connect(new StdioServerTransport());
