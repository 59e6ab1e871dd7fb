// docker-compose.yml and the Dockerfile, held against the repository and one another. There is no Docker engine here, so
// what can be run of them is run by hand: their inline scripts, and Envoy's file in the other tests of this folder.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { parse } from "yaml";
import { readSettings, settingsTable } from "../../src/settings.ts";
import { startChild } from "../support/child-process.ts";
import { freePort } from "../support/free-port.ts";
import { frontProxyAddresses } from "../support/front-proxy.ts";
import { startWeir } from "../support/weir-process.ts";

interface Service {
  readonly image?: string;
  readonly build?: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
}

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

const compose = parse(read("docker-compose.yml")) as { readonly services: Readonly<Record<string, Service>> };
const services = compose.services;

/** The Dockerfile's instructions, continuation lines joined, by stage. */
const stages = read("Dockerfile")
  .replace(/^#.*\n/gm, "")
  .replace(/\\\n\s*/g, "")
  .split(/^(?=FROM )/m)
  .filter((text) => text.startsWith("FROM "))
  .map((text) =>
    text
      .trim()
      .split(/\n+/)
      .map((line) => {
        const [, name = "", value = ""] = /^(\w+)\s+(.*)$/.exec(line) ?? [];
        return { name, value };
      }),
  );
const [build = [], image = []] = stages;

function values(stage: typeof build, name: string): string[] {
  return stage.filter((instruction) => instruction.name === name).map(({ value }) => value);
}

/** The ENV of the image. */
const imageEnv = new Map(
  values(image, "ENV")
    .flatMap((value) => value.split(/\s+/))
    .map((pair) => pair.split("=", 2) as [string, string]),
);

/** `host:container` or `address:host:container` as numbers. */
function publishedPorts(service: Service | undefined): { host: number; container: number }[] {
  return (service?.ports ?? []).map((text) => {
    const [container = "", host = ""] = text.split(":").reverse();
    return { host: Number(host), container: Number(container) };
  });
}

describe("docker-compose.yml", () => {
  it("has the four parts of the demonstration", () => {
    expect(Object.keys(services).sort()).toEqual(["envoy", "redis", "upstream", "weir"]);
  });

  it("pins each image, and Envoy to the version that the tests run", () => {
    for (const [name, service] of Object.entries(services)) {
      if (service.build === undefined) expect(service.image, name).toMatch(/^[\w./-]+:v?\d[\w.-]*$/);
    }
    const [, envoyVersion] = /^envoy=(\S+)$/m.exec(read("tools/provide.sh")) ?? [];
    expect(services["envoy"]?.image).toBe(`envoyproxy/envoy:v${envoyVersion}`);
    expect(services["upstream"]?.image).toBe(values(image, "FROM")[0]);
  });

  it("waits only for services that can become healthy, and for no one in a circle", () => {
    const waitsFor = (name: string): string[] => Object.keys(services[name]?.depends_on ?? {});
    for (const name of Object.keys(services)) {
      for (const [other, { condition }] of Object.entries(services[name]?.depends_on ?? {})) {
        expect(condition).toBe("service_healthy");
        const probed =
          services[other]?.healthcheck ??
          (services[other]?.build === "." ? values(image, "HEALTHCHECK")[0] : undefined);
        expect(probed, `${name} waits for ${other}`).toBeDefined();
      }
    }
    const reachable = (name: string, seen: readonly string[]): boolean =>
      seen.includes(name) || waitsFor(name).some((other) => reachable(other, [...seen, name]));
    expect(Object.keys(services).filter((name) => reachable(name, []))).toEqual([]);
    expect(waitsFor("envoy").sort()).toEqual(["upstream", "weir"]);
  });

  it("mounts what exists, where it is read", () => {
    for (const [name, service] of Object.entries(services)) {
      for (const volume of service.volumes ?? []) {
        const [source = "", , mode] = volume.split(":");
        expect(existsSync(join(ROOT, source)), `${name} mounts ${source}`).toBe(true);
        expect(mode).toBe("ro");
      }
    }
    expect(services["envoy"]?.volumes).toEqual(["./envoy/envoy.yaml:/etc/envoy/envoy.yaml:ro"]);
    expect(services["envoy"]?.command?.slice(0, 3)).toEqual(["envoy", "-c", "/etc/envoy/envoy.yaml"]);
    expect(services["weir"]?.volumes).toEqual([`./config/rules:${imageEnv.get("RUNTIME_ROOT")}/config:ro`]);
  });

  it("publishes every port once: Envoy's and weir's as they are configured", () => {
    const all = Object.values(services).flatMap(publishedPorts);
    expect(new Set(all.map(({ host }) => host)).size).toBe(all.length);
    const listening = frontProxyAddresses().filter((address) => address.startsWith("0.0.0.0:"));
    expect(
      publishedPorts(services["envoy"])
        .map(({ container }) => `0.0.0.0:${container}`)
        .sort(),
    ).toEqual(listening.sort());
    const weirPorts = ["PORT", "GRPC_PORT", "DEBUG_PORT"].map((name) => Number(imageEnv.get(name)));
    expect(publishedPorts(services["weir"]).map(({ container }) => container)).toEqual(weirPorts);
  });

  it("lets Envoy reach weir and the upstream under their names, and weir Redis", () => {
    const called = frontProxyAddresses().filter((address) => !address.startsWith("0.0.0.0:"));
    expect(called.sort()).toEqual(["upstream:8000", `weir:${imageEnv.get("GRPC_PORT")}`]);
    expect(services["upstream"]?.command?.at(-1)).toContain(".listen(8000)");
    expect(services["weir"]?.environment).toMatchObject({ BACKEND_TYPE: "redis", REDIS_URL: "redis:6379" });
  });

  it("sets only what weir knows, and what it accepts", () => {
    const known = [...settingsTable().matchAll(/^\| `(\w+)` /gm)].map(([, name]) => name);
    const environment = { ...Object.fromEntries(imageEnv), ...services["weir"]?.environment };
    expect(Object.keys(environment).filter((name) => !known.includes(name))).toEqual(["NODE_ENV"]);
    expect(readSettings(environment)).toMatchObject({ warnings: [] });
  });

  it("has an upstream script that runs and a probe that tells", async () => {
    const port = await freePort();
    const here = (text = ""): string => text.replaceAll("8000", `${port}`).replaceAll("$$", "$");
    const [command = "", ...args] = services["upstream"]?.command ?? [];
    const [, probe = "", ...probeArgs] = services["upstream"]?.healthcheck?.test ?? [];
    expect([command, probe]).toEqual(["node", "node"]);
    const runProbe = () => startChild(process.execPath, probeArgs.map(here), {}).exitsWithin();

    expect((await runProbe()).code).toBe(1);
    const upstream = startChild(process.execPath, args.map(here), {});
    onTestFinished(() => upstream.kill("SIGKILL"));
    await expect.poll(async () => (await runProbe()).code, { timeout: 10_000 }).toBe(0);
    expect(await (await fetch(`http://127.0.0.1:${port}/some/path`)).text()).toBe("you reached /some/path\n");
  });
});

describe("Dockerfile", () => {
  it("copies what the repository has or the build makes, and nothing that .dockerignore hides", () => {
    const [first, ...kept] = read(".dockerignore")
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"));
    expect(first).toBe("*");
    const made = ["dist", "node_modules"];
    const inBuild = [...made];
    for (const stage of [build, image]) {
      for (const value of values(stage, "COPY")) {
        const [target, ...sources] = value
          .split(/\s+/)
          .filter((word) => !word.startsWith("--"))
          .reverse();
        expect(target).toBeDefined();
        for (const source of sources) {
          if (value.startsWith("--from=build ")) {
            expect(inBuild).toContain(source.replace(/^\/build\//, ""));
          } else {
            expect(existsSync(join(ROOT, source)), source).toBe(true);
            expect(
              kept.some((line) => `${source}/`.startsWith(`${line.slice(1)}/`)),
              `${source} is sent`,
            ).toBe(true);
            if (stage === build) inBuild.push(source);
          }
        }
      }
    }
    for (const line of kept) expect(existsSync(join(ROOT, line.slice(1))), line).toBe(true);
  });

  it("builds from pinned images and ends with production packages only", () => {
    const [from = "", ...more] = values(build, "FROM").concat(values(image, "FROM"));
    expect(more).toEqual([from.replace(/ AS build$/, "")]);
    expect(more[0]).toMatch(/^node:\d+-slim$/);
    expect(values(build, "RUN").join("\n")).toMatch(/npm ci[\s\S]*npm run build && npm prune --omit=dev/);
  });

  it("runs weir itself, as an unprivileged user, with its ports exposed", () => {
    expect(values(image, "USER")).toEqual(["node"]);
    expect(values(image, "CMD")).toEqual(['["node", "dist/cli/main.js", "serve"]']);
    expect(values(image, "EXPOSE")).toEqual(["8080 8081 6070"]);
    expect(["PORT", "GRPC_PORT", "DEBUG_PORT"].map((name) => imageEnv.get(name)).join(" ")).toBe("8080 8081 6070");
  });

  it("has a health check that tells a serving weir from none", async () => {
    const [, command = "[]"] = /CMD (\[.*\])$/.exec(values(image, "HEALTHCHECK")[0] ?? "") ?? [];
    const [program, ...args] = JSON.parse(command) as string[];
    expect(program).toBe("node");
    const probe = (port: number) => startChild(process.execPath, args, { PORT: `${port}` }).exitsWithin();
    const weir = await startWeir();
    expect((await probe(weir.httpPort)).code).toBe(0);
    await weir.stop();
    expect((await probe(weir.httpPort)).code).toBe(1);
  });
});
