// Client options for one Redis server. Sentinel and Cluster are not here yet.
import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";
import { Redis, type RedisOptions } from "ioredis";

/** Where the server is and how to talk to it. */
export interface RedisTarget {
  /** `host:port`, a socket path that starts with `/`, or a `redis://` or `rediss://` address. */
  readonly url: string;
  /** `password` or `user:password`, cut at the first colon; empty for none. */
  readonly auth: string;
  readonly tls: RedisTls | undefined;
  /** Bounds dialling and the handshake. */
  readonly connectTimeoutMs: number;
  /** First and longest wait between attempts to connect for the first time; doubles in between, with jitter. */
  readonly retryMinMs: number;
  readonly retryMaxMs: number;
}

export interface RedisTls {
  /** PEM files; empty for none. */
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
  readonly skipHostnameVerification: boolean;
}

/**
 * A client that never queues, never resends and never gives up: while the server is away every command fails at once,
 * and a command whose outcome is unknown is not sent again (it would count twice).
 */
export function createClient(target: RedisTarget): Redis {
  let wasConnected = false;
  // `replyMapping` is left out because its type there forbids the `undefined` that it allows here.
  const options: Omit<RedisOptions, "replyMapping"> = {
    ...addressOptions(target.url),
    ...authOptions(target.auth),
    ...(target.tls === undefined ? {} : { tls: tlsOptions(target.tls) }),
    // Proxies in front of Redis speak only this one.
    protocol: 2,
    lazyConnect: true,
    connectTimeout: target.connectTimeoutMs,
    // A connection on which nothing comes back for so long is lost, whatever TCP believes.
    socketTimeout: target.connectTimeoutMs,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (attempt) => {
      const [minMs, maxMs] = wasConnected ? RECONNECT_MS : [target.retryMinMs, target.retryMaxMs];
      return retryDelayMs(attempt, minMs, maxMs, Math.random());
    },
  };
  const client = new Redis(options);
  client.once("ready", () => {
    wasConnected = true;
  });
  return client;
}

/** First and longest wait for a server that was there before: every call fails until it is back. */
const RECONNECT_MS = [50, 2_000] as const;

/** Exponential back-off with equal jitter: half of the step is fixed, half is up to `random` (0 to 1). */
export function retryDelayMs(attempt: number, minMs: number, maxMs: number, random: number): number {
  const step = Math.min(maxMs, minMs * 2 ** Math.min(attempt - 1, 30));
  return Math.round(step / 2 + (step / 2) * random);
}

/** Where and as whom to connect. */
type AddressOptions = Pick<RedisOptions, "path" | "host" | "port" | "db" | "username" | "password" | "tls">;

/** @throws Error with a message for the operator when the address cannot be read */
export function addressOptions(url: string): AddressOptions {
  if (url.startsWith("/")) return { path: url };
  if (/^rediss?:\/\//.test(url)) return urlOptions(url);
  const [, ipv6, name, port] = /^(?:\[([0-9a-fA-F:.]+)\]|([^:/\s]+)):(\d+)$/.exec(url) ?? [];
  const host = ipv6 ?? name;
  if (host === undefined || Number(port) > 65_535) {
    throw new Error(`"${url}" is no Redis address: use host:port, /path/to/socket or redis://host:port/db`);
  }
  return { host, port: Number(port) };
}

function urlOptions(url: string): AddressOptions {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  const db = parsed?.pathname.replace(/^\//, "") ?? "";
  if (parsed === undefined || parsed.hostname === "" || !/^\d*$/.test(db)) {
    throw new Error(
      `"${url.replace(/\/\/.*@/, "//***@")}" is no Redis address: use redis://user:password@host:port/db`,
    );
  }
  return {
    host: parsed.hostname.replace(/^\[|\]$/g, ""),
    port: parsed.port === "" ? 6379 : Number(parsed.port),
    ...(parsed.username === "" ? {} : { username: decodeURIComponent(parsed.username) }),
    ...(parsed.password === "" ? {} : { password: decodeURIComponent(parsed.password) }),
    ...(db === "" ? {} : { db: Number(db) }),
    ...(parsed.protocol === "rediss:" ? { tls: {} } : {}),
  };
}

function authOptions(auth: string): Pick<RedisOptions, "username" | "password"> {
  if (auth === "") return {};
  const colon = auth.indexOf(":");
  return colon < 0 ? { password: auth } : { username: auth.slice(0, colon), password: auth.slice(colon + 1) };
}

function tlsOptions(tls: RedisTls): ConnectionOptions {
  return {
    ...(tls.caFile === "" ? {} : { ca: readFileSync(tls.caFile) }),
    ...(tls.certFile === "" ? {} : { cert: readFileSync(tls.certFile) }),
    ...(tls.keyFile === "" ? {} : { key: readFileSync(tls.keyFile) }),
    ...(tls.skipHostnameVerification ? { checkServerIdentity: () => undefined } : {}),
  };
}
