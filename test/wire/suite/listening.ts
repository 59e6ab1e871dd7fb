// Where a server can listen, and what it says when it cannot.
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { GrpcServer } from "../../../src/wire/door.ts";
import { call, grpcClient } from "../support/grpc-client.ts";
import { type CreateServer, ECHO, LIMITS } from "../support/test-service.ts";

export function describeListening(transport: string, create: CreateServer): void {
  describe(`${transport}: listening`, () => {
    let folder = "";

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), "weir-"));
    });
    afterAll(() => rm(folder, { recursive: true }));

    function newServer(): GrpcServer {
      return create({
        routes: { unary: new Map([[ECHO, (message) => message]]), streaming: new Map() },
        limits: LIMITS,
        onBug: () => {},
      });
    }

    async function answers(target: string): Promise<boolean> {
      const client = grpcClient(target);
      const { reply } = await call(client, ECHO, "hello", { deadline: Date.now() + 10_000 });
      client.close();
      return reply === "hello";
    }

    it("on every address of the machine, IPv4 and IPv6, with ::", async () => {
      const server = newServer();
      const port = await server.listen({ kind: "tcp", host: "::", port: 0 });
      expect(port).toBeGreaterThan(0);
      expect(await answers(`127.0.0.1:${port}`)).toBe(true);
      expect(await answers(`[::1]:${port}`)).toBe(true);
      await server.drain(0);
    });

    it("on a port that is taken is refused by name", async () => {
      const server = newServer();
      const port = await server.listen({ kind: "tcp", host: "127.0.0.1", port: 0 });
      await expect(newServer().listen({ kind: "tcp", host: "127.0.0.1", port })).rejects.toThrow(
        `cannot listen on 127.0.0.1:${port}: the address is in use`,
      );
      await server.drain(0);
    });

    it("on an address that is not there is refused by name", async () => {
      await expect(newServer().listen({ kind: "tcp", host: "192.0.2.1", port: 1 })).rejects.toThrow(
        "cannot listen on 192.0.2.1:1: EADDRNOTAVAIL",
      );
      await expect(newServer().listen({ kind: "tcp", host: "2001:db8::1", port: 1 })).rejects.toThrow(
        "cannot listen on [2001:db8::1]:1: EADDRNOTAVAIL",
      );
    });

    it("on a Unix socket, whose file is gone afterwards", async () => {
      const path = join(folder, "plain.sock");
      const server = newServer();
      expect(await server.listen({ kind: "unix", path })).toBe(0);
      expect(await answers(`unix:${path}`)).toBe(true);
      await server.drain(0);
      await expect(stat(path)).rejects.toThrow("ENOENT");
    });

    it("on a Unix socket that a dead server left behind", async () => {
      const path = join(folder, "stale.sock");
      await leaveSocket(path);
      const server = newServer();
      await server.listen({ kind: "unix", path });
      expect(await answers(`unix:${path}`)).toBe(true);
      await server.drain(0);
    });

    it("on a Unix socket that another server uses is refused, and that one goes on", async () => {
      const path = join(folder, "taken.sock");
      const server = newServer();
      await server.listen({ kind: "unix", path });
      await expect(newServer().listen({ kind: "unix", path })).rejects.toThrow(
        `cannot listen on ${path}: the address is in use`,
      );
      expect(await answers(`unix:${path}`)).toBe(true);
      await server.drain(0);
    });

    it("in place of another file is refused, and the file stays", async () => {
      const path = join(folder, "notes.txt");
      await writeFile(path, "precious");
      await expect(newServer().listen({ kind: "unix", path })).rejects.toThrow(
        `cannot listen on ${path}: another file is there`,
      );
      expect((await stat(path)).size).toBe("precious".length);
    });
  });
}

/** Leaves a socket file that nobody listens on, as a killed process does: hard links outlive the close. */
async function leaveSocket(path: string): Promise<void> {
  const { link } = await import("node:fs/promises");
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(`${path}.origin`, resolve));
  await link(`${path}.origin`, path);
  await new Promise((resolve) => server.close(resolve));
}
