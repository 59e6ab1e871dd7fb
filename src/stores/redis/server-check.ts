// Reads from INFO whether a server can be used: Redis 6.2 or later, Valkey 7.2 or later.

export interface ServerReport {
  /** For the log: `Redis 7.0.15`. */
  readonly server: string;
  /** Why the server is refused. */
  readonly refused: string | undefined;
  readonly warning: string | undefined;
}

/** Policies under which a counter is never dropped before its time, or only when it is nearest to expiry. */
const SAFE_POLICIES: readonly string[] = ["noeviction", "volatile-ttl"];

/** @param info the reply of INFO */
export function checkServer(info: string): ServerReport {
  const fields = new Map<string, string>();
  for (const line of info.split(/\r?\n/)) {
    const colon = line.indexOf(":");
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1));
  }
  const isValkey = fields.has("valkey_version");
  const version = fields.get("valkey_version") ?? fields.get("redis_version") ?? "";
  const server = `${isValkey ? "Valkey" : "Redis"} ${version || "of unknown version"}`;
  const [wantMajor, wantMinor] = isValkey ? [7, 2] : [6, 2];
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const policy = fields.get("maxmemory_policy") ?? "noeviction";
  return {
    server,
    refused:
      major > wantMajor || (major === wantMajor && minor >= wantMinor)
        ? undefined
        : `${server} is too old: weir needs Redis 6.2 or Valkey 7.2, or later`,
    warning: SAFE_POLICIES.includes(policy)
      ? undefined
      : `maxmemory-policy is ${policy}: when ${server} is full it may drop counters, and then weir forgets what they ` +
        `counted; set noeviction or volatile-ttl`,
  };
}
