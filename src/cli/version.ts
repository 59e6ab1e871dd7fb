// The version of this package.
import { readFileSync } from "node:fs";

function readVersion(): string {
  const manifest: { version: string } = JSON.parse(
    readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
  );
  return manifest.version;
}

export const VERSION = readVersion();
