// The whole demonstration on free ports: envoy/envoy.yaml in front, weir behind it, an upstream in this process.
import { createServer, get, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Envoy, startEnvoy } from "./envoy.ts";
import { frontProxyConfig } from "./front-proxy.ts";

const LOCAL = { host: "127.0.0.1", port: 0 };

export interface EdgeReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Whole seconds since 1970 just before the request and just after the reply. */
  readonly fromSecond: number;
  readonly toSecond: number;
}

export interface EdgeStack {
  readonly envoy: Envoy;
  /** Paths of all requests that reached the upstream, in order. */
  readonly reached: readonly string[];
  /** A `GET` through Envoy on a connection of its own. Header values are sent byte by byte (latin1). */
  get(path: string, headers?: Readonly<Record<string, string>>): Promise<EdgeReply>;
  /** Envoy's count of a kind of answer: `ok`, `over_limit`, `error`, `failure_mode_allowed`; `undefined` for none. */
  answers(kind: string): Promise<number | undefined>;
  stop(): Promise<void>;
}

/** @param change edits the bootstrap, for what the file itself does not show */
export async function startEdge(weirPort: number, change: (config: object) => object = (c) => c): Promise<EdgeStack> {
  const reached: string[] = [];
  const upstream = createServer((request, response) => {
    reached.push(request.url ?? "");
    response.end("upstream\n");
  });
  await new Promise<void>((resolve) => upstream.listen(0, LOCAL.host, resolve));
  const envoy = await startEnvoy(
    change(
      frontProxyConfig({
        "0.0.0.0:9901": LOCAL,
        "0.0.0.0:10000": LOCAL,
        "upstream:8000": { host: LOCAL.host, port: portOf(upstream) },
        "weir:8081": { host: LOCAL.host, port: weirPort },
      }),
    ),
  );
  return {
    envoy,
    reached,
    get: (path, headers = {}) => request(envoy.port("front"), path, headers),
    answers: (kind) => envoy.stat(`cluster.upstream.ratelimit.${kind}`),
    stop: async () => {
      await envoy.stop();
      await new Promise((resolve) => upstream.close(resolve));
    },
  };
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

function request(port: number, path: string, headers: Readonly<Record<string, string>>): Promise<EdgeReply> {
  return new Promise((resolve, reject) => {
    const fromSecond = nowSecond();
    get({ host: LOCAL.host, port, path, headers, agent: false }, (reply) => {
      reply.resume();
      reply.once("error", reject);
      reply.once("end", () =>
        resolve({ status: reply.statusCode ?? 0, headers: reply.headers, fromSecond, toSecond: nowSecond() }),
      );
    }).once("error", reject);
  });
}

function nowSecond(): number {
  return Math.floor(Date.now() / 1000);
}
