// What sentinels add to one server: they name the master before every attempt to connect, and announce a new one.
import { Redis } from "ioredis";
import { sentinelAddresses } from "./address.ts";
import {
  authOptions,
  type ClientOptions,
  carefulClient,
  RECONNECT_MS,
  type RedisTarget,
  retryDelayMs,
  tlsOptions,
} from "./connect.ts";

/**
 * A client of whichever server the sentinels call the master, as careful as any.
 *
 * @throws Error with a message for the operator when the addresses cannot be read
 */
export function createSentinelClient(target: RedisTarget): Redis {
  const { username, password } = authOptions(target.sentinelAuth);
  const tls = target.tls === undefined ? undefined : tlsOptions(target.tls);
  return carefulClient(target, {
    ...sentinelAddresses(target.url),
    role: "master",
    sentinelCommandTimeout: target.connectTimeoutMs,
    sentinelRetryStrategy: (attempt) => retry(attempt, target),
    ...(username === undefined ? {} : { sentinelUsername: username }),
    ...(password === undefined ? {} : { sentinelPassword: password }),
    ...(tls === undefined ? {} : { tls, sentinelTLS: tls, enableTLSForSentinelMode: true }),
  });
}

/**
 * Listens to every sentinel for the announcement of another master. Without it a master that is frozen or cut off would
 * be held on to until its connection is given up.
 *
 * @returns ends it
 */
export function watchSentinels(target: RedisTarget, onSwitch: () => void): () => void {
  const { name, sentinels } = sentinelAddresses(target.url);
  const options: ClientOptions = {
    ...authOptions(target.sentinelAuth),
    ...(target.tls === undefined ? {} : { tls: tlsOptions(target.tls) }),
    protocol: 2,
    connectTimeout: target.connectTimeoutMs,
    // Subscribes again after every loss of the connection.
    autoResubscribe: true,
    maxRetriesPerRequest: null,
    retryStrategy: (attempt) => retry(attempt, target),
  };
  const clients = sentinels.map((sentinel) => {
    const client = new Redis({ ...options, ...sentinel });
    // Whoever asks this sentinel for the master tells of it.
    client.on("error", () => undefined);
    client.on("message", (_channel: string, message: string) => {
      if (message.startsWith(`${name} `)) onSwitch();
    });
    client.subscribe("+switch-master").catch(() => undefined);
    return client;
  });
  return () => {
    for (const client of clients) client.disconnect();
  };
}

function retry(attempt: number, { retryMinMs, retryMaxMs }: RedisTarget): number {
  return retryDelayMs(attempt, retryMinMs, Math.min(retryMaxMs, RECONNECT_MS[1]), Math.random());
}
