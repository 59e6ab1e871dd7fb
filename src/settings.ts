// Every setting: name, type, default, help. Settings come from the environment alone and are read once, at start.
// Names and meanings are envoyproxy/ratelimit's where it has them; what is weir's own starts with WEIR_.
import { DEFAULT_LOG_LIMIT, MAX_LOG_LIMIT } from "./core/algorithms/sliding-log.ts";
import { parseDuration } from "./core/duration.ts";

/** One environment variable. `parse` throws an Error whose message says what would be right. */
interface Setting<Value> {
  readonly name: string;
  /** As it would be written in the environment. */
  readonly fallback: string;
  readonly type: string;
  readonly help: string;
  readonly parse: (text: string) => Value;
}

const TRUE: readonly string[] = ["1", "t", "T", "true", "TRUE", "True"];
const FALSE: readonly string[] = ["0", "f", "F", "false", "FALSE", "False"];

function text(name: string, fallback: string, help: string): Setting<string> {
  return { name, fallback, type: "text", help, parse: (value) => value };
}

function flag(name: string, fallback: boolean, help: string): Setting<boolean> {
  const parse = (value: string): boolean => {
    if (TRUE.includes(value)) return true;
    if (FALSE.includes(value)) return false;
    throw new Error("must be true or false");
  };
  return { name, fallback: `${fallback}`, type: "true or false", help, parse };
}

function integer(name: string, fallback: number, min: number, max: number, help: string): Setting<number> {
  const parse = (value: string): number => {
    const number = Number(value);
    if (/^\d+$/.test(value) && number >= min && number <= max) return number;
    throw new Error(`must be a whole number from ${min} to ${max}`);
  };
  return { name, fallback: `${fallback}`, type: `${min} to ${max}`, help, parse };
}

function port(name: string, fallback: number, help: string): Setting<number> {
  return { ...integer(name, fallback, 0, 65_535, help), type: "port" };
}

/** Headers that would break a response if an answer set them. */
const FRAMING_HEADERS: readonly string[] = [
  "connection",
  "content-length",
  "host",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

/** The name of a header that answers may set (RFC 9110, section 5.1). */
function header(name: string, fallback: string, help: string): Setting<string> {
  const parse = (value: string): string => {
    if (/^[\w!#$%&'*+.^`|~-]+$/.test(value) && !FRAMING_HEADERS.includes(value.toLowerCase())) return value;
    throw new Error("must be the name of a header that a response may carry");
  };
  return { name, fallback, type: "header", help, parse };
}

/** The longest time that a timer can wait, 24 days. Milliseconds. */
const MAX_DURATION_MS = 2 ** 31 - 1;

/**
 * Milliseconds, rounded up.
 *
 * @param minMs 0 where no time at all means something, else 1
 */
function duration(name: string, fallback: string, minMs: 0 | 1, help: string): Setting<number> {
  const parse = (value: string): number => {
    const us = parseDuration(value);
    if (typeof us !== "number") throw new Error(`must be a duration: ${us.problem}`);
    const ms = Math.ceil(us / 1_000);
    if (ms < minMs) throw new Error("must be longer than 0");
    if (ms > MAX_DURATION_MS) throw new Error("must be 24 days at the most");
    return ms;
  };
  return { name, fallback, type: "duration", help, parse };
}

/** Compared without regard to case, as the peer does. */
function choice<Choice extends string>(
  name: string,
  fallback: string,
  choices: Readonly<Record<string, Choice>>,
  help: string,
): Setting<Choice> {
  const words = Object.keys(choices).filter((word) => word !== "");
  const parse = (value: string): Choice => {
    const word = value.toLowerCase();
    const found = Object.hasOwn(choices, word) ? choices[word] : undefined;
    if (found === undefined) throw new Error(`must be one of ${words.join(", ")}`);
    return found;
  };
  return { name, fallback, type: words.join(", "), help, parse };
}

/** A setting of which only some values are here yet: another one stops the start instead of being ignored. */
function only<Value>(setting: Setting<Value>, allowed: Value, missing: string): Setting<Value> {
  const parse = (value: string): Value => {
    const parsed = setting.parse(value);
    if (parsed !== allowed) throw new Error(missing);
    return parsed;
  };
  return { ...setting, parse };
}

const LEVELS = {
  panic: "fatal",
  fatal: "fatal",
  error: "error",
  warn: "warn",
  warning: "warn",
  info: "info",
  debug: "debug",
  trace: "trace",
} as const;

const DEFINITIONS = {
  host: text("HOST", "0.0.0.0", "Address of the HTTP port"),
  port: port("PORT", 8080, "HTTP port: /json and /healthcheck"),
  grpcHost: text("GRPC_HOST", "0.0.0.0", "Address of the gRPC port"),
  grpcPort: port("GRPC_PORT", 8081, "gRPC port: RateLimitService and health"),
  grpcUds: text("GRPC_UDS", "", "Path of a Unix socket that takes the place of the gRPC port"),
  debugHost: text("DEBUG_HOST", "0.0.0.0", "Address of the debug port"),
  debugPort: port("DEBUG_PORT", 6070, "Debug port: /metrics and /rlconfig"),
  grpcServerUseTls: only(
    flag("GRPC_SERVER_USE_TLS", false, "TLS on the gRPC port"),
    false,
    "TLS is not here yet: put weir behind a proxy that ends TLS, or leave this false",
  ),

  logLevel: choice("LOG_LEVEL", "WARN", LEVELS, "Least severe level that is logged"),
  logFormat: choice("LOG_FORMAT", "text", { text: "text", json: "json" }, "Form of log lines"),

  runtimeRoot: text("RUNTIME_ROOT", "/srv/runtime_data/current", "Rules are read from ROOT/SUBDIRECTORY/APPDIRECTORY"),
  runtimeSubdirectory: text("RUNTIME_SUBDIRECTORY", "", "See RUNTIME_ROOT"),
  runtimeAppDirectory: text("RUNTIME_APPDIRECTORY", "config", "See RUNTIME_ROOT"),
  reloadInterval: duration(
    "WEIR_RELOAD_INTERVAL",
    "1s",
    0,
    "How often rule files are looked at for changes; 0 for never",
  ),
  mergeDomainConfig: flag("MERGE_DOMAIN_CONFIG", false, "Files may add top-level rules to a domain of another file"),
  configType: only(
    choice("CONFIG_TYPE", "FILE", { file: "file", grpc_xds_sotw: "xds" }, "Where rules come from"),
    "file",
    "only FILE is here yet",
  ),
  healthyWithConfig: flag("HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", false, "Be healthy only with at least one domain"),

  backendType: choice(
    "BACKEND_TYPE",
    "",
    { "": "auto", redis: "redis", memory: "memory" },
    "Where counters live; unset means redis if REDIS_URL is set, else memory",
  ),
  maxCounters: integer("WEIR_MEMORY_MAX_COUNTERS", 1_000_000, 1, 16_000_000, "Most counters of the memory store"),
  slidingLogMax: integer(
    "WEIR_SLIDING_LOG_MAX",
    DEFAULT_LOG_LIMIT,
    1,
    MAX_LOG_LIMIT,
    "Largest limit of a sliding_window_log, which remembers every hit; rules above it do not load",
  ),
  keyPrefix: text("CACHE_KEY_PREFIX", "", "Stands in front of every counter key"),
  spareCompanions: flag(
    "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT",
    false,
    "A request that some limit refuses is not charged to its other limits",
  ),

  redisUrl: text(
    "REDIS_URL",
    "",
    "host:port, /path/to/socket or redis://user:password@host:port/db; for SENTINEL master,host:port,…; for CLUSTER host:port,…",
  ),
  redisSocketType: choice(
    "REDIS_SOCKET_TYPE",
    "",
    { "": "auto", unix: "unix", tcp: "tcp" },
    "Must agree with REDIS_URL, which says it already",
  ),
  redisType: choice(
    "REDIS_TYPE",
    "SINGLE",
    { single: "single", sentinel: "sentinel", cluster: "cluster" },
    "What REDIS_URL names: a server, a master and its sentinels, or nodes of a cluster",
  ),
  redisAuth: text("REDIS_AUTH", "", "password or user:password"),
  redisSentinelAuth: text("REDIS_SENTINEL_AUTH", "", "The same for the sentinels"),
  redisTls: flag("REDIS_TLS", false, "TLS to Redis and to its sentinels"),
  redisTlsCaCert: text("REDIS_TLS_CACERT", "", "PEM file with the authorities to trust"),
  redisTlsClientCert: text("REDIS_TLS_CLIENT_CERT", "", "PEM file with the client certificate"),
  redisTlsClientKey: text("REDIS_TLS_CLIENT_KEY", "", "PEM file with its key"),
  redisTlsSkipHostname: flag("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", false, "Accept a certificate of another name"),
  redisTimeout: duration("REDIS_TIMEOUT", "10s", 1, "Bounds connecting to Redis"),
  redisRetryMin: duration("REDIS_STARTUP_INITIAL_INTERVAL", "1s", 1, "First wait between attempts to connect"),
  redisRetryMax: duration("REDIS_STARTUP_MAX_INTERVAL", "30s", 1, "Longest wait between attempts to connect"),
  redisDeadline: duration(
    "WEIR_REDIS_DEADLINE",
    "1s",
    1,
    "Bounds a decision; a call's grpc-timeout less 2 ms cuts it further",
  ),
  redisHealthActive: flag(
    "REDIS_HEALTH_CHECK_ACTIVE_CONNECTION",
    false,
    "Be unhealthy whenever Redis is not connected",
  ),

  shadowMode: flag("SHADOW_MODE", false, "Count and report, but let every request pass"),
  quotaMode: flag("QUOTA_MODE", false, "Treat every descriptor as a quota descriptor"),
  dynamicMetadata: flag("RESPONSE_DYNAMIC_METADATA", false, "Return dynamic metadata"),
  headersEnabled: flag("LIMIT_RESPONSE_HEADERS_ENABLED", false, "Return the three headers below"),
  limitHeader: header("LIMIT_LIMIT_HEADER", "RateLimit-Limit", "Header with the limit"),
  remainingHeader: header("LIMIT_REMAINING_HEADER", "RateLimit-Remaining", "Header with what is left"),
  resetHeader: header("LIMIT_RESET_HEADER", "RateLimit-Reset", "Header with the seconds until reset"),

  maxMessageBytes: integer("WEIR_MAX_MESSAGE_BYTES", 4 * 1024 * 1024, 1024, 1024 ** 3, "Largest request, bytes"),
  maxHeaderListBytes: integer("WEIR_MAX_HEADER_LIST_BYTES", 16 * 1024, 1024, 1024 ** 2, "Largest header list, bytes"),
  maxDescriptors: integer("WEIR_MAX_DESCRIPTORS", 1_000, 1, 5_000, "Most descriptors of a request"),
  maxEntries: integer("WEIR_MAX_ENTRIES", 64, 1, 10_000, "Most entries of a descriptor"),
  drain: duration("WEIR_DRAIN", "5s", 0, "How long to serve on after SIGTERM, for balancers to notice; 0 allowed"),
} as const;

export type Settings = {
  readonly [Key in keyof typeof DEFINITIONS]: ReturnType<(typeof DEFINITIONS)[Key]["parse"]>;
};

/** Names of the peer that are accepted and do nothing: what they tune does not exist here. */
const WITHOUT_EFFECT: Readonly<Record<string, string>> = {
  RUNTIME_WATCH_ROOT: "every kind of change is noticed",
  RUNTIME_IGNOREDOTFILES: "dotfiles are never rules",
  EXPIRATION_JITTER_MAX_SECONDS: "counters are not made anew with each window, so their expiries are spread already",
  REDIS_POOL_SIZE: "one connection to each server carries all calls",
  REDIS_PIPELINE_WINDOW: "calls are batched by themselves",
  REDIS_PIPELINE_LIMIT: "calls are batched by themselves",
  REDIS_CLUSTER_PIPELINE_PARALLELISM: "all nodes are asked at the same time",
  REDIS_POOL_ON_EMPTY_BEHAVIOR: "there is no pool",
};

/** Names of the peer that weir does not act on yet; setting one is worth a warning. */
const NOT_YET: readonly string[] = [
  "DISABLE_STATS",
  "EXTRA_TAGS",
  "GRPC_MAX_CONNECTION_AGE",
  "GRPC_MAX_CONNECTION_AGE_GRACE",
  "LOCAL_CACHE_SIZE_IN_BYTES",
  "NEAR_LIMIT_RATIO",
  "PROMETHEUS_ADDR",
  "REDIS_PERSECOND",
  "REDIS_STARTUP_MAX_ELAPSED_TIME",
  "STATSD_HOST",
  "STATS_FLUSH_INTERVAL",
  "TRACING_ENABLED",
  "USE_DOG_STATSD",
  "USE_PROMETHEUS",
  "USE_STATSD",
];

/** The same for whole families of names. */
const NOT_YET_FAMILIES: readonly string[] = [
  "CONFIG_GRPC_XDS_",
  "DOG_STATSD_",
  "GRPC_CLIENT_TLS_",
  "GRPC_SERVER_TLS_",
  "MEMCACHE_",
  "PROMETHEUS_",
  "REDIS_PERSECOND_",
  "STATSD_",
  "TRACING_",
  "USE_DOG_STATSD_",
  "XDS_CLIENT_",
];

/** What Kubernetes sets for a service, which is no setting. */
const ANY_SERVICE_LINK = /_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_\w+)$/;

function isNotYet(name: string, value: string): boolean {
  if (UNSET.includes(value) || ANY_SERVICE_LINK.test(name) || /^(tcp|udp):\/\//.test(value)) return false;
  return NOT_YET.includes(name) || NOT_YET_FAMILIES.some((family) => name.startsWith(family));
}

/** A value as good as unset does not deserve a warning. */
const UNSET: readonly string[] = ["", "0", ...FALSE];

/** Reads the settings, or says everything that is wrong with them. */
export function readSettings(
  environment: Readonly<Record<string, string | undefined>>,
): { readonly settings: Settings; readonly warnings: readonly string[] } | { readonly problems: readonly string[] } {
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [key, setting] of Object.entries(DEFINITIONS)) {
    const value = environment[setting.name] ?? setting.fallback;
    try {
      values[key] = setting.parse(value);
    } catch (error) {
      problems.push(`${setting.name}="${value}": ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  problems.push(...unknownNames(environment), ...contradictions(environment));
  if (problems.length > 0) return { problems };
  const warnings = Object.entries(environment)
    .filter(([name, value]) => isNotYet(name, value ?? ""))
    .map(([name]) => `${name} has no effect yet`)
    .sort();
  // Every key of DEFINITIONS was set above, each by its own parse.
  return { settings: Object.freeze(values) as Settings, warnings };
}

/** What Kubernetes and container links put into the environment for a service called weir or weir-something. */
const SERVICE_LINK = /^WEIR_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$/;

function unknownNames(environment: Readonly<Record<string, string | undefined>>): string[] {
  const known = new Set(Object.values(DEFINITIONS).map((setting): string => setting.name));
  return Object.keys(environment)
    .filter((name) => name.startsWith("WEIR_") && !known.has(name) && !SERVICE_LINK.test(name))
    .map((name) => `${name} is no setting of weir; \`weir settings\` lists them all`);
}

function contradictions(environment: Readonly<Record<string, string | undefined>>): string[] {
  const problems: string[] = [];
  const url = environment["REDIS_URL"] ?? "";
  const socketType = (environment["REDIS_SOCKET_TYPE"] ?? "").toLowerCase();
  if (url !== "" && socketType !== "" && (socketType === "unix") !== url.startsWith("/")) {
    problems.push(
      `REDIS_SOCKET_TYPE="${socketType}" contradicts REDIS_URL: a Unix socket is a path that starts with /`,
    );
  }
  const redisType = environment["REDIS_TYPE"] ?? "";
  if (url === "" && ["sentinel", "cluster"].includes(redisType.toLowerCase())) {
    problems.push(`REDIS_TYPE="${redisType}" needs REDIS_URL, which has no default for it`);
  }
  const prefix = environment["CACHE_KEY_PREFIX"] ?? "";
  if (/[{}]/.test(prefix)) {
    problems.push(`CACHE_KEY_PREFIX="${prefix}": must not hold braces, which mark the part of a key that Redis hashes`);
  }
  return problems;
}

/** The table of all settings, for `weir settings` and the README. */
export function settingsTable(): string {
  const rows = [
    ["name", "default", "type", "meaning"],
    ...Object.values(DEFINITIONS).map(({ name, fallback, type, help }) => [code(name), code(fallback), type, help]),
    ...Object.entries(WITHOUT_EFFECT).map(([name, why]) => [code(name), "", "", `Accepted without effect: ${why}`]),
  ];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`);
  lines.splice(1, 0, `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`);
  return lines.join("\n");
}

function code(text: string): string {
  return text === "" ? "" : `\`${text}\``;
}
