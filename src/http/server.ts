// The HTTP port: POST /json and /healthcheck, with the answers that envoyproxy/ratelimit gives.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";

/** What the routes need; the answers themselves are made elsewhere. */
export interface HttpHandlers {
  /** Rejects when the request could not be answered; the message says why. */
  readonly json: (body: Uint8Array) => Promise<{ readonly overLimit: boolean; readonly body: string }>;
  readonly isHealthy: () => boolean;
  /** Larger bodies are answered 413. */
  readonly maxBodyBytes: number;
  /** Told of each request on /json that was not answered. */
  readonly onError: (error: unknown) => void;
}

const TEXT = "text/plain; charset=utf-8";

export function createHttpServer(handlers: HttpHandlers): Server {
  return createServer((request, response) => {
    const path = (request.url ?? "").split("?", 1)[0];
    if (path === "/json") void answerJson(handlers, request, response);
    else if (path === "/healthcheck") answerHealth(handlers, request, response);
    else reply(response, 404, TEXT, "404 page not found\n");
  });
}

function answerHealth(handlers: HttpHandlers, request: IncomingMessage, response: ServerResponse): void {
  request.resume();
  if (handlers.isHealthy()) reply(response, 200, TEXT, "OK");
  else response.writeHead(500, { "content-length": 0 }).end();
}

async function answerJson(handlers: HttpHandlers, request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    const body = await readBody(request, handlers.maxBodyBytes);
    if (body === undefined) {
      reply(response, 413, TEXT, `a request may have ${handlers.maxBodyBytes} bytes at the most\n`);
      return;
    }
    const answer = await handlers.json(body);
    reply(response, answer.overLimit ? 429 : 200, "application/json", answer.body);
  } catch (error) {
    handlers.onError(error);
    // The body is the peer's, which clients may know; the reason goes beside it.
    if (!response.headersSent) response.setHeader("weir-error", headerText(error));
    reply(response, 400, TEXT, "Bad Request\n");
  }
}

/** `undefined` when the body is larger than allowed; the rest of it is then not kept. */
async function readBody(request: IncomingMessage, maxBytes: number): Promise<Uint8Array | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function headerText(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.replace(/[^ -~]/g, "?").slice(0, 500);
}

function reply(response: ServerResponse, status: number, contentType: string, body: string): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, { "content-type": contentType, "content-length": Buffer.byteLength(body) }).end(body);
}
