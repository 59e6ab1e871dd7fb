// Client options for one server, which is also how each node of a cluster is reached. What sentinels need besides is in
// sentinel.ts.
import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";
import { Redis, type RedisOptions } from "ioredis";
import { addressOptions } from "./address.ts";

/** Where Redis is and how to talk to it. */
export interface RedisTarget {
  readonly type: "single" | "sentinel" | "cluster";
  /**
   * For a single server `host:port`, a socket path that starts with `/`, or a `redis://` or `rediss://` address; for
   * sentinels `master,host:port,…`; for a cluster `host:port,…`.
   */
  readonly url: string;
  /** `password` or `user:password`, cut at the first colon; empty for none. */
  readonly auth: string;
  /** The same for the sentinels. */
  readonly sentinelAuth: string;
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

/** First and longest wait for a server that was there before: every call fails until it is back. */
export const RECONNECT_MS = [50, 2_000] as const;

// The client's types forbid the `undefined` that it allows in `replyMapping`, so that is left out here.
export type ClientOptions = Omit<RedisOptions, "replyMapping">;

/** @throws Error with a message for the operator when the address cannot be read */
export function createClient(target: RedisTarget): Redis {
  return carefulClient(target, {
    ...addressOptions(target.url),
    ...(target.tls === undefined ? {} : { tls: tlsOptions(target.tls) }),
  });
}

/**
 * A client that never queues, never resends and never gives up: while the server is away every command fails at once,
 * and a command whose outcome is unknown is not sent again (it would count twice).
 */
export function carefulClient(target: RedisTarget, where: ClientOptions): Redis {
  let wasConnected = false;
  const options: ClientOptions = {
    ...where,
    ...authOptions(target.auth),
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

/** Exponential back-off with equal jitter: half of the step is fixed, half is up to `random` (0 to 1). */
export function retryDelayMs(attempt: number, minMs: number, maxMs: number, random: number): number {
  const step = Math.min(maxMs, minMs * 2 ** Math.min(attempt - 1, 30));
  return Math.round(step / 2 + (step / 2) * random);
}

/** From `password` or `user:password`; nothing from an empty text. */
export function authOptions(auth: string): Pick<RedisOptions, "username" | "password"> {
  if (auth === "") return {};
  const colon = auth.indexOf(":");
  return colon < 0 ? { password: auth } : { username: auth.slice(0, colon), password: auth.slice(colon + 1) };
}

export function tlsOptions(tls: RedisTls): ConnectionOptions {
  return {
    ...(tls.caFile === "" ? {} : { ca: readFileSync(tls.caFile) }),
    ...(tls.certFile === "" ? {} : { cert: readFileSync(tls.certFile) }),
    ...(tls.keyFile === "" ? {} : { key: readFileSync(tls.keyFile) }),
    ...(tls.skipHostnameVerification ? { checkServerIdentity: () => undefined } : {}),
  };
}
