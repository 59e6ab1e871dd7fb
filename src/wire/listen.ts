// Opens a listener on a TCP port or a Unix socket, with errors that an operator can act on.
import { lstat, unlink } from "node:fs/promises";
import { connect, type Server } from "node:net";
import type { ListenAddress } from "./door.ts";

/**
 * Resolves with the TCP port in use, 0 for a Unix socket. A socket file that nobody listens on any more is replaced;
 * Node removes ours when the server closes.
 */
export async function listen(server: Server, address: ListenAddress): Promise<number> {
  try {
    await open(server, address);
  } catch (error) {
    if (address.kind === "tcp" || codeOf(error) !== "EADDRINUSE") throw describe(address, codeOf(error), error);
    const there = await whatIsAt(address.path);
    if (there !== "stale socket") throw describe(address, there, error);
    await unlink(address.path);
    await open(server, address);
  }
  const bound = server.address();
  return bound === null || typeof bound === "string" ? 0 : bound.port;
}

async function open(server: Server, address: ListenAddress): Promise<void> {
  const options = address.kind === "tcp" ? { host: address.host, port: address.port } : { path: address.path };
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

async function whatIsAt(path: string): Promise<"stale socket" | "EADDRINUSE" | "another file is there"> {
  if (!(await lstat(path)).isSocket()) return "another file is there";
  return new Promise((resolve) => {
    const probe = connect(path);
    probe.once("connect", () => {
      probe.destroy();
      resolve("EADDRINUSE");
    });
    probe.once("error", (error) => resolve(codeOf(error) === "ECONNREFUSED" ? "stale socket" : "EADDRINUSE"));
  });
}

function describe(address: ListenAddress, reason: unknown, cause: unknown): Error {
  const why = reason === "EADDRINUSE" ? "the address is in use" : String(reason ?? cause);
  return new Error(`cannot listen on ${addressText(address)}: ${why}`, { cause });
}

/** `host:port`, `[host]:port` for IPv6, or the path. */
export function addressText(address: ListenAddress): string {
  if (address.kind === "unix") return address.path;
  return address.host.includes(":") ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
