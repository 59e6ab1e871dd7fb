import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createDebugServer } from "../../src/admin/server.ts";
import { closeServer } from "../../src/http/close-server.ts";
import { listen } from "../../src/wire/listen.ts";

describe("the debug port", () => {
  const server = createDebugServer([
    { path: "/one", help: "a page", contentType: "text/plain", render: () => "first\n" },
    {
      path: "/broken",
      help: "a page that fails",
      contentType: "text/plain",
      render: () => Promise.reject(new Error("why")),
    },
  ]);
  let base = "";

  beforeAll(async () => {
    base = `http://127.0.0.1:${await listen(server, { kind: "tcp", host: "127.0.0.1", port: 0 })}`;
  });
  afterAll(() => closeServer(server, 0));

  it("shows its pages", async () => {
    const response = await fetch(`${base}/one?x=1`);
    expect([response.status, response.headers.get("content-type"), await response.text()]).toEqual([
      200,
      "text/plain",
      "first\n",
    ]);
  });

  it("shows the index on any other path", async () => {
    for (const path of ["/", "/nope"]) {
      const response = await fetch(`${base}${path}`);
      expect([response.status, await response.text()]).toEqual([200, "/broken: a page that fails\n/one: a page\n"]);
    }
  });

  it("says why a page cannot be shown", async () => {
    const response = await fetch(`${base}/broken`);
    expect([response.status, await response.text()]).toEqual([500, "why\n"]);
  });
});
