// Log lines on stderr, as text or JSON. One line per event that an operator can act on; never a descriptor's value.
import { type DestinationStream, type Logger, pino } from "pino";
import type { Settings } from "./settings.ts";

export type { Logger } from "pino";

export function createLogger(settings: Pick<Settings, "logLevel" | "logFormat">): Logger {
  const options = {
    level: settings.logLevel,
    base: null,
    // The names that envoyproxy/ratelimit's JSON lines have.
    messageKey: "@message",
    timestamp: () => `,"@timestamp":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
  };
  return pino(options, settings.logFormat === "json" ? pino.destination({ fd: 2, sync: true }) : textLines());
}

/** Rewrites a JSON line as `2026-01-31T12:00:00.000Z warning rules were not loaded key=value`. */
function textLines(): DestinationStream {
  const write = (line: string): void => {
    const { level, "@timestamp": at, "@message": message, ...rest }: Record<string, unknown> = JSON.parse(line);
    const details = Object.entries(rest).map(
      ([key, value]) => ` ${key}=${typeof value === "string" ? value : JSON.stringify(value)}`,
    );
    process.stderr.write(`${at} ${level} ${message}${details.join("")}\n`);
  };
  return { write };
}
