// How REDIS_URL names servers: one server, the nodes of a cluster, or a master and its sentinels.
import type { RedisOptions } from "ioredis";

/** Where and as whom to connect. */
export type AddressOptions = Pick<RedisOptions, "path" | "host" | "port" | "db" | "username" | "password" | "tls">;

export interface HostAndPort {
  readonly host: string;
  readonly port: number;
}

/** @throws Error with a message for the operator when the address cannot be read */
export function addressOptions(url: string): AddressOptions {
  if (url.startsWith("/")) return { path: url };
  if (/^rediss?:\/\//.test(url)) return urlOptions(url);
  const address = hostAndPort(url);
  if (address === undefined) {
    throw new Error(`"${url}" is no Redis address: use host:port, /path/to/socket or redis://host:port/db`);
  }
  return address;
}

/**
 * The nodes of a cluster to begin with, from `host:port,host:port,…`.
 *
 * @throws Error with a message for the operator
 */
export function clusterSeeds(url: string): HostAndPort[] {
  return addressList(items(url), "REDIS_TYPE=CLUSTER wants REDIS_URL=host:port,host:port,…");
}

/**
 * A master's name and its sentinels, from `master,host:port,host:port,…`.
 *
 * @throws Error with a message for the operator
 */
export function sentinelAddresses(url: string): { name: string; sentinels: HostAndPort[] } {
  const help =
    "REDIS_TYPE=SENTINEL wants REDIS_URL=master-name,host:port,host:port,… with the sentinels after the name";
  const [name = "", ...rest] = items(url);
  if (name === "" || /[:/]/.test(name)) throw new Error(`"${hidden(name)}" is no name of a master: ${help}`);
  if (rest.length === 0) throw new Error(`"${name}" has no sentinel behind it: ${help}`);
  return { name, sentinels: addressList(rest, help) };
}

/** `host:port` as Redis and its messages write it, IPv6 without brackets; `undefined` when it is none. */
export function looseHostAndPort(text: string): HostAndPort | undefined {
  const colon = text.lastIndexOf(":");
  return hostAndPort(text.includes("[") || colon < 0 ? text : joined(text.slice(0, colon), text.slice(colon + 1)));
}

/** How an address is shown, and told from others. */
export function addressText({ host, port }: HostAndPort): string {
  return joined(host, `${port}`);
}

function joined(host: string, port: string): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

function items(url: string): string[] {
  return url.split(",").map((item) => item.trim());
}

function addressList(list: readonly string[], help: string): HostAndPort[] {
  return list.map((item) => {
    const address = hostAndPort(item);
    if (address === undefined) {
      throw new Error(`"${hidden(item)}" is no host:port: ${help}; passwords and TLS have settings of their own`);
    }
    return address;
  });
}

function hostAndPort(text: string): HostAndPort | undefined {
  const [, ipv6, name, port] = /^(?:\[([0-9a-fA-F:.]+)\]|([^:/\s]+)):(\d+)$/.exec(text) ?? [];
  const host = ipv6 ?? name;
  return host === undefined || Number(port) > 65_535 ? undefined : { host, port: Number(port) };
}

function urlOptions(url: string): AddressOptions {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  const db = parsed?.pathname.replace(/^\//, "") ?? "";
  if (parsed === undefined || parsed.hostname === "" || !/^\d*$/.test(db)) {
    throw new Error(`"${hidden(url)}" is no Redis address: use redis://user:password@host:port/db`);
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

/** Without a password that stands in it. */
function hidden(url: string): string {
  return url.replace(/\/\/.*@/, "//***@");
}
