// The composition root: the only file that knows every part.
import type { Server } from "node:http";
import { join } from "node:path";
import type { Registry } from "prom-client";
import { ruleList } from "./admin/rule-list.ts";
import { createDebugServer } from "./admin/server.ts";
import { StoreError } from "./core/errors.ts";
import { Limiter } from "./core/limiter.ts";
import type { Store } from "./core/ports.ts";
import type { RuleTree } from "./core/rule-tree.ts";
import { healthRoutes } from "./health/grpc-service.ts";
import { Health } from "./health/health.ts";
import { closeServer } from "./http/close-server.ts";
import { createHttpServer } from "./http/server.ts";
import type { Logger } from "./logger.ts";
import { Counts } from "./metrics/counts.ts";
import type { Reading } from "./metrics/prometheus.ts";
import { RuleLoader } from "./reload.ts";
import type { ResponseOptions } from "./rls/encode-response.ts";
import { type ServiceOptions, SHOULD_RATE_LIMIT, shouldRateLimit } from "./rls/service.ts";
import type { Settings } from "./settings.ts";
import { sha256 } from "./sha256.ts";
import { MemoryStore } from "./stores/memory/store.ts";
import type { RedisTarget } from "./stores/redis/connect.ts";
import { UndecidedLog } from "./undecided-log.ts";
import type { GrpcServer, ListenAddress, UnaryHandler } from "./wire/door.ts";
import { addressText, listen } from "./wire/listen.ts";
import { createNodeHttp2Server } from "./wire/node-http2.ts";

/** Time for the last answers to leave, before connections are cut. Milliseconds. */
const CLOSE_GRACE_MS = 500;
const SWEEP_EVERY_MS = 1_000;

export interface App {
  /** Where the listeners are, as `host:port` or a socket path. */
  readonly addresses: { readonly http: string; readonly grpc: string; readonly debug: string };
  readonly tree: () => RuleTree | undefined;
  readonly reload: () => void;
  /** Turns health to failing, serves on for the drain time, lets running calls finish and closes everything. */
  readonly stop: () => Promise<void>;
}

/** Starts all parts. Rejects when a listener cannot be opened; an absent Redis or bad rules only make it unhealthy. */
export async function startApp(settings: Settings, logger: Logger): Promise<App> {
  const counts = new Counts();
  const health = new Health();
  health.report("process", false, "starting");
  const { store, readings } = await openStore(settings, logger, health);
  const limiter = new Limiter({
    store,
    observer: counts,
    sha256,
    keyPrefix: settings.keyPrefix,
    shadowMode: settings.shadowMode,
    quotaMode: settings.quotaMode,
    checkMode: settings.spareCompanions ? "spare" : "each",
  });
  const loader = openRules(settings, logger, counts, health, limiter);
  const undecided = new UndecidedLog(logger);
  const service: ServiceOptions = {
    limiter,
    limits: { maxDescriptors: settings.maxDescriptors, maxEntries: settings.maxEntries },
    response: responseOptions(settings),
    onError: (error) => {
      counts.errors[error instanceof StoreError ? "redis_error" : "service_error"] += 1;
      if (error instanceof StoreError) undecided.add(error.message);
      else logger.debug({ reason: messageOf(error) }, "a call was refused");
    },
  };
  const grpc = openGrpc(settings, logger, counts, health, service);
  const http = createHttpServer({
    json: async (body) => (await jsonService()).answerJson(body, service),
    isHealthy: () => health.healthy,
    maxBodyBytes: settings.maxMessageBytes,
    onError: service.onError,
  });
  const debug = openDebug(counts, readings, limiter);

  const httpAddress = { kind: "tcp", host: settings.host, port: settings.port } as const;
  const debugAddress = { kind: "tcp", host: settings.debugHost, port: settings.debugPort } as const;
  const [httpPort, grpcPort, debugPort] = await Promise.all([
    listen(http, httpAddress),
    grpc.listen(grpcAddress(settings)),
    listen(debug, debugAddress),
  ]);
  loader.watch();
  health.report("process", true);
  loadTheRest();

  return {
    addresses: {
      http: addressText({ ...httpAddress, port: httpPort }),
      grpc: addressText(grpcAddress(settings, grpcPort)),
      debug: addressText({ ...debugAddress, port: debugPort }),
    },
    tree: () => limiter.tree,
    reload: () => loader.load(),
    stop: async () => {
      const wasServing = health.healthy;
      health.report("process", false, "weir is stopping");
      loader.close();
      // Nobody sends calls to a server that is not healthy, so there is nothing to wait for.
      if (wasServing && settings.drain > 0) await sleep(settings.drain);
      // No decision takes longer than its deadline, so what is left then is idle or stuck.
      const graceMs = wasServing ? settings.redisDeadline + CLOSE_GRACE_MS : CLOSE_GRACE_MS;
      await Promise.all([grpc.drain(graceMs), closeServer(http, graceMs)]);
      await store.close();
      await closeServer(debug, 0);
    },
  };
}

function openGrpc(
  settings: Settings,
  logger: Logger,
  counts: Counts,
  health: Health,
  service: ServiceOptions,
): GrpcServer {
  const decide = shouldRateLimit(service);
  const routes = healthRoutes(health);
  return createNodeHttp2Server({
    routes: {
      unary: new Map<string, UnaryHandler>([
        [
          SHOULD_RATE_LIMIT,
          (message, call) => {
            counts.calls += 1;
            return decide(message, call);
          },
        ],
        ...routes.unary,
      ]),
      streaming: routes.streaming,
    },
    limits: { maxMessageBytes: settings.maxMessageBytes, maxHeaderListBytes: settings.maxHeaderListBytes },
    onBug: (error, path) => logger.error({ path, error: stackOf(error) }, "weir has a defect: please report this"),
  });
}

function grpcAddress(settings: Settings, port = settings.grpcPort): ListenAddress {
  if (settings.grpcUds !== "") return { kind: "unix", path: settings.grpcUds };
  return { kind: "tcp", host: settings.grpcHost, port };
}

function openDebug(counts: Counts, readings: readonly Reading[], limiter: Limiter): Server {
  let registry: Promise<Registry> | undefined;
  return createDebugServer([
    {
      path: "/rlconfig",
      help: "the rules in force",
      contentType: "text/plain; charset=utf-8",
      render: () => ruleList(limiter.tree),
    },
    {
      path: "/metrics",
      help: "metrics for Prometheus",
      contentType: "text/plain; version=0.0.4; charset=utf-8",
      render: async () => {
        registry ??= metricsPage().then(({ createPage }) => createPage(counts, readings));
        return (await registry).metrics();
      },
    },
  ]);
}

// What no gRPC call needs is loaded after the start, which takes half the time without it.
const jsonService = (): Promise<typeof import("./rls/json.ts")> => import("./rls/json.ts");
const metricsPage = (): Promise<typeof import("./metrics/prometheus.ts")> => import("./metrics/prometheus.ts");

/** Loads in the background what was left out, so that the first request for it need not wait. */
function loadTheRest(): void {
  // A failure shows again, with its reason, to whoever asks for the part.
  setImmediate(() =>
    jsonService()
      .then(metricsPage)
      .catch(() => undefined),
  );
}

/** Which store the settings ask for. */
export function storeKind(settings: Settings): "redis" | "memory" {
  if (settings.backendType !== "auto") return settings.backendType;
  return settings.redisUrl === "" ? "memory" : "redis";
}

interface OpenStore {
  readonly store: Store;
  readonly readings: readonly Reading[];
}

async function openStore(settings: Settings, logger: Logger, health: Health): Promise<OpenStore> {
  if (storeKind(settings) === "redis") return openRedis(settings, logger, health);
  const store = new MemoryStore({ clock: { nowUs: () => Date.now() * 1_000 }, maxCounters: settings.maxCounters });
  store.sweepEvery(SWEEP_EVERY_MS);
  return {
    store,
    readings: [
      { name: "weir_memory_counters", help: "Counters held in memory", kind: "gauge", read: () => store.size },
      {
        name: "weir_memory_evicted_total",
        help: "Live counters that had to make room for others, and with them what they had counted",
        kind: "counter",
        read: () => store.evicted,
      },
    ],
  };
}

async function openRedis(settings: Settings, logger: Logger, health: Health): Promise<OpenStore> {
  const { openRedisStore } = await import("./stores/redis/open.ts");
  let connected = false;
  let wasConnected = false;
  health.report("redis", false, "Redis is not connected yet");
  const store = openRedisStore(
    redisTarget(settings),
    { deadlineMs: settings.redisDeadline },
    {
      onState: (state) => {
        connected = state.kind === "ready";
        wasConnected ||= connected;
        const healthy = settings.redisHealthActive ? connected : wasConnected;
        health.report("redis", healthy, healthy ? "" : "Redis is not connected");
        if (state.kind === "ready") logger.info({ server: state.server }, "Redis is connected");
        if (state.kind === "connecting") logger.warn({ reason: state.reason }, "Redis is not connected");
      },
      onWarning: (message) => logger.warn(message),
    },
  );
  const reading: Reading = {
    name: "weir_redis_connected",
    help: "1 while Redis is connected and its script loaded",
    kind: "gauge",
    read: () => (connected ? 1 : 0),
  };
  return { store, readings: [reading] };
}

/** envoyproxy/ratelimit's default, for `BACKEND_TYPE=redis` alone. */
const DEFAULT_REDIS_URL = "/var/run/nutcracker/ratelimit.sock";

function redisTarget(settings: Settings): RedisTarget {
  return {
    type: settings.redisType,
    url: settings.redisUrl === "" ? DEFAULT_REDIS_URL : settings.redisUrl,
    auth: settings.redisAuth,
    sentinelAuth: settings.redisSentinelAuth,
    tls:
      settings.redisTls || settings.redisUrl.startsWith("rediss://")
        ? {
            caFile: settings.redisTlsCaCert,
            certFile: settings.redisTlsClientCert,
            keyFile: settings.redisTlsClientKey,
            skipHostnameVerification: settings.redisTlsSkipHostname,
          }
        : undefined,
    connectTimeoutMs: settings.redisTimeout,
    retryMinMs: settings.redisRetryMin,
    retryMaxMs: settings.redisRetryMax,
  };
}

function openRules(settings: Settings, logger: Logger, counts: Counts, health: Health, limiter: Limiter): RuleLoader {
  const parts = [settings.runtimeRoot, settings.runtimeSubdirectory, settings.runtimeAppDirectory];
  const directory = join(...parts.filter((part) => part !== ""));
  if (settings.healthyWithConfig) health.report("config", false, "no rules are loaded");
  const loader = new RuleLoader({
    directory,
    compile: {
      keyPrefix: settings.keyPrefix,
      mergeDomains: settings.mergeDomainConfig,
      sha256,
      slidingLogMax: settings.slidingLogMax,
    },
    intervalMs: settings.reloadInterval,
    onLoaded: (tree, warnings) => {
      limiter.tree = tree;
      counts.keepOnly(tree);
      counts.loads.success += 1;
      for (const warning of warnings) logger.warn(warning);
      logger.info({ domains: tree.domains.size, rules: tree.rules.length }, "rules are in force");
      if (tree.domains.size === 0) logger.warn({ directory }, "no domain has rules, so every request passes");
      if (settings.healthyWithConfig) health.report("config", tree.domains.size > 0, "no domain has rules");
    },
    onFailed: (problems, warnings) => {
      counts.loads.error += 1;
      for (const warning of warnings) logger.warn(warning);
      for (const problem of problems) logger.error(problem);
      logger.error(limiter.tree === undefined ? "no rules are in force" : "the last good rules stay in force");
    },
  });
  loader.load();
  return loader;
}

function responseOptions(settings: Settings): ResponseOptions {
  const names = { limit: settings.limitHeader, remaining: settings.remainingHeader, reset: settings.resetHeader };
  return { headers: settings.headersEnabled ? names : undefined, dynamicMetadata: settings.dynamicMetadata };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
