// The counts as a page for Prometheus. Names are envoyproxy/ratelimit's where it has them.
import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { Counts, RuleCounts } from "./counts.ts";

/** A number that is read whenever the page is shown. */
export interface Reading {
  readonly name: string;
  readonly help: string;
  /** A counter only grows. */
  readonly kind: "counter" | "gauge";
  readonly read: () => number;
}

/** Makes the page of all counts, of further readings and of the process itself. */
export function createPage(counts: Counts, readings: readonly Reading[]): Registry {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const ruleCounter = (name: string, help: string, read: (rule: RuleCounts) => number): void => {
    new Counter({
      name: `ratelimit_service_rate_limit_${name}`,
      help,
      labelNames: ["domain", "key1", "key2"],
      registers,
      collect(): void {
        this.reset();
        for (const rule of counts.rules.values()) {
          this.inc({ domain: rule.domain, key1: rule.key1, key2: rule.key2 }, read(rule));
        }
      },
    });
  };
  ruleCounter("total_hits", "Hits that a rule was asked about", (rule) => rule.totalHits);
  ruleCounter("within_limit", "Hits that passed", (rule) => rule.withinLimit);
  ruleCounter("over_limit", "Hits that were over the limit", (rule) => rule.overLimit);
  ruleCounter("shadow_mode", "Hits over the limit of a shadow rule", (rule) => rule.shadowMode);
  const service = (name: string, help: string, read: () => number): Reading => ({
    name: `ratelimit_service_${name}`,
    help,
    kind: "counter",
    read,
  });
  const plain = [
    service("config_load_success", "Times that rules were loaded", () => counts.loads.success),
    service("config_load_error", "Times that rules could not be loaded", () => counts.loads.error),
    service("global_shadow_mode", "Requests that passed because of SHADOW_MODE", () => counts.globalShadowMode),
    service("domain_not_found", "Descriptors of domains without rules", () => counts.domainsNotFound),
    ...readings,
  ];
  for (const { name, help, kind, read } of plain) {
    if (kind === "gauge") {
      new Gauge({
        name,
        help,
        registers,
        collect(): void {
          this.set(read());
        },
      });
    } else {
      new Counter({
        name,
        help,
        registers,
        collect(): void {
          this.reset();
          this.inc(read());
        },
      });
    }
  }
  new Counter({
    name: "ratelimit_service_should_rate_limit_error",
    help: "Calls that ended without a verdict",
    labelNames: ["err_type"],
    registers,
    collect(): void {
      this.reset();
      for (const [kind, count] of Object.entries(counts.errors)) this.inc({ err_type: kind }, count);
    },
  });
  new Counter({
    name: "ratelimit_service_total_requests",
    help: "gRPC calls",
    labelNames: ["grpc_method"],
    registers,
    collect(): void {
      this.reset();
      this.inc({ grpc_method: "ShouldRateLimit" }, counts.calls);
    },
  });
  return registry;
}
