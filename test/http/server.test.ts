import { request as httpRequest, type Server } from "node:http";
import { connect } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { closeServer } from "../../src/http/close-server.ts";
import { createHttpServer, type HttpHandlers } from "../../src/http/server.ts";
import { listen } from "../../src/wire/listen.ts";

let server: Server | undefined;
const errors: unknown[] = [];

async function start(handlers: Partial<HttpHandlers> = {}): Promise<number> {
  errors.length = 0;
  server = createHttpServer({
    json: async (body) => ({ overLimit: false, body: `{"echo":"${Buffer.from(body).toString()}"}` }),
    isHealthy: () => true,
    maxBodyBytes: 64,
    onError: (error) => errors.push(error),
    ...handlers,
  });
  return listen(server, { kind: "tcp", host: "127.0.0.1", port: 0 });
}

afterEach(async () => {
  if (server !== undefined) await closeServer(server, 0);
});

interface Answer {
  readonly status: number | undefined;
  readonly type: string | undefined;
  readonly reason: string | string[] | undefined;
  readonly body: string;
}

/** By node:http, because fetch sends no body with a GET. */
function ask(port: number, method: string, path: string, body = ""): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { host: "127.0.0.1", port, method, path, headers: { "content-length": body.length } },
      async (response) => {
        let text = "";
        for await (const chunk of response) text += chunk;
        const { statusCode: status, headers } = response;
        resolve({ status, type: headers["content-type"], reason: headers["weir-error"], body: text });
      },
    );
    request.once("error", reject);
    request.end(body);
  });
}

describe("the HTTP port", () => {
  it("answers /json whatever the method, with 200 or 429", async () => {
    const port = await start();
    const type = "application/json";
    expect(await ask(port, "POST", "/json", "hi")).toMatchObject({ status: 200, type, body: '{"echo":"hi"}' });
    expect(await ask(port, "GET", "/json?x=1", "hi")).toMatchObject({ status: 200, type });
    await closeServer(server as Server, 0);
    const refusing = await start({ json: async () => ({ overLimit: true, body: "{}" }) });
    expect(await ask(refusing, "POST", "/json", "hi")).toMatchObject({ status: 429, type, body: "{}" });
  });

  it("answers what it cannot decide as the peer does, with the reason in a clean header", async () => {
    const port = await start({ json: () => Promise.reject(new Error("no\r\nx: 1 \xff rules")) });
    expect(await ask(port, "POST", "/json", "hi")).toEqual({
      status: 400,
      type: "text/plain; charset=utf-8",
      reason: "no??x: 1 ? rules",
      body: "Bad Request\n",
    });
    expect(errors).toHaveLength(1);
  });

  it("refuses a body that is too large", async () => {
    const port = await start();
    expect(await ask(port, "POST", "/json", "x".repeat(64))).toMatchObject({ status: 200 });
    expect(await ask(port, "POST", "/json", "x".repeat(65))).toMatchObject({
      status: 413,
      body: "a request may have 64 bytes at the most\n",
    });
  });

  it("says whether it is healthy", async () => {
    let healthy = true;
    const port = await start({ isHealthy: () => healthy });
    expect(await ask(port, "POST", "/healthcheck")).toMatchObject({ status: 200, body: "OK" });
    healthy = false;
    expect(await ask(port, "GET", "/healthcheck")).toMatchObject({ status: 500, type: undefined, body: "" });
  });

  it.each(["/", "/nope", "/json/"])("knows no %s", async (path) => {
    const port = await start();
    expect(await ask(port, "GET", path)).toMatchObject({ status: 404, body: "404 page not found\n" });
  });

  it("survives a client that hangs up within its body", async () => {
    const port = await start();
    const socket = connect(port, "127.0.0.1");
    socket.write("POST /json HTTP/1.1\r\nhost: x\r\ncontent-length: 50\r\n\r\nhalf");
    const seen = new Promise((resolve) => server?.once("request", (request) => request.once("close", resolve)));
    await new Promise((resolve) => server?.once("request", resolve));
    socket.destroy();
    await seen;
    expect(await ask(port, "GET", "/healthcheck")).toMatchObject({ status: 200 });
  });
});
