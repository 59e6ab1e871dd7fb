// The debug port: read-only pages for operators and scrapers.
import { createServer, type Server, type ServerResponse } from "node:http";

/** One page: its path, a line of help for the index, and what it shows. */
export interface Page {
  readonly path: string;
  readonly help: string;
  readonly contentType: string;
  readonly render: () => string | Promise<string>;
}

/** Any path that is no page shows the index, as at envoyproxy/ratelimit. */
export function createDebugServer(pages: readonly Page[]): Server {
  const index = pages
    .map(({ path, help }) => `${path}: ${help}\n`)
    .sort()
    .join("");
  return createServer((request, response) => {
    request.resume();
    const path = (request.url ?? "").split("?", 1)[0];
    const page = pages.find((candidate) => candidate.path === path);
    if (page === undefined) send(response, 200, "text/plain; charset=utf-8", index);
    else void show(page, response);
  });
}

async function show(page: Page, response: ServerResponse): Promise<void> {
  try {
    send(response, 200, page.contentType, await page.render());
  } catch (error) {
    send(response, 500, "text/plain; charset=utf-8", `${error instanceof Error ? error.message : String(error)}\n`);
  }
}

function send(response: ServerResponse, status: number, contentType: string, body: string): void {
  response.writeHead(status, { "content-type": contentType, "content-length": Buffer.byteLength(body) }).end(body);
}
