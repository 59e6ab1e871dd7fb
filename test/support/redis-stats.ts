// What a Redis server counted about itself.
import type { Redis } from "ioredis";

/** How often a command ran, without the calls that were turned away before or failed. */
export async function ranOf(admin: Redis, command: string): Promise<number> {
  const [, fields = ""] = new RegExp(`cmdstat_${command}:(.*)`).exec(await admin.info("commandstats")) ?? [];
  return field(fields, "calls") - field(fields, "failed_calls");
}

/** How often the server answered with an error that begins with this word. */
export async function errorsOf(admin: Redis, word: string): Promise<number> {
  const [, fields = ""] = new RegExp(`errorstat_${word}:(.*)`).exec(await admin.info("errorstats")) ?? [];
  return field(fields, "count");
}

function field(fields: string, name: string): number {
  return Number(new RegExp(`\\b${name}=(\\d+)`).exec(fields)?.[1] ?? 0);
}
